"""`jax.transfer_guard_device_to_host` holds for IPUs, although their arrays lie on the host."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

REFUSED = "Disallowed device-to-host transfer"
Read = Callable[[jax.Array], Any]
IMPLICIT: dict[str, Read] = {
    "asarray": np.asarray,
    "item": lambda x: x[0].item(),
    "list": lambda x: x.tolist(),
    "from_dlpack": np.from_dlpack,
}


@pytest.fixture(params=[8, 100_000])
def x(request: pytest.FixtureRequest, device: jax.Device) -> jax.Array:
    """A result that the host has not seen."""
    return jax.device_put(jnp.arange(request.param, dtype=jnp.float32), device) + 1


@pytest.mark.parametrize("read", IMPLICIT.values(), ids=IMPLICIT)
def test_disallow_stops_what_is_implicit(x: jax.Array, read: Read):
    with (
        jax.transfer_guard_device_to_host("disallow"),
        pytest.raises(jax.errors.JaxRuntimeError, match=REFUSED),
    ):
        read(x)
    assert np.size(read(x)) in (1, x.size)


def test_disallow_lets_device_get_pass(x: jax.Array):
    with jax.transfer_guard_device_to_host("disallow"):
        np.testing.assert_array_equal(jax.device_get(x), np.arange(x.size) + 1)


def test_disallow_explicit_stops_device_get(x: jax.Array):
    with (
        jax.transfer_guard_device_to_host("disallow_explicit"),
        pytest.raises(jax.errors.JaxRuntimeError, match=REFUSED),
    ):
        jax.device_get(x)
    np.testing.assert_array_equal(jax.device_get(x), np.arange(x.size) + 1)


def test_sharded_arrays_are_guarded():
    mesh = jax.make_mesh((2,), ("a",), devices=jax.devices("ipu")[:2])
    x = jax.device_put(np.arange(8.0), jax.NamedSharding(mesh, jax.P("a"))) + 1
    with (
        jax.transfer_guard("disallow_explicit"),
        pytest.raises(jax.errors.JaxRuntimeError, match=REFUSED),
    ):
        jax.device_get(x)
    np.testing.assert_array_equal(jax.device_get(x), np.arange(8) + 1)


def test_the_guard_is_the_threads_own(x: jax.Array):
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(np.asarray(x)))
    with jax.transfer_guard_device_to_host("disallow"):
        thread.start()
        thread.join()
    np.testing.assert_array_equal(seen[0], np.arange(x.size) + 1)


def test_a_thread_may_allow_what_the_process_does_not(x: jax.Array):
    jax.config.update("jax_transfer_guard_device_to_host", "disallow")
    try:
        with pytest.raises(jax.errors.JaxRuntimeError, match=REFUSED):
            np.asarray(x)
        with jax.transfer_guard_device_to_host("allow"):
            np.testing.assert_array_equal(x, np.arange(x.size) + 1)
    finally:
        jax.config.update("jax_transfer_guard_device_to_host", None)


def test_a_guard_that_was_set_before_the_plugin_was_loaded(run_python):
    code = """
import jax, numpy as np
jax.config.update("jax_transfer_guard_device_to_host", "disallow")
x = jax.device_put(np.ones(3, np.float32)) + 1
try:
    print(np.asarray(x))
except jax.errors.JaxRuntimeError as error:
    print(error)
print(x.devices())
"""
    done = run_python("-c", code)
    assert REFUSED in done.stdout, done.stdout + done.stderr
    assert "IpuDevice" in done.stdout


def test_views_without_a_copy_stay_where_nothing_is_guarded(x: jax.Array):
    with jax.transfer_guard_device_to_host("allow"):
        address = np.asarray(x).__array_interface__["data"][0]
    assert address == x.unsafe_buffer_pointer()
