"""Programs with feeds, and with devices that fail, that both builds run as those of programs.py."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

import ipujax as ipu
from tests.sdk.programs import Program, mesh, numbers

FEEDS: dict[str, Program] = {}


def program(function: Program) -> Program:
    FEEDS[function.__name__] = function
    return function


@program
def infeed_and_outfeed() -> Any:
    """A loop on the device that takes batches and gives every result."""
    infeed = ipu.Infeed(numbers(6, 2, 4), prefetch_depth=2)
    outfeed = ipu.Outfeed("all")

    def body(carry: Any, batch: Any) -> Any:
        carry = 0.5 * carry + batch.sum(axis=0)
        return carry, {"carry": carry, "total": batch.sum()}

    run = jax.jit(lambda c: ipu.repeat(3, body, c, infeed=infeed, outfeed=outfeed))
    carries, given = [], []
    carry = jnp.zeros(4)
    for _ in range(2):  # goes on where the feed is
        carry = jax.block_until_ready(run(carry))
        carries.append(np.asarray(carry))
        given.append(outfeed.dequeue())
    return carries, given


@program
def outfeed_modes() -> Any:
    given = []
    for mode in ("last", "sum", "final"):
        outfeed = ipu.Outfeed(mode)

        def body(x: Any) -> Any:
            return 1.5 * x, x

        def loop(x: Any, body: Any = body, outfeed: Any = outfeed) -> Any:
            return ipu.repeat(4, body, x, outfeed=outfeed)

        given.append(jax.block_until_ready(jax.jit(loop)(jnp.float32(1))))
        given.append(outfeed.dequeue())
    return given


@program
def infeed_that_ends() -> Any:
    infeed = ipu.Infeed(np.ones(5, np.float32))
    found = ipu.while_loop(lambda x: x < 99, jnp.add, 0.0, infeed=infeed, stop_at_end=True)
    short = ipu.Infeed(np.ones(2, np.float32))

    def run() -> Any:
        return jax.jit(lambda: ipu.repeat(3, jnp.add, 0.0, infeed=short))()

    return found, np.frombuffer(_type_of(run).encode(), np.uint8)


@program
def infeed_over_replicas() -> Any:
    devices = mesh(2, names=("r",))
    infeed = ipu.Infeed(
        numbers(4, 6, 3), sharding=NamedSharding(devices, PartitionSpec("r")), prefetch_depth=2
    )

    def body(carry: Any, batch: Any) -> Any:
        return 0.5 * carry + batch.sum(axis=0)

    return jax.jit(lambda c: ipu.repeat(4, body, c, infeed=infeed))(jnp.zeros(3))


@program
def infeed_shorter_than_the_loop_over_replicas() -> Any:
    """Each batch has to be taken by both replicas before the ring has room for the next."""
    devices = mesh(2, names=("r",))
    split = PartitionSpec("r")

    def feed(sharding: NamedSharding | None) -> ipu.Infeed:
        return ipu.Infeed(numbers(6, 4, 3), sharding=sharding, prefetch_depth=1, timeout=60)

    infeed = feed(NamedSharding(devices, split))
    outfeed = ipu.Outfeed("all")

    def body(carry: Any, batch: Any) -> Any:
        carry = 0.5 * carry + batch.sum(axis=0)  # a collective between two batches
        return carry, carry

    run = jax.jit(lambda c: ipu.repeat(6, body, c, infeed=infeed, outfeed=outfeed))
    carry = jax.block_until_ready(run(jnp.zeros(3)))
    parts = feed(None)

    def local(carry: Any) -> Any:
        """No collective: one replica may be at the end before the other begins."""
        return ipu.repeat(6, lambda c, batch: 0.5 * c + batch.sum(axis=0), carry, infeed=parts)

    apart = jax.shard_map(local, mesh=devices, in_specs=split, out_specs=split)
    return carry, outfeed.dequeue(), jax.jit(apart)(jnp.zeros(6))


@program
def callbacks_that_wait_for_each_other() -> Any:
    """As on the CPU backend: both replicas are in their callbacks at one time."""
    devices = mesh(2, names=("r",))
    barrier = threading.Barrier(2, timeout=60)

    def meet(x: Any) -> Any:
        barrier.wait()
        return np.asarray(x) * 2

    def local(x: Any) -> Any:
        return jax.pure_callback(meet, jax.ShapeDtypeStruct(x.shape, x.dtype), x) + 1

    split = PartitionSpec("r")
    run = jax.shard_map(local, mesh=devices, in_specs=split, out_specs=split)
    return jax.jit(run)(jnp.arange(4.0))


@program
def failures_and_resets() -> Any:
    """What the errors of devices are, which resets end them, and what runs give afterwards."""
    found = []

    def step(x: Any) -> Any:
        return 2 * x + 1

    run = jax.jit(step)
    for kind in ipu.testing.FAULTS:
        with ipu.testing.inject(kind, at_step=2, program="step"):
            x = jax.block_until_ready(run(numbers(4)))
            actions = []
            for action in ("", "ipu_reset", "partition_reset", "full_reset"):
                if action:
                    ipu.reset_device(action)
                try:
                    with ipu.typed_errors():
                        x = jax.block_until_ready(run(x))
                        break
                except ipu.Error as error:
                    wanted = getattr(error, "recovery_action", "")
                    actions.append(f"{type(error).__name__} {error.type} {wanted}")
            text = f"{kind}: {'; '.join(actions)}"
            found += [x, np.frombuffer(text.encode(), np.uint8)]
        found.append(run(x))
    return found


def _type_of(run: Callable[[], Any]) -> str:
    try:
        with ipu.typed_errors():
            jax.block_until_ready(run())
    except Exception as error:
        return type(error).__name__
    raise AssertionError("raised nothing")
