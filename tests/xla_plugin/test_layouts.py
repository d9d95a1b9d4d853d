"""Layouts of arrays, arguments and results: what JAX shows of them, and numbers that stay."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from jax import export
from jax.experimental import serialize_executable
from jax.experimental.layout import Format, Layout, with_layout_constraint
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

RNG = np.random.default_rng(0)
DTYPES = [np.dtype(t) for t in ("bool", "int8", "uint16", "int32", "float16", "float32")]
DTYPES += [np.dtype(np.complex64), np.dtype(ml_dtypes.bfloat16)]
X = np.arange(6, dtype=np.float32).reshape(2, 3)

Order = tuple[int, ...]


def drawn_array() -> np.ndarray:
    rank = int(RNG.integers(0, 6))
    shape = RNG.choice([0, 1, 2, 3, 5], rank, p=[0.04, 0.16, 0.3, 0.3, 0.2])
    numbers = RNG.integers(0, 100, shape)
    return np.asarray(numbers).astype(DTYPES[RNG.integers(len(DTYPES))])


def drawn_order(rank: int) -> Order:
    return tuple(map(int, RNG.permutation(rank)))


def format_of(order: Order, device: jax.Device) -> Format:
    return Format(Layout(order), SingleDeviceSharding(device))


def bytes_of(array: np.ndarray, order: Order) -> bytes:
    """The elements in the order in which the layout has them."""
    return np.ascontiguousarray(array.transpose(order)).tobytes()


def check(x: jax.Array, order: Order, array: np.ndarray) -> None:
    """What can be seen of `x` is what `array` looks like in this layout."""
    assert x.format.layout.major_to_minor == order
    assert x.nbytes == array.nbytes
    jax.block_until_ready(x)
    assert ctypes.string_at(x.unsafe_buffer_pointer(), array.nbytes) == bytes_of(array, order)
    host = np.asarray(x)
    np.testing.assert_array_equal(host, array)
    if array.size > 1:
        wide = [axis for axis in order if array.shape[axis] > 1]
        assert sorted(wide, key=lambda axis: -host.strides[axis]) == wide


def same_as_cpu(observe: Callable[[jax.Device], Any]) -> None:
    """What is seen on an IPU is what is seen on JAX's CPU backend."""
    on_ipu, on_cpu = (observe(jax.devices(platform)[0]) for platform in ("ipu", "cpu"))
    assert jax.tree.leaves(on_ipu) == jax.tree.leaves(on_cpu)


@pytest.mark.parametrize("draw", range(60))
def test_arrays_keep_the_layout_that_they_are_put_in(device: jax.Device, draw: int):
    array = drawn_array()
    order, other = drawn_order(array.ndim), drawn_order(array.ndim)
    x = jax.device_put(array, format_of(order, device))
    check(x, order, array)
    check(jax.device_put(x, format_of(other, device)), other, array)
    check(jax.device_put(jnp.asarray(array, device=device), format_of(other, device)), other, array)
    check(jax.device_put(x, jax.devices("ipu")[1]), order, array)  # a copy between devices
    check(jax.device_put(x, format_of(order, device)), order, array)


@pytest.mark.parametrize("draw", range(40))
def test_programs_take_and_give_layouts(device: jax.Device, draw: int):
    a, b = drawn_array(), drawn_array()
    given = [drawn_order(a.ndim), drawn_order(b.ndim)]
    wanted = [drawn_order(a.ndim), drawn_order(b.ndim)]
    f = jax.jit(
        lambda a, b: (a, jnp.sort(b.ravel())[::-1].reshape(b.shape), b),
        in_shardings=tuple(format_of(order, device) for order in given),
        out_shardings=(*(format_of(order, device) for order in wanted), None),
    )
    compiled = f.lower(*(jax.ShapeDtypeStruct(x.shape, x.dtype) for x in (a, b))).compile()
    formats = [each.layout.major_to_minor for each in compiled.input_formats[0]]
    assert formats == given
    formats = [each.layout.major_to_minor for each in compiled.output_formats]
    assert formats == [*wanted, tuple(range(b.ndim))]
    saved = serialize_executable.serialize(compiled)
    loaded = serialize_executable.deserialize_and_load(*saved, execution_devices=[device])
    arguments = [
        jax.device_put(x, format_of(o, device)) for x, o in zip((a, b), given, strict=True)
    ]
    expected = (a, np.sort(b.ravel())[::-1].reshape(b.shape), b)
    for run in (f, compiled, loaded):
        for result, like, order in zip(run(*arguments), expected, formats, strict=True):
            check(result, order, like)
    for result, like in zip(f(a, b), expected, strict=True):
        np.testing.assert_array_equal(result, like)


