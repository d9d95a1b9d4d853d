"""Models fit the IPUs that they are known to fit, and BERT-large no fewer."""

from __future__ import annotations

import pytest

from tests.conftest import RunPython


@pytest.mark.parametrize(
    ("arguments", "verdict"),
    [
        ("bert-large-128", "fits"),
        ("bert-large-128 --layers 10 14", "does not fit"),
        ("gpt2-large", "fits"),
        ("resnet-50-on-one", "fits"),
    ],
)
def test_verdicts(run_python: RunPython, arguments: str, verdict: str) -> None:
    settings = {"JAX_IPU_IPUS_PER_DEVICE": "8", "JAX_PLATFORMS": "ipu"}
    done = run_python("-m", "tests.stages.known_to_fit", *arguments.split(), env=settings)
    assert done.returncode == 0, done.stderr
    assert f": {verdict}: " in done.stdout
