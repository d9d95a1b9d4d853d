"""Arrays between IPUs, torch and NumPy by DLPack, with the addresses of their memory."""

from __future__ import annotations

import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from tests.interop.packages import needed

torch = needed("torch")

DTYPES = ["bool", "int8", "int16", "int32", "uint8", "float16", "bfloat16", "float32", "complex64"]
X = np.arange(12).reshape(3, 4) % 5


@pytest.mark.parametrize("dtype", DTYPES)
def test_torch_takes_an_array_without_a_copy(device: jax.Device, dtype: str):
    x = jax.jit(lambda a: a)(jax.device_put(X.astype(jnp.dtype(dtype)), device))
    taken = torch.from_dlpack(x)
    assert (taken.dtype, tuple(taken.shape)) == (getattr(torch, dtype), X.shape)
    assert taken.data_ptr() == x.unsafe_buffer_pointer()
    assert taken.to(torch.complex64).tolist() == np.asarray(x).astype(np.complex64).tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_tensors_come_onto_an_ipu(device: jax.Device, dtype: str):
    tensor = torch.tensor(X.tolist()).to(getattr(torch, dtype))
    taken = jnp.from_dlpack(tensor, device=device)
    assert (taken.devices(), str(taken.dtype)) == ({device}, dtype)
    np.testing.assert_array_equal(taken, X.astype(jnp.dtype(dtype)))


def test_a_tensor_keeps_the_memory_of_an_array_that_is_gone(device: jax.Device):
    x = jax.device_put(np.full(1 << 16, 3, np.float32), device) * 2
    taken = torch.from_dlpack(x)
    x.delete()
    del x
    gc.collect()
    others = [jax.device_put(np.zeros(1 << 16, np.float32), device) + i for i in range(8)]
    jax.block_until_ready(others)
    assert bool((taken == 6).all())


def test_numpy_and_torch_share_the_memory_of_an_array(device: jax.Device):
    x = jax.device_put(X.astype(np.float32), device) + 1
    pointer = x.unsafe_buffer_pointer()
    as_numpy = np.asarray(x)
    assert as_numpy.__array_interface__["data"] == (pointer, True)
    assert torch.from_dlpack(x).data_ptr() == pointer
    assert torch.from_numpy(np.from_dlpack(x).copy()).data_ptr() != pointer


def test_a_result_that_is_not_ready_is_waited_for(device: jax.Device):
    program = jax.jit(lambda a: jax.lax.fori_loop(0, 100, lambda _, b: jnp.sin(b @ b), a))
    x = program(jax.device_put(np.eye(150, dtype=np.float32), device))
    np.testing.assert_array_equal(torch.from_dlpack(x).numpy(), np.asarray(x))


def test_batches_of_bfloat16_tensors(device: jax.Device):
    """NumPy cannot read them; an Infeed takes them by DLPack."""
    batches = [{"x": torch.full((3,), i / 2, dtype=torch.bfloat16)} for i in range(4)]
    infeed = ipu.Infeed(batches)
    assert infeed.spec["x"].dtype == jnp.bfloat16
    total = jax.jit(lambda c: ipu.repeat(4, lambda c, b: c + b["x"], c, infeed=infeed))
    assert total(jnp.zeros(3, jnp.bfloat16)).tolist() == [3, 3, 3]
