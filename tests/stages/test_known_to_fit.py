"""BERT-large fits the IPUs that it is known to fit, and no fewer."""

from __future__ import annotations

import pytest

from tests.conftest import RunPython


@pytest.mark.parametrize(("layers", "verdict"), [("3 7 7 7", "fits"), ("10 14", "does not fit")])
def test_bert_large(run_python: RunPython, layers: str, verdict: str) -> None:
    settings = {"JAX_IPU_IPUS_PER_DEVICE": "4", "JAX_PLATFORMS": "ipu"}
    command = ["-m", "tests.stages.known_to_fit", "bert-large-128", "--layers", *layers.split()]
    done = run_python(*command, env=settings)
    assert done.returncode == 0, done.stderr
    assert f": {verdict}: " in done.stdout
