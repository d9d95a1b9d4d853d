"""What streams cost: by the link's bandwidth and latency, added to a run or hidden behind it."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu

CLOCK = 1.33e9
#: An IPU-M2000's link to its host: cpp/model/engine/Machine.cpp.
BYTES_PER_SECOND, LATENCY, IPUS = 100e9 / 8, 10e-6, 4
X = jax.ShapeDtypeStruct((512, 512), jnp.float32)
X_BYTES = 512 * 512 * 4


def layer(state, batch):
    return jnp.tanh(batch["x"] @ state["w"]), {"w": state["w"] * 0.9}


def cost(f=layer, args=({"w": X}, {"x": X}), donate=(), **options):
    """The cost analysis with `ipu_<name>=value` for each option."""
    named = {f"ipu_{name}": value for name, value in options.items()}
    return (
        jax.jit(f, donate_argnums=donate, compiler_options=named)
        .lower(*args)
        .compile()
        .cost_analysis()
    )


def link_cycles(num_bytes, requests=0, sharing=1):
    seconds = num_bytes * sharing / BYTES_PER_SECOND + requests * LATENCY
    return math.ceil(seconds * CLOCK)


def test_arguments_and_results_stay_on_the_device():
    found = cost()
    assert found["host bytes"] == found["host cycles"] == found["hidden host cycles"] == 0
    assert found["cycles"] == found["cycles without host"]


@pytest.mark.parametrize("name", ["batch", "batch['x']", " batch , batch"])
def test_a_streamed_argument_takes_the_time_of_the_link(name):
    found = cost(streamed_arguments=name, rearrange_copies_on_host=True)
    assert found["host bytes"] == X_BYTES
    assert found["host cycles"] == pytest.approx(link_cycles(X_BYTES), rel=1e-5)
    without = cost()["cycles"]
    assert found["cycles without host"] == without
    assert found["cycles"] == pytest.approx(without + found["host cycles"], rel=1e-5)


def test_all_arguments_and_new_or_all_results():
    assert cost(streamed_arguments="*")["host bytes"] == 2 * X_BYTES
    assert cost(streamed_results="all")["host bytes"] == 2 * X_BYTES
    assert cost(streamed_results="new", donate=0)["host bytes"] == X_BYTES
    assert cost(streamed_results="all", donate=0)["host bytes"] == 2 * X_BYTES


@pytest.mark.parametrize("bandwidth", [1.0, 8.0, 64.0])
def test_bandwidth_is_an_option(bandwidth):
    found = cost(streamed_arguments="*", host_bandwidth=bandwidth)
    expected = 2 * X_BYTES / (bandwidth * 1e9) * CLOCK
    assert found["host cycles"] == pytest.approx(expected, rel=1e-3)


def test_prefetching_hides_the_latency_of_arguments_and_nothing_else():
    names = {"streamed_arguments": "*"}
    ahead, awaited = cost(**names), cost(**names, prefetch_depth=0)
    assert awaited["host cycles"] - ahead["host cycles"] == pytest.approx(LATENCY * CLOCK, abs=8)
    slow = cost(**names, prefetch_depth=0, host_latency=50.0)
    assert slow["host cycles"] - ahead["host cycles"] == pytest.approx(50e-6 * CLOCK, abs=8)
    assert cost(**names, prefetch_depth=9)["host cycles"] == ahead["host cycles"]
    results = cost(streamed_results="all")["host cycles"]
    assert results == pytest.approx(link_cycles(2 * X_BYTES, requests=1), rel=1e-5)


def test_the_device_rearranges_what_it_does_not_hold_in_order():
    on_device = cost(streamed_arguments="*")
    on_host = cost(streamed_arguments="*", rearrange_copies_on_host=True)
    assert on_device["host cycles"] == on_host["host cycles"]
    assert on_device["exchange bytes"] > on_host["exchange bytes"] == cost()["exchange bytes"]
    assert on_device["cycles without host"] > on_host["cycles without host"]


def long_layer(w, batch):
    return jax.lax.fori_loop(0, 100, lambda i, x: jnp.tanh(x @ w), batch)


IO_TILES = {"num_io_tiles": 64, "place_ops_on_io_tiles": True}


def test_io_tiles_overlap_streams_with_computation():
    streams = {"streamed_arguments": "batch", "streamed_results": "all"}
    found = cost(long_layer, (X, X), **streams, **IO_TILES)
    assert found["host cycles"] == 0
    expected = link_cycles(X_BYTES) + link_cycles(X_BYTES, requests=1)
    assert found["hidden host cycles"] == pytest.approx(expected, rel=1e-5)
    assert found["cycles"] == found["cycles without host"]
    only_kept_free = cost(long_layer, (X, X), **streams, num_io_tiles=64)
    assert only_kept_free["hidden host cycles"] == 0
    assert only_kept_free["cycles"] == pytest.approx(found["cycles"] + expected, rel=1e-5)


def test_a_run_lasts_as_long_as_its_streams():
    found = cost(streamed_arguments="batch", **IO_TILES)
    assert found["cycles"] == pytest.approx(link_cycles(X_BYTES), rel=1e-5)
    assert found["host cycles"] + found["hidden host cycles"] == pytest.approx(found["cycles"])
    assert found["host cycles"] > 0


def test_io_tiles_leave_fewer_to_compute():
    few = cost(num_io_tiles=1000)
    assert few["compute cycles"] > 2 * cost()["compute cycles"]


def test_options_of_streams_change_no_result():
    x = np.random.default_rng(0).normal(size=(512, 512)).astype(np.float32)
    options = {"ipu_streamed_arguments": "*", "ipu_streamed_results": "all", "ipu_num_io_tiles": 32}
    given = jax.jit(layer, compiler_options=options)({"w": x}, {"x": x})
    plain = jax.jit(layer)({"w": x}, {"x": x})
    for ours, expected in zip(jax.tree.leaves(given), jax.tree.leaves(plain), strict=True):
        np.testing.assert_array_equal(ours, expected)


def test_replicas_share_the_link_of_their_machine():
    mesh = jax.make_mesh((4,), ("replicas",))
    spread = jax.NamedSharding(mesh, jax.P("replicas"))
    options = {"ipu_streamed_arguments": "batch"}
    step = jax.jit(lambda batch: batch + 1, compiler_options=options)
    batch = jax.ShapeDtypeStruct((4, 512, 512), jnp.float32, sharding=spread)
    found = step.lower(batch).compile().cost_analysis()
    assert found["host bytes"] == X_BYTES
    assert found["host cycles"] == pytest.approx(link_cycles(X_BYTES, sharing=IPUS), rel=1e-5)


def test_a_callback_asks_the_host_and_is_never_hidden():
    def f(batch):
        return jax.pure_callback(np.tanh, batch, batch)

    found = cost(f, (X,), **IO_TILES)
    assert found["host bytes"] == 2 * X_BYTES
    assert found["hidden host cycles"] == 0
    syncs = 2 * 600
    expected = link_cycles(2 * X_BYTES, requests=2) + syncs
    assert found["host cycles"] == pytest.approx(expected, rel=1e-5)
    assert found["cycles without host"] < syncs
    assert cost(f, (X,), host_latency=0.0)["host cycles"] < found["host cycles"]


def test_cost_says_the_time_with_and_without_the_host():
    found = ipu.cost(layer, {"w": X}, {"x": X}, streamed=["batch"])
    assert found.host_bytes == 3 * X_BYTES
    assert found.seconds_without_host < found.seconds
    assert "without the host's" in str(found)
    assert "host" not in str(ipu.cost(layer, {"w": X}, {"x": X}))
    assert (
        ipu.cost(layer, {"w": X}, {"x": X}, streamed="batch", fetched="none").host_bytes == X_BYTES
    )


def test_a_name_of_no_argument_is_refused():
    with pytest.raises(
        jax.errors.JaxRuntimeError,
        match=r"\[streamed\] needs names of arguments .* state, batch; got 'bat'",
    ):
        cost(streamed_arguments="bat")


def test_io_tiles_must_be_fewer_and_hold_what_is_streamed():
    with pytest.raises(
        jax.errors.JaxRuntimeError,
        match=r"\[io_tiles\] needs fewer than the 1472 tiles .* got 1472",
    ):
        cost(num_io_tiles=1472)
    with pytest.raises(
        jax.errors.JaxRuntimeError,
        match=r"\[io_tiles\] needs room for 1048576 bytes .* 1 I/O tiles",
    ):
        cost(streamed_arguments="batch", **IO_TILES | {"num_io_tiles": 1})
    cost(streamed_arguments="batch", num_io_tiles=1)
