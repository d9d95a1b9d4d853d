"""The lines of users' programs reach Poplar: in names, and as places in a source."""

from __future__ import annotations

import json
from pathlib import Path

from tests.conftest import RunPython

PROGRAM = """
import jax
import jax.numpy as jnp
import numpy as np

from ipujax._poplar import _poplar

contexts = [
    _poplar.poplar.DebugContext(*given)
    for given in (("mul", "train.py:31"), ("constant",), ("other", "no line"))
]
print([(context.name, context.source) for context in contexts])
x = np.ones((8, 8), np.float32)
jax.block_until_ready(jax.jit(lambda x: jnp.tanh(x) @ x)(x))
"""


def test_names_have_lines(
    run_python: RunPython, sdk_environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    options = {"autoReport.all": "true", "autoReport.directory": str(tmp_path)}
    environment = {
        "JAX_PLATFORMS": "ipu,cpu",
        "POPLAR_ENGINE_OPTIONS": json.dumps(options),
        **sdk_environment,
    }
    run = run_python(tmp_path / "train.py", env=environment)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == str(
        [("mul@train.py:31", "train.py:31"), ("constant", ""), ("other", "")]
    )
    report = (tmp_path / "profile.pop").read_bytes()
    for name in (b"/dot_general@train.py:14", b"/tanh@train.py:14"):
        assert name in report
