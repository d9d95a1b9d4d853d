"""`jax.profiler.trace` has a plane for each IPU, read back by JAX's own reader."""

from __future__ import annotations

import gzip
import itertools

import jax
import jax.numpy as jnp
import pytest
from jax.profiler import ProfileData

import ipujax as ipu

ITERATIONS = 10


def looped(w, x):
    with ipu.trace("warm_up"):
        x = jnp.sin(x)
    return jax.lax.fori_loop(0, ITERATIONS, lambda i, y: jnp.tanh(y @ w), x)


def traced(path, run):
    """Planes by name, each with its lines by name."""
    with jax.profiler.trace(path):
        run()
    (file,) = path.glob("**/*.xplane.pb")
    planes = ProfileData.from_file(str(file)).planes
    return {plane.name: {line.name: list(line.events) for line in plane.lines} for plane in planes}


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    w = jnp.ones((128, 128))
    step = jax.jit(looped)
    jax.block_until_ready(step(w, w))

    def run():
        for _ in range(3):
            with ipu.trace("load"):
                jax.block_until_ready(step(w, w))

    return traced(tmp_path_factory.mktemp("trace"), run)


@pytest.fixture(scope="module")
def cost():
    w = jnp.ones((128, 128))
    return jax.jit(looped).lower(w, w).compile().cost_analysis()


def test_each_run_is_a_step_on_the_models_clock(lines, cost):
    steps = lines["/device:IPU:0"]["Steps"]
    assert [step.name for step in steps] == ["jit_looped"] * 3
    for step in steps:
        assert step.duration_ns == pytest.approx(cost["seconds"] * 1e9, rel=1e-3)
        assert dict(step.stats)["cycles"] == pytest.approx(cost["cycles"], rel=1e-6)
    for before, after in itertools.pairwise(steps):
        assert after.start_ns >= before.start_ns + before.duration_ns


def test_ops_fill_the_step_and_have_names_and_lines(lines, cost):
    ops, step = lines["/device:IPU:0"]["XLA Ops"], lines["/device:IPU:0"]["Steps"][0]
    of_first = [op for op in ops if op.start_ns < step.start_ns + step.duration_ns]
    assert len(ops) == 3 * len(of_first)
    (loop,) = (op for op in of_first if op.name == "loop")
    inside = [
        op for op in of_first if op is not loop and op.start_ns < loop.start_ns + loop.duration_ns
    ]
    inside = [op for op in inside if op.start_ns >= loop.start_ns]
    assert any("dot_general" in op.name for op in inside)
    assert sum(dict(op.stats)["cycles"] for op in inside) * ITERATIONS == pytest.approx(
        dict(loop.stats)["cycles"]
    )
    around = sum(dict(op.stats)["cycles"] for op in of_first if op not in inside)
    assert around == pytest.approx(cost["cycles"], rel=1e-6)
    assert any("test_profiler.py" in dict(op.stats).get("source", "") for op in of_first)
    assert any("warm_up" in op.name for op in of_first)


def test_the_host_has_its_time_of_each_run(lines):
    host = lines["/device:IPU:0"]["Host"]
    assert len(host) == 3
    assert all(run.duration_ns > 0 for run in host)
    spans = [event.name for events in lines["/host:CPU"].values() for event in events]
    assert spans.count("load") == 3


def test_every_device_of_a_program_has_a_plane(tmp_path):
    mesh = jax.make_mesh((4,), ("x",))
    x = jax.device_put(jnp.ones((8, 4)), jax.NamedSharding(mesh, jax.P("x")))
    step = jax.jit(lambda x: x * 2)
    planes = traced(tmp_path, lambda: jax.block_until_ready(step(x)))
    assert [name for name in planes if "IPU" in name] == [f"/device:IPU:{i}" for i in range(4)]


def test_a_long_trace_has_all_runs_and_the_ops_of_the_first(tmp_path):
    def chain(x):
        for _ in range(50):
            x = x @ x
        return x

    step, x, num_runs = jax.jit(chain), jnp.eye(4), 4500
    step(x).block_until_ready()

    def run():
        for _ in range(num_runs):
            y = step(x)
        y.block_until_ready()

    lines = traced(tmp_path, run)["/device:IPU:0"]
    assert len(lines["Steps"]) == len(lines["Host"]) == num_runs
    assert 100_000 < len(lines["XLA Ops"]) <= 200_000 < 50 * num_runs


def test_a_trace_without_runs_has_no_plane(tmp_path):
    assert not [name for name in traced(tmp_path, lambda: None) if "IPU" in name]


def test_the_memory_profile_has_what_is_alive():
    held = jnp.ones((256, 1024), jnp.float32).block_until_ready()
    used = jax.devices()[0].memory_stats()["bytes_in_use"]
    more = jnp.ones((512, 1024), jnp.float32).block_until_ready()
    assert jax.devices()[0].memory_stats()["bytes_in_use"] - used == more.nbytes
    profile = gzip.decompress(jax.profiler.device_memory_profile())
    assert b"ipu" in profile.lower()
    assert held.nbytes == 1 << 20
