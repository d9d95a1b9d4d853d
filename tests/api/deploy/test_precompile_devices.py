"""Saved programs over several devices: by JAX and without it, against what jit computes."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

import ipujax as ipu
from tests.conftest import RunPython

RANDOM = np.random.default_rng(0)
W = RANDOM.normal(size=(6, 8)).astype(np.float32)
X = RANDOM.normal(size=(4, 6)).astype(np.float32)


def mesh_of(*shape: int) -> Mesh:
    names = ("a", "b", "c")[: len(shape)]
    devices = np.array(jax.devices("ipu")[: int(np.prod(shape))]).reshape(shape)
    return Mesh(devices, names)


def layers(w, x):
    y = jnp.tanh(x @ w)
    return {"y": y, "sum": y.sum(), "turned": y.T, "whole": w}


SPECS = [
    (mesh_of(2, 2), PartitionSpec(None, "b"), PartitionSpec("a", None)),
    (mesh_of(2, 2), PartitionSpec("a", "b"), PartitionSpec(None, ("b", "a"))),
    (mesh_of(4), PartitionSpec(), PartitionSpec("a")),
    (mesh_of(2), PartitionSpec("a"), PartitionSpec()),
]


@pytest.mark.parametrize(("mesh", "of_w", "of_x"), SPECS)
def test_a_saved_program_is_what_jit_gives(tmp_path: Path, mesh: Mesh, of_w, of_x):
    if X.shape[1] % 4 and of_x == PartitionSpec(None, ("b", "a")):
        args = (W[:4], X[:, :4])
    else:
        args = (W, X)
    fun = jax.jit(layers, in_shardings=(NamedSharding(mesh, of_w), NamedSharding(mesh, of_x)))
    ipu.precompile(fun, *args).save(tmp_path / "a", weights={"w": args[0]})
    wanted = fun(*args)
    loaded = ipu.load(tmp_path / "a")
    found = loaded(args[1])
    jax.tree.map(np.testing.assert_array_equal, found, wanted)
    for name in wanted:  # laid out as jit lays them out
        indices = wanted[name].sharding.devices_indices_map(wanted[name].shape)
        assert found[name].sharding.devices_indices_map(wanted[name].shape) == indices
    assert f"on {mesh.size} devices" in str(loaded.description)
    np.testing.assert_array_equal(found["y"] + found["turned"].T, 2 * np.asarray(wanted["y"]))
    with ipu.runtime.Session(tmp_path / "a") as session:
        for _ in range(2):
            jax.tree.map(np.testing.assert_array_equal, session.run(args[1]), wanted)
        jax.tree.map(np.testing.assert_array_equal, session.submit(args[1]).result(), wanted)
        session.set_weights({"w": 2 * args[0]})
        np.testing.assert_array_equal(session.weights["w"], 2 * args[0])
        np.testing.assert_allclose(
            session.run(args[1])["y"], np.tanh(args[1] @ args[0] * 2), rtol=1e-5, atol=1e-6
        )


def test_pmap_and_state_on_two_devices(tmp_path: Path):
    def step(state, x):
        mean = ipu.cross_replica_mean(x)
        return state + mean, x - mean

    mapped = ipu.pmap(step, in_axes=(None, 0), out_axes=(None, 0), donate_argnums=0)
    state, x = np.zeros(3, np.float32), np.float32([[1, 2, 3], [3, 4, 6]])
    ipu.precompile(mapped, state, x).save(tmp_path / "a", weights={"state": state})
    session, loaded = ipu.runtime.Session(tmp_path / "a"), ipu.load(tmp_path / "a")
    for n in range(1, 4):
        for run in (session.run, loaded):
            now, rest = run(x)
            np.testing.assert_array_equal(now, n * x.mean(0))
            np.testing.assert_array_equal(rest, x - x.mean(0))


def test_sharded_state_stays_on_its_devices(tmp_path: Path):
    """The second state's next value has other blocks of the same shape; the third's another shape,
    so that it is no state."""
    mesh = mesh_of(2, 2)
    both = NamedSharding(mesh, PartitionSpec("a", "b"))
    rows = NamedSharding(mesh, PartitionSpec("a"))
    fun = jax.jit(
        lambda s, t, u, x: (s + x, t.T + x.T, u.T),
        in_shardings=(both, both, rows, both),
        donate_argnums=(0, 1, 2),
    )
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    program = ipu.precompile(fun, x, x, x[:, :2], x)
    weights = {"s": 0 * x, "t": 0 * x, "u": x[:, :2]}
    program.save(tmp_path / "a", weights=weights)
    session, loaded = ipu.runtime.Session(tmp_path / "a"), ipu.load(tmp_path / "a")
    assert session.description.output_alias == (0, 1, 2)
    t = 0 * x
    for n in range(1, 4):
        t = t.T + x.T
        for run in (session.run, loaded):
            found = run(x)
            np.testing.assert_array_equal(found[0], n * x)
            np.testing.assert_array_equal(found[1], t)
            np.testing.assert_array_equal(found[2], x[:, :2].T)
    for state in (session.weights, loaded.weights):
        np.testing.assert_array_equal(state["s"], 3 * x)
        np.testing.assert_array_equal(state["t"], t)
        np.testing.assert_array_equal(state["u"], x[:, :2])


def test_no_device_is_needed(tmp_path: Path, run_python: RunPython):
    """Compiled over a mesh of CPU devices, in a process that has no IPU."""
    code = f"""
