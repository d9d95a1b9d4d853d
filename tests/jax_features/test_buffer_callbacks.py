"""`jax.experimental.buffer_callback`: functions that fill their results in place."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import lax
from jax.experimental.buffer_callback import ExecutionStage, buffer_callback
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def add_one(ctx: Any, out: Any, x: Any) -> None:
    np.asarray(out)[...] = np.asarray(x) + 1


def like(x: Any) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


@pytest.mark.parametrize("wrap", [jax.jit, lambda f: f], ids=["jit", "eager"])
def test_it_fills_results(wrap: Any, device: jax.Device) -> None:
    f = wrap(buffer_callback(add_one, like(X)))
    np.testing.assert_array_equal(f(jax.device_put(X, device)), X + 1)


@pytest.mark.parametrize(
    "dtype", [np.int8, np.bool_, np.complex64, ml_dtypes.bfloat16, jnp.int4, jnp.float8_e5m2]
)
def test_buffers_are_like_arrays(dtype: Any, device: jax.Device) -> None:
    seen = []

    def look(ctx: Any, out: Any, x: Any) -> None:
        seen.append((x.shape, x.dtype, x.ndim, x.writeable, out.writeable, ctx.stage))
        np.asarray(out)[...] = np.asarray(x)

    x = X[:, :2].astype(dtype)
    found = jax.jit(buffer_callback(look, like(x)))(jax.device_put(x, device))
    np.testing.assert_array_equal(np.asarray(found), x)
    assert seen == [((2, 2), x.dtype, 2, False, True, ExecutionStage.EXECUTE)]


def test_trees_of_arguments_and_results(device: jax.Device) -> None:
    def both(ctx: Any, out: Any, pair: Any, *, scale: Any) -> None:
        np.asarray(out["sum"])[...] = np.asarray(pair[0]) + np.asarray(pair[1])
        np.from_dlpack(out["scaled"])[...] = np.from_dlpack(pair[0]) * np.asarray(scale)

    f = jax.jit(buffer_callback(both, {"sum": like(X), "scaled": like(X)}))
    x = jax.device_put(X, device)
    found = f((x, x * 2), scale=jnp.float32(10))
    np.testing.assert_array_equal(found["sum"], 3 * X)
    np.testing.assert_array_equal(found["scaled"], 10 * X)


def test_a_result_in_the_place_of_an_argument_begins_with_its_elements(device: jax.Device) -> None:
    def add_in_place(ctx: Any, out: Any, x: Any, y: Any) -> None:
        np.asarray(out)[...] += np.asarray(x)

    f = jax.jit(buffer_callback(add_in_place, like(X), input_output_aliases={1: 0}))
    y = jax.device_put(X * 10, device)
    np.testing.assert_array_equal(f(jax.device_put(X, device), y), 11 * X)
    np.testing.assert_array_equal(y, 10 * X)


@pytest.mark.parametrize("method", ["sequential", "expand_dims"])
def test_inside_vmap_and_scan(method: str, device: jax.Device) -> None:
    row = jax.ShapeDtypeStruct((3,), X.dtype)
    f = buffer_callback(add_one, row, vmap_method=method)
    x = jax.device_put(X, device)
    np.testing.assert_array_equal(jax.jit(jax.vmap(f))(x), X + 1)
    total, _ = jax.jit(lambda x: lax.scan(lambda c, r: (f(c + r), None), x[0] * 0, x))(x)
    np.testing.assert_array_equal(total, X.sum(0) + 2)


def test_a_side_effect_is_kept(device: jax.Device) -> None:
    seen = []

    def note(ctx: Any, out: Any, x: Any) -> None:
        seen.append(float(np.asarray(x).sum()))

    f = buffer_callback(note, (), has_side_effect=True)
    jax.jit(lambda x: (f(x), x + 1)[1])(jax.device_put(X, device)).block_until_ready()
    jax.effects_barrier()
    assert seen == [15.0]


def test_on_several_devices() -> None:
    mesh = Mesh(np.array(jax.devices("ipu")[:2]), ("a",))
    x = jax.device_put(X, NamedSharding(mesh, P("a")))
    np.testing.assert_array_equal(jax.jit(buffer_callback(add_one, like(X)))(x), X + 1)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda ctx, out, x: 3, "needs a function without results for buffer_callback"),
        (lambda ctx, out, x: ctx.stream, "needs a GPU for a stream"),
        (lambda ctx, out, x: {}["key"], "KeyError: 'key'"),
    ],
    ids=["result", "stream", "error"],
)
def test_errors_of_the_function(function: Any, message: str, device: jax.Device) -> None:
    f = jax.jit(buffer_callback(function, like(X)))
    with pytest.raises(jax.errors.JaxRuntimeError, match=message):
        f(jax.device_put(X, device)).block_until_ready()
