"""Spans and summaries of tensors, from inside programs."""

from __future__ import annotations

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from ipujax.errors import ConfigError

X = np.array([[1.0, -4.0, np.inf], [2.5, np.nan, 0.5]], np.float32)
FINITE = np.array([1.0, -4.0, 2.5, 0.5], np.float32)


def summed_up(f, *args):
    with ipu.summaries() as found:
        result = jax.jit(f)(*args)
    return result, found


def test_a_summary_is_of_the_finite_elements():
    result, (found,) = summed_up(lambda x: ipu.summary("x", x) + 1, X)
    np.testing.assert_array_equal(result, X + 1)
    assert (found.name, found.shape, found.dtype, found.num_finite) == ("x", (2, 3), "float32", 4)
    assert (found.min, found.max) == (-4, 2.5)
    assert found.mean == pytest.approx(FINITE.mean())
    assert found.std == pytest.approx(FINITE.std())


def test_nothing_finite_and_integers():
    _, (found,) = summed_up(lambda x: ipu.summary("x", x), np.full(3, np.nan, np.float16))
    assert found.num_finite == 0
    assert all(np.isnan([found.min, found.max, found.mean, found.std]))
    _, (found,) = summed_up(lambda x: ipu.summary("x", x), np.arange(5, dtype=np.int32))
    assert (found.min, found.max, found.mean, found.num_finite) == (0, 4, 2, 5)


def test_derivatives_and_examples_see_the_identity():
    slope, found = summed_up(jax.grad(lambda x: jnp.sum(ipu.summary("x", x) ** 2)), FINITE)
    np.testing.assert_allclose(slope, 2 * FINITE)
    assert [each.max for each in found] == [2.5]
    result, found = summed_up(jax.vmap(lambda x: ipu.summary("x", x) * 2), FINITE.reshape(2, 2))
    np.testing.assert_array_equal(result, 2 * FINITE.reshape(2, 2))
    assert sorted(each.max for each in found) == [1.0, 2.5]
    assert {each.shape for each in found} == {(2,)}


def test_iterations_shards_and_outlined_functions_are_summed_up_apart():
    def grown(x, _):
        return ipu.summary("x", x) + 1, None

    _, found = summed_up(lambda x: jax.lax.scan(grown, x, None, length=3)[0], FINITE)
    assert [each.max for each in found] == [2.5, 3.5, 4.5]
    mesh = jax.sharding.Mesh(jax.devices()[:4], ("replica",))
    spread = jax.P("replica")
    x = jax.device_put(FINITE, jax.NamedSharding(mesh, spread))
    shards = jax.shard_map(
        lambda x: ipu.summary("x", x), mesh=mesh, in_specs=spread, out_specs=spread
    )
    _, found = summed_up(shards, x)
    assert sorted(each.max for each in found) == sorted(FINITE)
    _, found = summed_up(lambda x: ipu.outlined(lambda x: ipu.summary("x", x))(x), FINITE)
    assert [each.shape for each in found] == [(4,)]


def test_only_open_contexts_collect():
    step = jax.jit(lambda x: ipu.summary("x", x))
    step(FINITE)
    jax.effects_barrier()
    with ipu.summaries() as outer:
        step(FINITE)
        with ipu.summaries() as inner:
            step(FINITE)
    assert (len(outer), len(inner)) == (2, 1)


def test_a_program_that_still_runs_is_of_the_context_before():
    def late(x):
        time.sleep(0.2)
        return x

    def step(x):
        x = jax.pure_callback(late, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        return ipu.summary("x", x)

    step = jax.jit(step)
    step(FINITE)
    with ipu.summaries() as found:
        pass
    assert found == []


@pytest.mark.parametrize("name", ["", "a/b", 3])
def test_names_are_checked(name):
    with pytest.raises(ConfigError, match=r"\[summary\] needs a name without slashes"):
        ipu.summary(name, 1.0)
    with (
        pytest.raises(ConfigError, match=r"\[trace\] needs a name without slashes"),
        ipu.trace(name),
    ):
        pass


@pytest.mark.parametrize("x", [np.ones(3, bool), np.ones(3, np.complex64), np.ones(0, np.float32)])
def test_summaries_are_of_real_numbers(x):
    with pytest.raises(ConfigError, match=r"\[summary\] needs real numbers"):
        ipu.summary("x", x)