@pytest.mark.parametrize("donated", [(0,), (0, 1)])
@pytest.mark.parametrize("draw", range(10))
def test_donated_arrays_may_change_their_layout(device: jax.Device, draw: int, donated: Order):
    array = RNG.normal(size=RNG.integers(1, 6, 3)).astype(np.float32)
    orders = [drawn_order(3) for _ in range(4)]
    a, b = (jax.device_put(array * (k + 1), format_of(orders[k], device)) for k in (0, 1))
    a.unsafe_buffer_pointer()
    results = tuple(format_of(order, device) for order in orders[2:])
    f = jax.jit(lambda a, b: (a + b, a - b), donate_argnums=donated, out_shardings=results)
    total, difference = f(a, b)
    check(total, orders[2], array + array * 2)
    check(difference, orders[3], -array)
    assert [a.is_deleted(), b.is_deleted()] == [True, 1 in donated]


def test_arrays_of_other_layouts_are_values_as_any_other(device: jax.Device):
    def observe(device: jax.Device) -> Any:
        x = jax.device_put(X, format_of((1, 0), device))
        made = {
            "sum": x + 1,
            "jit": jax.jit(lambda a: a * 2)(x),
            "gradient": jax.grad(lambda a: (a**2).sum())(x),
            "batched": jax.vmap(lambda a: a * 2, in_axes=1)(x),
            "copy": x.copy(),
            "row": x[0],
            "put": jax.device_put(x, device),
            "in jit": jax.jit(lambda a: jax.device_put(a, x.format))(x),
            "shard": x.addressable_shards[0].data,
            "array": jax.make_array_from_single_device_arrays(x.shape, x.sharding, [x]),
        }
        return {k: (v.format.layout.major_to_minor, v.tolist()) for k, v in made.items()}

    same_as_cpu(observe)


@pytest.mark.parametrize("num_devices", [1, 4])
def test_constraints_decide_the_layouts_of_results(device: jax.Device, num_devices: int):
    array = np.arange(24, dtype=np.float32).reshape(4, 3, 2)

    @jax.jit
    def f(a: jax.Array) -> Any:
        inner = with_layout_constraint(a * 2, Layout((1, 2, 0)))
        return inner, inner + 1, with_layout_constraint(inner, Layout((2, 0, 1))), a * 2

    rows = NamedSharding(Mesh(np.array(jax.devices("ipu")[:num_devices]), ("x",)), P("x"))
    results = f(jax.device_put(array, rows))
    expected = [(1, 2, 0), (0, 1, 2), (2, 0, 1), (0, 1, 2)]
    assert [r.format.layout.major_to_minor for r in results] == expected
    for result, added in zip(results, (0, 1, 0, 0), strict=True):
        np.testing.assert_array_equal(result, array * 2 + added)


def test_shards_have_the_layout(device: jax.Device):
    def observe(device: jax.Device) -> Any:
        devices = np.array(jax.devices(device.platform)[:4]).reshape(2, 2)
        columns = NamedSharding(Mesh(devices, ("x", "y")), P(None, ("x", "y")))
        rows = NamedSharding(columns.mesh, P("y"))
        array = np.arange(64, dtype=np.int32).reshape(4, 16)
        x = jax.device_put(array, Format(Layout((1, 0)), columns))
        f = jax.jit(lambda a: (a + 1, a @ a.T), out_shardings=(Format(Layout((1, 0)), rows), rows))
        made = [x, jax.device_put(x, Format(Layout((1, 0)), rows)), *f(x)]
        held = [
            [(s.data.format.layout.major_to_minor, s.data.tolist()) for s in a.addressable_shards]
            for a in made
        ]
        return [a.format.layout.major_to_minor for a in made], held

    same_as_cpu(observe)


