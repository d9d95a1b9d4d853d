"""Ahead-of-time compilation for machines that are only described, and loading on real ones."""

from __future__ import annotations

import pickle
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import serialize_executable, topologies
from jax.sharding import NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

import ipujax as ipu

X = np.arange(32, dtype=np.float32).reshape(8, 4)


def column_sums(x):
    return jnp.sin(x).sum(0)


def described(**options: object) -> list[jax.Device]:
    return topologies.get_topology_desc(platform="ipu", **options).devices


def compiled_for(devices: list[jax.Device], fun=column_sums, memory_kind: str | None = None):
    mesh = jax.sharding.Mesh(np.array(devices), ("x",))
    rows = NamedSharding(mesh, P("x"), memory_kind=memory_kind)
    return jax.jit(fun).lower(jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=rows)).compile()


def cycles(device: jax.Device) -> float:
    """Of a product on a device."""
    like = jax.ShapeDtypeStruct((256, 256), np.float32, sharding=SingleDeviceSharding(device))
    return jax.jit(lambda x: x @ x).lower(like).compile().cost_analysis()["cycles"]


def load(saved, devices: list[jax.Device]):
    return serialize_executable.deserialize_and_load(*saved, execution_devices=devices)


MACHINES = [
    ({}, "IPU Mk2 (GC200) Model", 8, 1, 1472),
    ({"topology_name": "bow", "device_count": 64}, "IPU Bow Model", 64, 1, 1472),
    ({"machine": "c600", "num_tiles": 16}, "IPU C600 Model", 8, 1, 16),
    ({"ipus_per_device": 4, "device_count": 2}, "IPU Mk2 (GC200) Model", 2, 4, 4 * 1472),
    ({"num_ipus": "2,1"}, "IPU Mk2 (GC200) Model", 2, 2, 2 * 1472),
]


@pytest.mark.parametrize(("options", "kind", "count", "ipus", "tiles"), MACHINES, ids=str)
def test_descriptions(options: dict, kind: str, count: int, ipus: int, tiles: int):
    first, *rest = described(**options)
    assert (first.device_kind, 1 + len(rest)) == (kind, count)
    assert (first.num_ipus, first.num_tiles) == (ipus, tiles)
    assert [memory.kind for memory in first.addressable_memories()] == ["device", "pinned_host"]
    assert first.default_memory().kind == "device"


WRONG = [
    ({"device_counts": 3}, r"options from machine, device_count, .*; got 'device_counts'"),
    ({"topology_name": "bow", "machine": "bow"}, r"a machine's name once"),
    ({"topology_name": "bowl"}, r"needs one of gc200, bow"),
    ({"device_count": 0}, r"get_topology_desc\(device_count=\) needs a whole number from 1"),
    ({"num_tiles": 1473}, "from 1 to 1472"),
    ({"num_ipus": "3"}, "powers of two"),
]


@pytest.mark.parametrize(("options", "needs"), WRONG, ids=str)
def test_wrong_descriptions(options: dict, needs: str):
    with pytest.raises(ipu.ConfigError, match=needs):
        described(**options)


def test_analyses_are_those_of_a_machine_that_is_here():
    ours, there = compiled_for(jax.devices("ipu")[:4]), compiled_for(described(device_count=4))
    assert there.cost_analysis() == ours.cost_analysis()
    assert (
        there.memory_analysis().peak_memory_in_bytes == ours.memory_analysis().peak_memory_in_bytes
    )
    assert "HloModule jit_column_sums" in there.as_text()
    assert there.input_shardings[0][0].spec == P("x")
    assert there.output_shardings.is_fully_replicated


def test_analyses_are_those_of_the_described_machine():
    few, many = (cycles(described(device_count=1, num_tiles=n)[0]) for n in (4, 1472))
    assert few > 10 * many


