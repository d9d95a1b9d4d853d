"""What is said of targets of `jax.ffi.ffi_call` that IPUs cannot run."""

from __future__ import annotations

import ctypes

import jax
import numpy as np
import pytest

X = np.ones(4, np.float32)


def refusal(target: str) -> str:
    call = jax.ffi.ffi_call(target, jax.ShapeDtypeStruct(X.shape, X.dtype))
    with pytest.raises(jax.errors.JaxRuntimeError) as caught:
        jax.jit(lambda x: call(x))(jax.device_put(X, jax.devices("ipu")[0]))
    return str(caught.value)


def test_a_target_that_nobody_registered():
    text = refusal("a_misspelt_name")
    assert "no target 'a_misspelt_name' is registered for any platform; correct the name" in text
    assert "(at test_foreign_calls.py:" in text


@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
def test_the_reason_is_the_same_for_64_bits(dtype: type):
    """Another option of 64-bit types would not help."""
    with jax.enable_x64(True):
        x = jax.device_put(X.astype(dtype), jax.devices("ipu")[0])
        call = jax.ffi.ffi_call("a_misspelt_name", jax.ShapeDtypeStruct(x.shape, x.dtype))
        with pytest.raises(jax.errors.JaxRuntimeError) as caught:
            jax.jit(lambda x: call(x))(x)
    assert "no target 'a_misspelt_name' is registered for any platform" in str(caught.value)
    assert "demote" not in str(caught.value)


@pytest.mark.parametrize("platform", ["ipu", "cuda"])
def test_a_target_that_is_registered(platform: str):
    name = f"registered_for_{platform}"
    function = jax.ffi.pycapsule(ctypes.CDLL(None).labs)
    jax.ffi.register_ffi_target(name, function, platform=platform)
    text = refusal(name)
    assert f"the target '{name}' is registered for '{platform}' as code of the host's" in text
    assert "make it an op of IPUs with ipujax.custom_op" in text


def test_a_target_of_the_cpu():
    assert "is registered for 'cpu'" in refusal(cpu_target())


def cpu_target() -> str:
    """One that jaxlib registers for the CPU and that IPUs have no rule for."""
    from jaxlib import xla_client

    from ipujax.compiler.rules.registry import CUSTOM_CALLS

    return min(set(xla_client.custom_call_targets("Host")) - CUSTOM_CALLS.keys())
