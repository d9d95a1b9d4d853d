"""Functions of `ipu.nn` in stages on IPUs of their own."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

SCRIPT = """
import jax, jax.numpy as jnp, numpy as np
import ipujax as ipu

assert jax.devices("ipu")[0].num_ipus == 2
x = np.random.default_rng(0).standard_normal((4, 6, 8)).astype(np.float32)
gamma = np.linspace(0.5, 2, 8, dtype=np.float32)
key = jax.random.key_data(jax.random.key(1))


def first(gamma, x):
    return ipu.nn.dropout(ipu.nn.layer_norm(x, gamma), key, rate=0.25)


def second(gamma, x):
    return ipu.nn.softmax(ipu.nn.group_norm(x, gamma, groups=4))


def loss(stages, gamma):
    made = stages[1](gamma, stages[0](gamma, x))
    return jnp.sum(made * made)


staged = [ipu.stage(first, 0), ipu.stage(second, 1)]
found = jax.jit(jax.value_and_grad(lambda gamma: loss(staged, gamma)))(gamma)
wanted = jax.jit(jax.value_and_grad(lambda gamma: loss([first, second], gamma)))(gamma)
jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), found, wanted)
assert np.abs(found[1]).max() > 1e-3
"""


def test_stages(run_python: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = run_python(
        "-c", SCRIPT, env={"JAX_IPU_IPUS_PER_DEVICE": "2", "JAX_IPU_DEVICE_COUNT": "1"}
    )
    assert done.returncode == 0, done.stderr