import jax, jax.numpy as jnp, numpy as np, ipujax as ipu
from jax.sharding import NamedSharding, PartitionSpec as P
assert [d.platform for d in jax.devices()] == ["cpu"] * 2
rows = NamedSharding(jax.make_mesh((2,), ("d",)), P("d"))
fun = jax.jit(lambda x: (x * 3, x.sum()), in_shardings=rows)
ipu.precompile(fun, jax.ShapeDtypeStruct((4, 2), jnp.float32)).save({str(tmp_path / "a")!r})
"""
    flags = {"JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "2"}
    ran = run_python("-c", code, env=flags)
    assert ran.returncode == 0, ran.stderr
    x = np.arange(8, dtype=np.float32).reshape(4, 2)
    for run in (ipu.load(tmp_path / "a"), ipu.runtime.Session(tmp_path / "a").run):
        tripled, total = run(x)
        np.testing.assert_array_equal(tripled, 3 * x)
        assert total == 28


def test_what_was_exported_over_several_devices_is_compiled(tmp_path: Path):
    mesh = mesh_of(2, 2)
    shardings = (
        NamedSharding(mesh, PartitionSpec(None, "b")),
        NamedSharding(mesh, PartitionSpec("a")),
    )
    fun = jax.jit(layers, in_shardings=shardings)
    exported = jax.export.export(fun, platforms=["ipu"])(W, X)
    program = ipu.precompile(jax.export.deserialize(bytearray(exported.serialize())))
    assert [(leaf.name, leaf.counts) for leaf in program.arguments] == [
        ("w", (1, 2)),
        ("x", (2, 1)),
    ]
    program.save(tmp_path / "a", weights={"w": W})
    for run in (ipu.load(tmp_path / "a"), ipu.runtime.Session(tmp_path / "a").run):
        jax.tree.map(np.testing.assert_array_equal, run(X), fun(W, X))


def test_stages_over_two_ipus_of_a_device(tmp_path: Path):
    def model(w, x):
        with ipu.shard(0):
            h = jnp.tanh(x @ w)
        with ipu.shard(1):
            return h @ w.T

    program = ipu.precompile(model, W, X, target={"ipus_per_device": 2})
    program.save(tmp_path / "a", weights={"w": W})
    session = ipu.runtime.Session(tmp_path / "a")
    assert session.description.target["ipus_per_device"] == "2"
    np.testing.assert_allclose(session.run(X), np.tanh(X @ W) @ W.T, rtol=1e-5, atol=1e-5)


def test_collectives_of_shard_map(tmp_path: Path):
    mesh = mesh_of(4)
    spread = PartitionSpec("a")

    @jax.jit
    @partial(jax.shard_map, mesh=mesh, in_specs=spread, out_specs=spread)
    def turned(x):
        return lax.ppermute(x, "a", [(i, (i + 1) % 4) for i in range(4)]) + lax.psum(x, "a")

    ipu.precompile(turned, X).save(tmp_path / "a")
    wanted = np.roll(X, 1, 0) + X.sum(0)
    for run in (ipu.load(tmp_path / "a"), ipu.runtime.Session(tmp_path / "a").run):
        np.testing.assert_allclose(run(X), wanted, rtol=1e-5, atol=1e-6)
    chosen = jax.devices("ipu")[::-1][:4]
    found = ipu.load(tmp_path / "a", device=chosen)(X)
    assert [s.device for s in found.addressable_shards] == chosen
    with pytest.raises(ipu.PlacementError, match="needs 4 devices for jit_turned; got 1"):
        ipu.load(tmp_path / "a", device=chosen[0])
    with pytest.raises(ipu.PlacementError, match="got 4, 1 of them different"):
        ipu.load(tmp_path / "a", device=[chosen[0]] * 4)


def test_unreduced_results_are_refused():
    devices = np.array(jax.devices("ipu")[:2])
    mesh = Mesh(devices, ("a",), axis_types=(AxisType.Explicit,))
    parts = NamedSharding(mesh, PartitionSpec(unreduced={"a"}))
    with pytest.raises(ipu.ExecutableError, match="needs arguments and results that are reduced"):
        ipu.precompile(
            jax.jit(lambda x: jax.reshard(x, parts)),
            jax.device_put(X, NamedSharding(mesh, PartitionSpec())),
        )
