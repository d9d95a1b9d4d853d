"""Memory of the host's and of a device's, changed or freed by the other side at every moment.

Arrays are large and begin at a page: others are never shared.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import io_callback
from jax.sharding import Mesh, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

import ipujax as ipu

SIZE = 1 << 16
Host = np.ndarray


@jax.jit
def slow(x: jax.Array) -> jax.Array:
    """Zeros, after some hundredths of a second."""
    return jax.lax.fori_loop(0, 60, lambda _, c: jnp.sin(c) + x, 0 * x) * 0


twice = jax.jit(lambda x: x * 2)
donating = jax.jit(lambda x: x * 2, donate_argnums=0)


def page() -> Host:
    """Threes."""
    raw = np.empty(SIZE * 4 + 4096, np.uint8)
    array = raw[-raw.ctypes.data % 4096 :][: SIZE * 4].view(np.float32)
    array[:] = 3
    return array


def read_only(x: Host) -> Host:
    view = x[:]
    view.flags.writeable = False
    return view


def over_two(x: Host) -> Any:
    mesh = Mesh(np.array(jax.devices("ipu")[:2]), ("a",))
    return jax.device_put(x, NamedSharding(mesh, P("a")))


def by_callback(x: Host) -> Any:
    sharding = SingleDeviceSharding(jax.devices("ipu")[0])
    return jax.make_array_from_callback(x.shape, sharding, lambda index: x[index])


def to_pinned_host(x: Host) -> Any:
    device = jax.devices("ipu")[0]
    return jax.device_put(x, SingleDeviceSharding(device, memory_kind="pinned_host"))


#: How threes come to a device and are threes there.
WAYS_IN: dict[str, Callable[[Host], Any]] = {
    "device_put": jax.device_put,
    "device_put that may alias": lambda x: jax.device_put(x, may_alias=True),
    "device_put of a read-only view": lambda x: jax.device_put(read_only(x)),
    "device_put of a buffer": lambda x: jax.device_put(np.frombuffer(x.data, np.float32)),
    "device_put over two devices": over_two,
    "device_put to pinned_host": to_pinned_host,
    "asarray": jnp.asarray,
    "array": jnp.array,
    "array of a dtype": lambda x: jnp.array(x, jnp.float32),
    "make_array_from_callback": by_callback,
    "from_dlpack": lambda x: jax.dlpack.from_dlpack(x, device=jax.devices("ipu")[0]),
    "argument": lambda x: twice(x) - 3,
    "donated argument": lambda x: donating(x) - 3,
    "read-only argument": lambda x: twice(read_only(x)) - 3,
    "argument of a long program": lambda x: slow(x) + 3,
    "argument that waits for another": lambda x: jnp.add(slow(jnp.ones(SIZE)), x),
}

#: What the device does before.
MOMENTS: dict[str, Callable[[Host], Any]] = {
    "idle": lambda _: jax.block_until_ready(slow(jnp.ones(SIZE))),
    "behind a program": lambda _: slow(jnp.ones(SIZE)),
    "behind a program that has it": slow,
}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("way", WAYS_IN)
def test_the_host_may_change_what_it_gave(way: str, moment: str):
    x = page()
    before = MOMENTS[moment](x)
    y = WAYS_IN[way](x)
    x[:] = 7
    z = y if "pinned" in way else twice(y) - 3
    x[:] = 8
    np.testing.assert_array_equal(y, 3)
    np.testing.assert_array_equal(z, 3)
    np.testing.assert_array_equal(before, 0)


@pytest.mark.parametrize("way", WAYS_IN)
def test_the_host_may_free_what_it_gave(way: str):
    busy = slow(jnp.ones(SIZE))
    y = WAYS_IN[way](page())
    gc.collect()
    taken = [np.full(SIZE + 1024, 7, np.float32) for _ in range(20)]
    np.testing.assert_array_equal(y, 3)
    assert len(taken) == 20
    np.testing.assert_array_equal(busy, 0)


def test_a_file_may_change_after_it_was_put(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.full(SIZE, 3, np.float32))
    y = jax.device_put(np.load(path, mmap_mode="r"))
    path.write_bytes(b"")
    np.testing.assert_array_equal(twice(y), 6)


def test_a_feed_may_fill_one_array_again_and_again():
    batch = page()

    def batches():
        for i in range(6):
            batch[:] = i
            yield batch

    infeed = ipu.Infeed(batches, prefetch_depth=2)
    outfeed = ipu.Outfeed()
    run = jax.jit(
        lambda: ipu.repeat(
            6, lambda c, x: (c + x[0] + slow(x)[0], x[:2]), 0.0, infeed=infeed, outfeed=outfeed
        )
    )
    assert run() == 15
    np.testing.assert_array_equal(outfeed.dequeue()[:, 1], np.arange(6))


#: How the host comes to see an array of a device's without a copy.
WAYS_OUT: dict[str, Callable[[jax.Array], Any]] = {
    "asarray": np.asarray,
    "memoryview": lambda y: memoryview(np.asarray(y)),
    "from_dlpack": np.from_dlpack,
    "the CPU backend": jax.dlpack.from_dlpack,
    "a slice": lambda y: np.asarray(y)[::2],
}


def donated(y: jax.Array) -> Any:
    return donating(y)


def donated_twice(y: jax.Array) -> Any:
    return donating(donating(y))


def donated_behind_a_program(y: jax.Array) -> Any:
    return slow(jnp.ones(SIZE)), donating(y)


#: What becomes of the array afterwards; what is given back is waited for.
ENDS: dict[str, Callable[[jax.Array], Any]] = {
    "deleted": lambda y: y.delete(),
    "donated": donated,
    "donated twice": donated_twice,
    "donated behind a program": donated_behind_a_program,
    "an argument": lambda y: (twice(y), y.delete()),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("way", WAYS_OUT)
def test_a_view_stays_as_it_was(way: str, end: str):
    y = slow(jnp.ones(SIZE)) + 3  # not there yet
    view = WAYS_OUT[way](y)
    after = ENDS[end](y)
    del y
    np.testing.assert_array_equal(np.asarray(view), 3)
    jax.block_until_ready(after)
    others = [jax.device_put(np.full(SIZE, 9, np.float32)) for _ in range(5)]
    np.testing.assert_array_equal(np.asarray(view), 3)
    del others, after


def test_an_array_may_end_before_its_view_begins_to_be_read():
    y = slow(jnp.ones(SIZE)) + 3
    donating(y + 0)
    z = donating(y)
    with pytest.raises(RuntimeError, match="deleted"):
        np.asarray(y)
    np.testing.assert_array_equal(z, 6)


def test_callbacks_may_keep_arguments_and_change_results():
    kept, buffer = [], page()

    def call(x: Host) -> Host:
        kept.append(x)
        buffer[:] = x[0] + 1
        return buffer

    shape = jax.ShapeDtypeStruct((SIZE,), np.float32)
    run = jax.jit(
        lambda x: jax.lax.fori_loop(0, 5, lambda _, c: io_callback(call, shape, c, ordered=True), x)
    )
    result = run(jnp.zeros(SIZE))
    jax.block_until_ready(result)
    buffer[:] = 7
    np.testing.assert_array_equal(result, 5)
    for i, argument in enumerate(kept):
        np.testing.assert_array_equal(argument, i)
