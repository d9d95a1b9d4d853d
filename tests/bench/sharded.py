"""Programs over several devices that are timed: each makes a warmed-up `RunMany` on them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tests.bench import source_tree
from tests.bench.timing import RunMany, timed

Devices = Sequence[jax.Device]

#: What the row of collectives sums, in each replica.
PSUM_BYTES = 1 << 20


def _mesh(devices: Devices) -> Mesh:
    return Mesh(np.array(devices), ("data",))


def _split(devices: Devices) -> NamedSharding:
    """By the first dimension."""
    return NamedSharding(_mesh(devices), PartitionSpec("data"))


def _whole(devices: Devices) -> NamedSharding:
    """The same on every device."""
    return NamedSharding(_mesh(devices), PartitionSpec())


def _repeat(function: Callable[..., Any], *inputs: jax.Array) -> RunMany:
    """Calls that wait for each result.

    With several of them on their way, collectives of the CPU backend wait for threads that wait for
    them, until they end the process.
    """
    jax.block_until_ready(function(*inputs))

    def run(num_calls: int) -> None:
        for _ in range(num_calls):
            jax.block_until_ready(function(*inputs))

    return timed(run)


def add_one(devices: Devices) -> RunMany:
    """x + 1 on four floats a device: the cost of a call."""
    x = jax.device_put(np.ones(4 * len(devices), np.float32), _split(devices))
    return _repeat(jax.jit(lambda x: x + 1), x)


def psum(devices: Devices) -> RunMany:
    """The sum over the devices of 1 MiB of float32 each."""
    summed = jax.shard_map(
        lambda x: jax.lax.psum(x, "data"),
        mesh=_mesh(devices),
        in_specs=PartitionSpec("data"),
        out_specs=PartitionSpec(),
    )
    x = np.ones(len(devices) * PSUM_BYTES // 4, np.float32)
    return _repeat(jax.jit(summed), jax.device_put(x, _split(devices)))


def _transformer(devices: Devices) -> tuple[Any, Any, Any]:
    """The module, its state whole on every device, and a batch split over them."""
    module = source_tree.example("transformer")
    tokens, num_letters = module.load_tokens()
    rows = next(module.batches(tokens))
    count = -(-len(rows) // len(devices)) * len(devices)  # one row a device at the least
    batch = jax.device_put(np.resize(rows, (count, rows.shape[1])), _split(devices))
    with jax.default_device(devices[0]):
        params = module.init_params(jax.random.key(0), num_letters)
        state = (params, module.optimizer.init(params))
    return module, jax.device_put(state, _whole(devices)), batch


def transformer(devices: Devices) -> RunMany:
    """The training step of examples/models/transformer.py, its batch split over the devices."""
    module, state, batch = _transformer(devices)
    held = [state]
    held[0], loss = module.train_step(held[0], batch)
    jax.block_until_ready(loss)

    def run(num_calls: int) -> None:
        for _ in range(num_calls):
            held[0], loss = module.train_step(held[0], batch)
            jax.block_until_ready((held[0], loss))

    return timed(run)


def compile_transformer(devices: Devices) -> RunMany:
    """Compiling that step, after tracing and lowering."""
    module, state, batch = _transformer(devices)
    serial = iter(range(1 << 30))

    def run(num_calls: int) -> float:
        taken = 0.0
        for _ in range(num_calls):
            scale = jnp.float32(next(serial))  # a constant that makes it a new program
            step = jax.jit(lambda s, b, scale=scale: (module.train_step(s, b), scale))
            lowered = step.lower(state, batch)
            start = time.perf_counter()
            lowered.compile()
            taken += time.perf_counter() - start
        return taken

    run(1)
    return run