def test_layouts_leave_exported_programs_as_they_are(device: jax.Device):
    def observe(device: jax.Device) -> Any:
        transposed = format_of((1, 0), device)
        f = jax.jit(lambda a: a * 2, in_shardings=transposed, out_shardings=transposed)
        exported = export.export(f, platforms=[device.platform])(
            jax.ShapeDtypeStruct(X.shape, X.dtype)
        )
        call = jax.jit(export.deserialize(exported.serialize()).call)
        results = [call(jax.device_put(X, device)), call(jax.device_put(X, transposed))]
        return [(r.format.layout.major_to_minor, r.tolist()) for r in results]

    same_as_cpu(observe)


def test_arguments_of_another_layout_are_jaxs_errors(device: jax.Device):
    x, transposed = jax.device_put(X, device), format_of((1, 0), device)
    f = jax.jit(lambda a: a + 1, in_shardings=transposed)
    with pytest.raises(ValueError, match="Layout passed to jit does not match"):
        f(x)
    compiled = f.lower(jax.ShapeDtypeStruct(X.shape, X.dtype)).compile()
    with pytest.raises(ValueError, match="disagree with the layouts of arguments"):
        compiled(x)
    automatic = jax.jit(lambda a: a + 1, in_shardings=Format(Layout.AUTO, transposed.sharding))
    with pytest.raises(ValueError, match="Layout passed to jit does not match"):
        automatic(jax.device_put(X, transposed))


def test_views_show_the_layout(device: jax.Device):
    x = jax.device_put(X, format_of((1, 0), device))
    view = np.from_dlpack(x)
    assert view.strides == (4, 8)
    np.testing.assert_array_equal(view, X)
    np.testing.assert_array_equal(jax.dlpack.from_dlpack(x), X)
    with pytest.raises(BufferError, match="non default layout"):
        memoryview(x)


def test_a_pointer_may_be_asked_for_before_the_elements_are_there(device: jax.Device):
    transposed = format_of((1, 0), device)

    def slowly(a: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 20000, lambda _, b: jnp.sin(b) + a, a)

    a = jnp.ones((30, 20), device=device)
    result = jax.jit(slowly, out_shardings=transposed)(a + jnp.arange(20, dtype=jnp.float32))
    pointer = result.unsafe_buffer_pointer()
    host = np.asarray(result)
    assert ctypes.string_at(pointer, host.nbytes) == bytes_of(host, (1, 0))


SIZES = [("bool", 8), ("int2", 2), ("uint4", 4), ("int8", 8), ("int32", 32), ("float4_e2m1fn", 4)]
SIZES += [("float8_e4m3b11fnuz", 8), ("float8_e8m0fnu", 8), ("bfloat16", 16), ("complex64", 64)]


@pytest.mark.parametrize(("name", "bits"), SIZES)
def test_layouts_may_repeat_the_size_of_an_element(device: jax.Device, name: str, bits: int):
    array = np.ones((2, 3)).astype(jnp.dtype(name))
    x = jax.device_put(array, device)

    def moved(format: Format) -> list[jax.Array]:
        inside = jax.jit(lambda x: jax.device_put(x, format))(x)
        return [inside, jax.device_put(x, format), jax.jit(lambda x: x, out_shardings=format)(x)]

    for format in (x.format, Format(Layout((1, 0), (), bits), x.sharding)):
        inside, *outside = moved(format)
        np.testing.assert_array_equal(np.asarray(inside), array)
        for y in outside:
            check(y, format.layout.major_to_minor, array)
    with pytest.raises((ValueError, jax.errors.JaxRuntimeError), match="elements of another size"):
        moved(Format(Layout((1, 0), (), 2 * bits), x.sharding))
