"""Steps and programs that fail, and pipelines on several IPUs, with tables on the host."""

from __future__ import annotations

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ipujax.errors import ConfigError
from tests.api.embed import test_host_embedding as t

SEVERAL_IPUS = """
import jax, numpy as np
import ipujax as ipu
from ipujax.errors import ConfigError
from tests.api.embed import test_host_embedding as t

assert jax.devices("ipu")[0].num_ipus == 4
for schedule in ("grouped", "interleaved", "sequential"):
    for mapping, remat in (([0, 1, 2], None), ([2, 0, 2], True), ([3, 1, 0], None)):
        table, second = t.new_table(), t.new_table()
        stages = [
            lambda token, ids: (table.lookup(token, ids), ids),
            lambda token, x: (x[0] + second.lookup(token, x[1]), x[1]),
            lambda w, x: t.loss_of_rows(x[0], w),
        ]
        loss_of = ipu.pipeline(
            stages, micro_batches=4, reduction="sum", schedule=schedule,
            device_mapping=mapping, remat=remat,
        )
        step = jax.jit(jax.grad(loss_of))
        tokens, wanted = [table.token(), second.token()], t.START.astype(np.float64)
        for ids in (t.IDS, t.IDS[::-1].copy()):
            raised = step([*tokens, t.WEIGHTS], ids)
            assert [float(x) for x in raised[:2]] == [4, 4], raised[:2]
            tokens = [a + b for a, b in zip(tokens, raised)]
            both = 2 * wanted
            wanted = wanted + (t.trained(both, ids) - both)
        for each, token in ((table, tokens[0]), (second, tokens[1])):
            t.check(each, token, wanted, 1e-5)
"""


def test_stages_of_a_pipeline_on_several_ipus(run_python) -> None:
    """Two tables, looked up on different IPUs, in three schedules, two steps each."""
    env = {"JAX_IPU_IPUS_PER_DEVICE": "4", "JAX_IPU_DEVICE_COUNT": "1"}
    done = run_python("-c", SEVERAL_IPUS, env=env)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["ipu", "cpu"])
def test_a_program_of_several_steps_that_fails_is_taken_back(name: str) -> None:
    """The third of four steps fails, after two are in the rows."""
    table = t.new_table(rewind_steps=4)
    is_broken = [True]

    def maybe(index: np.ndarray) -> np.ndarray:
        if is_broken[0] and index == 2:
            raise ValueError("broken")
        return np.float32(0)

    def step(token: jax.Array, each: Any) -> tuple[jax.Array, jax.Array]:
        token, loss = t.step_of(table)(token, each[1])
        scalar = jax.ShapeDtypeStruct((), jnp.float32)
        return token + jax.pure_callback(maybe, scalar, each[0] + 0 * token.astype(int)), loss

    program = jax.jit(lambda token: jax.lax.scan(step, token, (np.arange(4), t.IDS)))
    with jax.default_device(jax.devices(name)[0]):
        old = table.token()
        assert "broken" in t.fails(program, old)
        assert (table._table.rows != t.START).any()
        token = table.rewind(old)
        np.testing.assert_array_equal(table.read(token), t.START)
        is_broken[0] = False
        token, _ = program(token)
        wanted = t.START
        for ids in t.IDS:
            wanted = t.trained(wanted, ids)
        t.check(table, token, wanted)


@pytest.mark.parametrize("steps", [-1, 1.5, True])
def test_rewind_steps_are_a_number(steps: Any) -> None:
    with pytest.raises(ConfigError, match=f"rewind_steps of at least 0; got {steps}"):
        t.new_table(rewind_steps=steps)


def test_a_step_that_fails_after_its_update_changes_nothing() -> None:
    table = t.new_table()
    is_broken = [True]

    def maybe(x: np.ndarray) -> np.ndarray:
        if is_broken[0]:
            raise ValueError("broken")
        return x

    @jax.jit
    def step(token: jax.Array, ids: jax.Array) -> tuple[jax.Array, jax.Array]:
        token, loss = t.step_of(table)(token, ids)
        raised = jax.pure_callback(maybe, jax.ShapeDtypeStruct((), jnp.float32), token)
        return raised, loss

    old = table.token()
    assert "broken" in t.fails(step, old, t.IDS[0])
    is_broken[0] = False
    t.check(table, old, t.START)
    token = table.rewind(old)
    token, _ = step(token, t.IDS[0])
    t.check(table, token, t.trained(t.START, t.IDS[0]))


def test_results_of_a_failed_step_do_not_reach_the_table() -> None:
    """The next step is dispatched with the failed one's token, and does not run.

    A callback that fails at once is an error of the call, so this one fails late.
    """
    table = t.new_table()
    step = jax.jit(t.step_of(table, clip_indices=False))

    def late(ids: np.ndarray) -> np.ndarray:
        time.sleep(0.3)
        return ids

    @jax.jit
    def late_step(token: jax.Array, ids: jax.Array) -> tuple[jax.Array, jax.Array]:
        ids = jax.pure_callback(late, jax.typeof(ids), ids)
        return t.step_of(table, clip_indices=False)(token, ids)

    token, _ = late_step(table.token(), np.full(6, t.ROWS, np.int32))
    shown = t.fails(lambda: step(token, t.IDS[0]))
    assert "[HostEmbedding.lookup] needs indices from 0 to 39; got 40" in shown
    assert float(table.token()) == 0
    t.check(table, 0, t.START)
