"""Calls of a program with a table leave nothing in memory."""

from __future__ import annotations

import gc

import jax
import jax.numpy as jnp
import numpy as np

import ipujax as ipu
from tests.conftest import RunPython

#: Of 3,000 calls; one Python object for each would be 400 KiB.
MOST_KIB = 200

STEPS = """
import gc, psutil
import jax, jax.numpy as jnp, numpy as np, ipujax as ipu
table = ipu.HostEmbedding(np.ones((1000, 16), np.float32), ipu.HostEmbeddingSGD(0.1))
ids = jnp.arange(32)

@jax.jit
def step(token):
    return token + jax.grad(lambda token: jnp.sum(table.lookup(token, ids) ** 2))(token)

def rss_after(calls, token):
    for _ in range(calls):
        token = step(token)
    token.block_until_ready()
    gc.collect()
    return psutil.Process().memory_info().rss, token

before, token = rss_after(3000, table.token())
after, token = rss_after(3000, token)
print((after - before) // 1024)
"""


def test_compiled_steps_leave_no_memory(run_python: RunPython):
    ran = run_python("-c", STEPS)
    assert ran.returncode == 0, ran.stderr
    assert int(ran.stdout) < MOST_KIB


def test_gradients_outside_of_jit_leave_no_objects():
    table = ipu.HostEmbedding(np.ones((100, 4), np.float32), ipu.HostEmbeddingSGD(0.1))
    ids = jnp.arange(8)

    def objects_after(calls: int, token: jax.Array) -> tuple[int, jax.Array]:
        for _ in range(calls):
            gradient = jax.grad(lambda token: jnp.sum(table.lookup(token, ids) ** 2))(token)
            token = token + gradient
        gc.collect()
        return len(gc.get_objects()), token

    before, token = objects_after(20, table.token())
    after, _ = objects_after(100, token)
    assert after - before < 50


def test_programs_of_calls_outside_of_jit_end_with_their_table():
    client = jax.devices("ipu")[0].client
    ids = jnp.arange(8)

    def programs_after(num_tables: int) -> int:
        for _ in range(num_tables):
            table = ipu.HostEmbedding(np.ones((100, 4), np.float32), ipu.HostEmbeddingSGD(0.1))
            token = table.token()
            gradient = jax.grad(lambda token, of=table: jnp.sum(of.lookup(token, ids) ** 2))
            jax.block_until_ready(token + gradient(token))
            del table, token, gradient
        gc.collect()
        return len(client.live_executables())

    assert programs_after(5) == programs_after(1)
