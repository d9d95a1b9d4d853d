"""Pallas kernels in interpret mode, compared with JAX's CPU backend."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.pallas.mosaic_gpu.interpret.params import InterpretGPUParams
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu
from jax.experimental.pallas import tpu as pltpu

from ipujax.errors import UnsupportedOpError

X = np.arange(8 * 128, dtype=np.float32).reshape(8, 128)
LIKE = jax.ShapeDtypeStruct(X.shape, X.dtype)
INTERPRETED = {"interpret": True, "as_on_tpus": pltpu.InterpretParams()}


def double(x_ref, o_ref):
    o_ref[...] = x_ref[...] * 2


def called(interpret: object):
    rows = pl.BlockSpec((4, 128), lambda i: (i, 0))
    return pl.pallas_call(
        double, LIKE, grid=(2,), in_specs=[rows], out_specs=rows, interpret=interpret
    )


def kernel(interpret: object):
    mesh = pltpu.create_tensorcore_mesh("core", num_cores=1)
    return pl.kernel(double, out_type=LIKE, mesh=mesh, interpret=interpret)


def copies(interpret: object):
    mesh = pltpu.create_tensorcore_mesh("core", num_cores=2)
    return pl.kernel(pltpu.sync_copy, out_type=LIKE, mesh=mesh, interpret=interpret)


def core_map(interpret: object):
    mesh = pltpu.create_tensorcore_mesh("core", num_cores=1)

    def run(x):
        def stateful(refs):
            source, target = refs

            @pl.core_map(mesh, interpret=interpret)
            def _():
                pltpu.sync_copy(source, target)

        return pl.run_state(stateful)((x, jnp.zeros_like(x)))[1]

    return run


def gpu_kernel(interpret: object):
    del interpret
    return plgpu.kernel(double, out_type=LIKE, interpret=InterpretGPUParams())


CALLS: dict[str, tuple[Callable[[object], Callable[..., jax.Array]], str]] = {
    "pallas_call": (called, "interpret"),
    "pallas_call on a TPU": (called, "as_on_tpus"),
    "kernel": (kernel, "interpret"),
    "kernel on two cores": (copies, "as_on_tpus"),
    "core_map on a TPU": (core_map, "as_on_tpus"),
    "kernel on a GPU": (gpu_kernel, "interpret"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("transform", [jax.jit, lambda f: f], ids=["jit", "eager"])
def test_interpreted(name: str, transform: Callable[..., Callable[..., jax.Array]]):
    make, mode = CALLS[name]
    results = []
    for platform in ("cpu", "ipu"):
        device = jax.devices(platform)[0]
        with jax.default_device(device):
            result = transform(make(INTERPRETED[mode]))(X)
        assert result.devices() == {device}
        results.append(np.asarray(result))
    assert np.abs(results[0]).max() > 0
    np.testing.assert_array_equal(*results)


@pytest.mark.parametrize("make", [called, kernel])
def test_compiled_kernels_are_refused(make, device: jax.Device):
    with jax.default_device(device), pytest.raises(UnsupportedOpError, match="interpret=True"):
        jax.jit(make(False))(X)


def test_copies_between_devices():
    def send(x_ref, o_ref, sent, received):
        there = jax.lax.rem(jax.lax.axis_index("x") + 1, 4)
        copy = pltpu.make_async_remote_copy(
            src_ref=x_ref, dst_ref=o_ref, send_sem=sent, recv_sem=received, device_id=(there,)
        )
        copy.start()
        copy.wait()

    anywhere = pl.BlockSpec(memory_space=pl.ANY)
    call = pl.pallas_call(
        send,
        LIKE,
        in_specs=[anywhere],
        out_specs=anywhere,
        scratch_shapes=[pltpu.SemaphoreType.DMA] * 2,
        interpret=pltpu.InterpretParams(),
    )
    mesh = jax.sharding.Mesh(np.array(jax.devices("ipu")[:4]), ("x",))
    map_ = partial(jax.shard_map, mesh=mesh, in_specs=jax.P("x"), out_specs=jax.P("x"))
    x = np.arange(32 * 128, dtype=np.float32).reshape(32, 128)
    result = jax.jit(map_(call, check_vma=False))(
        jax.device_put(x, jax.NamedSharding(mesh, jax.P("x")))
    )
    np.testing.assert_array_equal(result, np.roll(x, 8, axis=0))
