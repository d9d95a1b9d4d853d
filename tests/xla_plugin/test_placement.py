"""Memory kinds and layouts that IPUs do not have are clear errors."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.compute_on import compute_on
from jax.experimental.layout import Format, Layout, with_layout_constraint
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P
from jaxlib import _jax

from ipujax.compiler.compile import compile_module
from ipujax.errors import PlacementError

X = np.arange(8, dtype=np.float32).reshape(2, 4)
DEVICE = jax.memory.Space.Device
REFUSED_KIND = "needs one of the memory kinds of IPUs, 'device' and 'pinned_host'; got 'unpinned"
TILED = Layout((0, 1), ((2, 2),))


@pytest.fixture
def x(device: jax.Device) -> jax.Array:
    return jax.device_put(X, device)


def test_the_devices_memory_is_there(x: jax.Array, device: jax.Device):
    here = SingleDeviceSharding(device, memory_kind="device")
    np.testing.assert_array_equal(jax.device_put(x, DEVICE), X)
    np.testing.assert_array_equal(jax.jit(lambda a: jax.device_put(a, DEVICE) + 1)(x), X + 1)
    np.testing.assert_array_equal(jax.jit(lambda a: jax.device_put(a, here) + 1)(x), X + 1)
    np.testing.assert_array_equal(jax.jit(lambda a: a + 1, out_shardings=here)(x), X + 1)


@pytest.mark.parametrize("kind", ["argument", "result", "inside"])
def test_programs_from_elsewhere_are_refused(kind: str):
    host = '{mhlo.memory_kind = "unpinned_host"}'
    put = (
        "stablehlo.custom_call @annotate_device_placement(%a) {has_side_effect = true, "
        'mhlo.frontend_attributes = {_xla_buffer_placement = "unpinned_host"}} '
        ": (tensor<4xf32>) -> tensor<4xf32>"
    )
    text = f"""
module @other {{
  func.func @main(%a: tensor<4xf32> {host if kind == "argument" else ""})
      -> (tensor<4xf32> {host if kind == "result" else ""}) {{
    %0 = {put if kind == "inside" else "stablehlo.negate %a : tensor<4xf32>"}
    return %0 : tensor<4xf32>
  }}
}}"""
    code = _jax.mlir.serialize_portable_artifact(text.encode(), "1.10.0", True)
    with pytest.raises(PlacementError, match=REFUSED_KIND):
        compile_module(code, b"", {})


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (TILED, r"orders the dimensions of the array; got \{1,0:T\(2,2\)\}, with tiles"),
        (Layout((1, 0), (), 4), r"orders the dimensions of the array; got \{0,1:E\(4\)\}, with"),
        (Layout((1, 1)), r"names each of 2 dimensions once; got \{1,1\}"),
        (Layout((0, 2)), r"names each of 2 dimensions once; got \{2,0\}"),
    ],
    ids=["tiled", "packed", "twice", "unknown"],
)
def test_other_layouts_are_refused(x: jax.Array, device: jax.Device, layout: Layout, message: str):
    given = Format(layout, SingleDeviceSharding(device))
    refusals = {
        "device_put of an array": lambda: jax.device_put(x, given),
        "device_put of NumPy's": lambda: jax.device_put(X, given),
        "device_put in jit": lambda: jax.jit(lambda a: jax.device_put(a, given) + 1)(x),
        "result": lambda: jax.jit(lambda a: a + 1, out_shardings=given)(x),
        "argument": lambda: jax.jit(lambda a: a + 1, in_shardings=given)(X),
    }
    for name, refused in refusals.items():
        with pytest.raises((PlacementError, jax.errors.JaxRuntimeError), match=message):
            print(name, refused())


@pytest.mark.parametrize("num_devices", [1, 4])
def test_the_compiler_says_which_layouts_it_chose(num_devices: int):
    rows = NamedSharding(Mesh(np.array(jax.devices("ipu")[:num_devices]), ("x",)), P(None, "x"))
    chosen = Format(Layout.AUTO, rows)
    f = jax.jit(lambda a, b: (a + b, a.sum()), in_shardings=(chosen, None), out_shardings=None)
    compiled = f.lower(jax.ShapeDtypeStruct(X.shape, X.dtype), 1.0).compile()
    (given, scalar), _ = compiled.input_formats
    assert (given.layout.major_to_minor, scalar.layout.major_to_minor) == ((0, 1), ())
    assert [f.layout.major_to_minor for f in compiled.output_formats] == [(0, 1), ()]
    x = jax.device_put(X, given)
    assert x.format == given
    np.testing.assert_array_equal(compiled(x, 1.0)[0], X + 1)


@pytest.mark.parametrize("layout", [Layout((0, 1)), None], ids=["row-major", "none"])
def test_the_row_major_layout_is_there(x: jax.Array, device: jax.Device, layout: Layout | None):
    given = Format(layout, SingleDeviceSharding(device))
    np.testing.assert_array_equal(jax.device_put(x, given), X)
    np.testing.assert_array_equal(jax.jit(lambda a: jax.device_put(a, given) + 1)(x), X + 1)
    f = jax.jit(lambda a: a + 1, in_shardings=given, out_shardings=given)
    np.testing.assert_array_equal(f(x), X + 1)
    automatic = Format(Layout.AUTO)
    f = jax.jit(lambda a: a + 1, in_shardings=automatic, out_shardings=automatic)
    compiled = f.lower(jax.ShapeDtypeStruct(X.shape, X.dtype)).compile()
    np.testing.assert_array_equal(compiled(x), X + 1)


def test_a_row_major_constraint_changes_nothing(x: jax.Array):
    f = jax.jit(lambda a: with_layout_constraint(jnp.sin(a), Layout((0, 1))) + 1)
    np.testing.assert_allclose(f(x), np.sin(X) + 1, rtol=1e-5)
    mesh = Mesh(np.array(jax.devices("ipu")[:2]), ("a",))
    np.testing.assert_allclose(
        f(jax.device_put(X, NamedSharding(mesh, P("a")))), np.sin(X) + 1, 1e-5
    )


def test_computing_on_the_host_is_refused(x: jax.Array):
    on_host = compute_on("device_host")(jax.jit(lambda a: a * 3))

    def in_block(a: Any) -> Any:
        with compute_on("device_host"):
            return a * 3

    mesh = Mesh(np.array(jax.devices("ipu")[:2]), ("a",))
    sharded = jax.device_put(X, NamedSharding(mesh, P("a")))
    for f in (jax.jit(lambda a: on_host(a) + 1), jax.jit(in_block)):
        for argument in (x, sharded):
            with pytest.raises(jax.errors.JaxRuntimeError, match=r"for 'host' \(at test_placement"):
                f(argument)


def test_computing_on_the_device_is_what_programs_do(x: jax.Array):
    f = compute_on("device")(jax.jit(lambda a: a * 3))
    np.testing.assert_array_equal(jax.jit(lambda a: f(a) + 1)(x), X * 3 + 1)
