"""Values in the host's memory: results are those of the same program without, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name

from ipujax.compiler.compile import compile_module
from ipujax.errors import PlacementError

Put = Callable[[Any], Any]
HOST, DEVICE = jax.memory.Space.Host, jax.memory.Space.Device
X = np.random.default_rng(0).normal(size=(16, 128)).astype(np.float32)
W = (np.random.default_rng(1).normal(size=(6, 128, 128)) / 12).astype(np.float32)
ENTRY = X.nbytes


def once(put: Put, get: Put, x: Any) -> Any:
    return get(put(x * 2)) + 1


def stacked(put: Put, get: Put, x: Any) -> Any:
    last, stack = jax.lax.scan(lambda c, _: (jnp.sin(c), put(c)), x, length=6)
    return jax.lax.scan(lambda c, h: (c + get(h), None), last, stack, reverse=True)[0]


def nested(put: Put, get: Put, x: Any) -> Any:
    def outer(carry: Any, _: Any) -> Any:
        return jax.lax.scan(lambda c, _: (jnp.cos(c), put(c)), carry, length=3)

    last, stack = jax.lax.scan(outer, x, length=2)

    def back(carry: Any, row: Any) -> Any:
        return jax.lax.scan(lambda c, h: (c * get(h), None), carry, row)[0], None

    return jax.lax.scan(back, last, stack)[0]


def carried(put: Put, get: Put, x: Any) -> Any:
    return get(jax.lax.fori_loop(0, 5, lambda i, h: put(jnp.tanh(get(h)) + i), put(x)))


def chosen(put: Put, get: Put, x: Any) -> Any:
    return get(jax.lax.cond(x[0, 0] > 0, lambda: put(x), lambda: put(-x)))


def mapped(put: Put, get: Put, x: Any) -> Any:
    return jax.vmap(lambda row: stacked(put, get, row))(x)


def halves(put: Put, get: Put, x: Any) -> Any:
    return stacked(put, get, x.astype(jnp.bfloat16))


#: The bytes of all remote buffers, in entries of X. `nested` has a row to write and one to read.
PROGRAMS = {once: 1, stacked: 6, nested: 12, carried: 1, chosen: 1, mapped: 6, halves: 3}


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_values_in_the_hosts_memory_are_the_same(f: Callable[..., Any]) -> None:
    def run(put: Put, get: Put) -> tuple[np.ndarray, Any]:
        compiled = jax.jit(lambda x: f(put, get, x)).lower(X).compile()
        return np.asarray(compiled(X)), compiled

    def same(x: Any) -> Any:
        return x

    wanted, plain = run(same, same)
    got, compiled = run(lambda x: jax.device_put(x, HOST), lambda x: jax.device_put(x, DEVICE))
    np.testing.assert_array_equal(got, wanted)
    assert plain.memory_analysis().host_temp_size_in_bytes == 0
    assert plain.cost_analysis()["host cycles"] == 0
    memory, cost = compiled.memory_analysis(), compiled.cost_analysis()
    assert memory.host_temp_size_in_bytes == PROGRAMS[f] * ENTRY
    assert cost["host cycles"] > 0
    parts = ("compute", "exchange", "sync", "link", "host")
    assert sum(cost[f"{part} cycles"] for part in parts) == pytest.approx(cost["cycles"], rel=1e-5)


def _layers(policy: Any) -> Callable[..., Any]:
    def layer(x: Any, w: Any) -> Any:
        return jnp.tanh(checkpoint_name(x @ w, "product")), None

    def loss(w: Any, x: Any) -> Any:
        return jax.lax.scan(jax.checkpoint(layer, policy=policy), x, w)[0].sum()

    return jax.grad(loss)


POLICIES = jax.checkpoint_policies
TO_HOST = {"offload_src": "device", "offload_dst": "pinned_host"}


@pytest.mark.parametrize(
    ("offloads", "saves"),
    [
        (
            POLICIES.save_and_offload_only_these_names(
                names_which_can_be_saved=[],
                names_which_can_be_offloaded=["product"],
                **TO_HOST,
            ),
            POLICIES.save_only_these_names("product"),
        ),
        (
            POLICIES.offload_dot_with_no_batch_dims("device", "pinned_host"),
            POLICIES.dots_with_no_batch_dims_saveable,
        ),
    ],
    ids=["names", "products"],
)
def test_checkpoint_policies_offload_the_stack_of_a_scan(offloads: Any, saves: Any) -> None:
    runs = [jax.jit(_layers(policy)).lower(W, X).compile() for policy in (offloads, saves)]
    np.testing.assert_array_equal(*(run(W, X) for run in runs))
    far, near = (run.memory_analysis() for run in runs)
    assert far.host_temp_size_in_bytes == len(W) * ENTRY
    assert near.temp_size_in_bytes - far.temp_size_in_bytes >= (len(W) - 1) * ENTRY


def test_a_loop_copies_one_entry_each_iteration() -> None:
    f = jax.jit(lambda x: stacked(put, get, x))

    def put(x: Any) -> Any:
        return jax.device_put(x, HOST)

    def get(x: Any) -> Any:
        return jax.device_put(x, DEVICE)

    cost = f.lower(X).compile().cost_analysis()
    device = jax.devices("ipu")[0]
    transfer = ENTRY / 32e9 * device.clock_hz
    assert cost["host cycles"] == pytest.approx(12 * (transfer + 1200), rel=0.01)


def test_computing_with_a_value_in_the_hosts_memory_is_refused_with_its_line() -> None:
    text = """
