"""Programs over several devices: converted, and compared with the program that was given."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding

import ipujax as ipu
from ipujax import jax_compat
from ipujax.convert.conversion import Conversion
from ipujax.convert.settings import settings_of
from ipujax.errors import ConvertError

X = np.random.default_rng(0).normal(size=(8, 16)).astype(np.float32)
W = np.random.default_rng(1).normal(size=(16, 8)).astype(np.float32) / 4


def mesh_of(kind: AxisType = AxisType.Auto) -> Any:
    return jax.make_mesh((2, 2), ("a", "b"), axis_types=(kind,) * 2, devices=jax.devices("ipu")[:4])


AUTO, EXPLICIT = mesh_of(), mesh_of(AxisType.Explicit)


def layers(w: Any, x: Any) -> Any:
    """Sharded by constraints alone."""
    y = jax.nn.gelu(x @ w, approximate=False)
    return lax.with_sharding_constraint(y, NamedSharding(AUTO, jax.P("a", jax.P.UNCONSTRAINED)))


def collectives(w: Any, x: Any) -> Any:
    """With a part for each device, which knows its place."""

    def local(y: Any) -> Any:
        turned = lax.ppermute(y, "a", [(0, 1), (1, 0)])
        return lax.psum(turned * (1 + lax.axis_index("a")), "a") + lax.axis_index("b")

    rows = jax.P("a", "b")
    y = jnp.tanh(x @ w)
    return jax.shard_map(local, mesh=AUTO, in_specs=rows, out_specs=jax.P(None, "b"))(y)


def nested(w: Any, x: Any) -> Any:
    """Manual over one axis, and JAX's over the other."""

    def local(y: Any) -> Any:
        return lax.psum(y * (1 + lax.axis_index("a")), "a") @ w.T

    specs = {"in_specs": jax.P("a"), "out_specs": jax.P(), "axis_names": {"a"}}
    return jax.shard_map(local, mesh=AUTO, **specs)(x @ w)


def exported(function: Any, mesh: Any = AUTO) -> jax.export.Exported:
    shardings = NamedSharding(mesh, jax.P(None, "b")), NamedSharding(mesh, jax.P("a"))
    args = [
        jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=each)
        for x, each in zip((W, X), shardings, strict=True)
    ]
    with jax.set_mesh(mesh):
        made = jax.export.export(jax.jit(function), platforms=["ipu"])(*args)
    return jax.export.deserialize(bytearray(made.serialize()))


def converted(program: jax.export.Exported, settings: Any) -> Any:
    made = Conversion(program, settings_of(settings)).program
    assert made.nr_devices == program.nr_devices
    return jax.export.deserialize(bytearray(made.serialize()))


def results(program: jax.export.Exported, *args: np.ndarray) -> np.ndarray:
    mesh = jax_compat.mesh_of_exported(program, jax.devices("ipu")[:4])
    shardings = jax_compat.in_shardings_of(program, mesh)
    placed = [jax.device_put(x, each) for x, each in zip(args, shardings, strict=True)]
    return np.asarray(jax.jit(program.call)(*placed))


@pytest.mark.parametrize("function", [layers, collectives, nested])
def test_without_settings_it_is_the_program(function: Any):
    program = exported(function)
    made = converted(program, {})
    before, after = (jax_compat.in_shardings_of(x, AUTO) for x in (program, made))
    assert [x.spec for x in before] == [x.spec for x in after]
    np.testing.assert_array_equal(results(made, W, X), results(program, W, X))


def test_explicit_axes():
    program = exported(lambda w, x: jnp.tanh(x @ w.astype(x.dtype)), EXPLICIT)
    np.testing.assert_array_equal(results(converted(program, {}), W, X), results(program, W, X))


@pytest.mark.parametrize("function", [layers, collectives, nested])
def test_half_precision(function: Any):
    program = exported(function)
    made = converted(program, {"precision_mode": "FP16"})
    products = [x for x in made.mlir_module().splitlines() if "stablehlo.dot_general" in x]
    assert products
    assert all("f16>" in line for line in products)
    difference = np.abs(results(made, W, X) - results(program, W, X)).max()
    assert 0 < difference < 3e-2


def test_gelus_and_micro_batches():
    program = exported(layers)
    settings = {"gelu_replacement": True, "batch_per_step": 3, "batch_size": 8, "batched": ["^x$"]}
    conversion = Conversion(program, settings_of(settings))
    assert conversion.notes == ["1 GELUs replaced"]
    batches = np.stack([X, X + 1, X - 1])
    found = results(conversion.program, W, batches)
    for one, x in zip(found, batches, strict=True):
        np.testing.assert_allclose(one, results(program, W, x), rtol=1e-3, atol=1e-3)


def test_the_executable_runs_without_jax(tmp_path: Path):
    program = exported(collectives)
    settings = {"embedded_runtime_save_config": {"embedded_runtime_exec_cachedir": str(tmp_path)}}
    Conversion(program, settings_of(settings)).save_executable(tmp_path / "a.ipu")
    with ipu.runtime.Session(tmp_path / "a.ipu") as session:
        assert session.description.num_devices == 4
        assert session.description.parameters == ("w", "x")
        np.testing.assert_array_equal(session.run(W, X), results(program, W, X))


@pytest.mark.parametrize("settings", [{"excluded_nodes": ["tanh"]}, {"no_ipu_placement": True}])
def test_what_is_for_one_device_is_refused(settings: Any):
    with pytest.raises(ConvertError, match=f"one device for {next(iter(settings))}; got one for 4"):
        converted(exported(layers), settings)