def test_several_ipus_in_a_device_that_is_not_here():
    first, second = described(num_ipus="1,2")
    with pytest.raises(jax.errors.JaxRuntimeError, match="equally many IPUs"):
        compiled_for([first, second])
    saved = serialize_executable.serialize(compiled_for([first]))
    np.testing.assert_allclose(load(saved, jax.devices("ipu")[:1])(X), np.sin(X).sum(0), rtol=1e-5)
    with pytest.raises(jax.errors.JaxRuntimeError, match="needs devices with ipus_per_device=2"):
        load(serialize_executable.serialize(compiled_for([second])), jax.devices("ipu"))


def test_memory_kinds():
    memory = compiled_for(
        described(device_count=4), lambda x: x + 1, memory_kind="pinned_host"
    ).memory_analysis()
    assert memory.argument_size_in_bytes == 0
    assert memory.host_argument_size_in_bytes == X.nbytes // 4


def test_it_runs_where_the_devices_are():
    saved = serialize_executable.serialize(compiled_for(described(device_count=4)))
    loaded = load(saved, jax.devices("ipu")[:4])
    np.testing.assert_allclose(loaded(X), np.sin(X).sum(0), rtol=1e-5)


def test_one_device():
    there = SingleDeviceSharding(described()[1])
    shape = jax.ShapeDtypeStruct(X.shape, X.dtype, sharding=there)
    saved = serialize_executable.serialize(jax.jit(column_sums).lower(shape).compile())
    device = jax.devices("ipu")[1]
    result = load(saved, [device])(jax.device_put(X, device))
    assert result.devices() == {device}
    np.testing.assert_allclose(result, np.sin(X).sum(0), rtol=1e-5)


def test_another_machine_is_refused():
    saved = serialize_executable.serialize(compiled_for(described(device_count=4, num_tiles=4)))
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        load(saved, jax.devices("ipu")[:4])
    assert (
        "[ipu load] jit_column_sums needs devices with num_tiles=4; got devices with num_tiles=1472"
        in str(caught.value)
    )


def test_more_devices_than_there_are():
    saved = serialize_executable.serialize(compiled_for(described(device_count=16)[8:12]))
    with pytest.raises(jax.errors.JaxRuntimeError, match="needs device ids below 8; got 8"):
        load(saved, jax.devices("ipu")[:4])


def test_a_program_cannot_run_on_a_description():
    program = compiled_for(described(device_count=4))
    with pytest.raises(ipu.ExecutableError, match=r"\[call\] needs a program on devices of this"):
        program(X)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: jax.debug.print("{}", x),
        lambda x: jax.pure_callback(np.sin, jax.ShapeDtypeStruct(X.shape, X.dtype), x),
    ],
    ids=["debug.print", "pure_callback"],
)
def test_callbacks_are_refused(call):
    with pytest.raises(ipu.ExecutableError, match="calls functions of this Python process"):
        compiled_for(described(device_count=4), lambda x: (x, call(x)))


def test_no_client_is_made_and_no_cache_is_read(run_python, tmp_path: Path):
    """The description overrides the process's own machine; the same program has two costs."""
    code = f"""
import pickle
import jax, numpy as np
from jax._src import xla_bridge
from jax.experimental import serialize_executable, topologies
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
costs = []
for tiles in (4, 16):
    machine = topologies.get_topology_desc(platform="ipu", device_count=1, num_tiles=tiles)
    (device,) = machine.devices
    there = jax.sharding.SingleDeviceSharding(device)
    like = jax.ShapeDtypeStruct((64, 64), np.float32, sharding=there)
    compiled = jax.jit(lambda x: x @ x).lower(like).compile()
    costs.append(compiled.cost_analysis()["cycles"])
assert costs[0] > costs[1], costs
assert not xla_bridge.backends_are_initialized()
pickle.dump(serialize_executable.serialize(compiled), open({str(tmp_path / "saved")!r}, "wb"))
"""
    made = run_python("-c", code, env={"JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache")})
    assert made.returncode == 0, made.stderr
    saved = pickle.loads((tmp_path / "saved").read_bytes())
    with pytest.raises(jax.errors.JaxRuntimeError, match="needs devices with num_tiles=16"):
        load(saved, jax.devices("ipu")[:1])