module @other {
  func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.custom_call @annotate_device_placement(%a) {has_side_effect = true,
      mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}}
      : (tensor<4xf32>) -> tensor<4xf32>
    %1 = stablehlo.negate %0 : tensor<4xf32> loc("train.py":7:1)
    return %1 : tensor<4xf32>
  }
}"""
    from jaxlib import _jax

    code = _jax.mlir.serialize_portable_artifact(text.encode(), "1.10.0", True)
    with pytest.raises(PlacementError, match=r"'pinned_host' for negate \(at train.py:7\)"):
        compile_module(code, b"", {})


NARROW = ("int4", "int2", "uint2", "float8_e4m3fn", "float8_e8m0fnu", "float4_e2m1fn", "bfloat16")


@pytest.mark.parametrize("dtype", [*NARROW, "complex64"])
def test_results_of_types_that_are_held_in_others(dtype: str):
    """int4 is computed in int8: results are packed, then put on the host."""
    host = jax.sharding.SingleDeviceSharding(jax.devices("ipu")[0], memory_kind="pinned_host")
    x = np.array([0, 1, 1, 0]).astype(jnp.dtype(dtype))

    def fun(v: Any) -> Any:
        put = jax.device_put(v[1:], HOST)
        return v[1:], put, jax.lax.scan(lambda c, e: (c, jax.device_put(e, HOST)), 0, v)[1]

    found = jax.jit(fun, out_shardings=host)(jax.device_put(x, host))
    for y, want in zip(found, (x[1:], x[1:], x), strict=True):
        assert y.sharding.memory_kind == "pinned_host"
        assert np.asarray(y).tobytes() == want.tobytes()


def test_parts_of_an_argument_on_the_host_are_brought_to_be_demoted():
    with jax.enable_x64(True):
        host = jax.sharding.SingleDeviceSharding(jax.devices("ipu")[0], memory_kind="pinned_host")
        x = jax.device_put(np.array([1 + 2j, 3 - 4j]), host)
        options = {"ipu_x64": "demote"}
        found = jax.jit(lambda x: x[::-1], out_shardings=host, compiler_options=options)(x)
    np.testing.assert_array_equal(found, [3 - 4j, 1 + 2j])
