"""The option `engine_options` reaches Poplar's compiler, which checks it."""

from __future__ import annotations

from tests.conftest import RunPython

PROGRAM = """
import jax
import jax.numpy as jnp
import numpy as np

import ipujax as ipu

x = jax.ShapeDtypeStruct((4096, 4096), jnp.float32)
target = {"num_tiles": 4}
for options in ('{"speed": "high"}', '{"debug.outOfMemory": "error"}'):
    try:
        ipu.precompile(lambda x: x @ x, x, target=target, options={"ipu_engine_options": options})
    except ipu.Error as error:
        print(type(error).__name__, str(error)[:200].replace("\\n", " "))
verified = {"ipu_engine_options": '{"debug.outOfMemory": "log"}'}
print(jax.jit(lambda x: 2 * x, compiler_options=verified)(np.float32(3)))
ipu.configure(verified_transfers=True)
x = np.ones(4096, np.float32)
print(np.asarray(jax.jit(lambda x: 2 * x)(jax.device_put(x))).sum())
"""


def test_poplar_gets_them(run_python: RunPython, sdk_environment: dict[str, str]) -> None:
    run = run_python("-c", PROGRAM, env={"JAX_PLATFORMS": "ipu,cpu", **sdk_environment})
    assert run.returncode == 0, run.stderr
    unknown, too_large, six, transferred = run.stdout.splitlines()
    assert unknown.startswith("InvalidProgramError [build] needs a program that the Poplar SDK")
    assert "options of Poplar's families" in unknown
    assert too_large.startswith("OutOfMemoryError [build] needs a program that fits")
    assert (six, transferred) == ("6.0", "8192.0")
