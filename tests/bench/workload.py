"""A program of `bench --all`, and how it is put on a backend and called."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from tests.bench.timing import RunMany, timed

Array = np.ndarray[Any, Any]


class Workload(NamedTuple):
    """`function(*arguments())` is jitted and called again and again.

    Arguments are trees of NumPy arrays, made when they are needed. Where `carries`, the first one
    is donated and the function's first result takes its place: a training state, a cache. Over
    several devices the first argument is whole on each, the others are split by their first
    dimension.
    """

    name: str
    function: Callable[..., Any]
    arguments: Callable[[], Sequence[Any]]
    carries: bool = False
    num_devices: int = 1

    def jitted(self) -> Any:
        """A jitted function of its own at each call: JAX keeps what it compiled by function."""

        def call(*arguments: Any) -> Any:
            return self.function(*arguments)

        return jax.jit(call, donate_argnums=(0,) if self.carries else ())


def provide_devices(count: int) -> None:
    """So many devices of either backend; neither may be in use before."""
    if count > 1:
        os.environ["JAX_IPU_DEVICE_COUNT"] = str(count)
        jax.config.update("jax_num_cpu_devices", count)


def placed(workload: Workload, platform: str, arguments: Sequence[Any]) -> list[Any]:
    """The arguments on the first devices of a platform."""
    devices = jax.devices(platform)[: workload.num_devices]
    if len(devices) == 1:
        return [jax.device_put(argument, devices[0]) for argument in arguments]
    mesh = Mesh(np.array(devices), ("data",))
    whole = NamedSharding(mesh, PartitionSpec())
    split = NamedSharding(mesh, PartitionSpec("data"))
    first, *others = arguments
    return [jax.device_put(first, whole), *(jax.device_put(other, split) for other in others)]


def on_devices(
    workload: Workload, platform: str, arguments: Sequence[Any] | None = None
) -> RunMany:
    """Calls on a platform, warmed up.

    Waits for the last result only, as users' loops do; over several devices for each: with several
    programs on their way, collectives of the CPU backend can wait for each other for ever.
    """
    inputs = placed(workload, platform, workload.arguments() if arguments is None else arguments)
    function = workload.jitted()

    def call() -> Any:
        result = function(*inputs)
        if workload.carries:
            inputs[0] = result[0]
        return result

    def run(num_calls: int) -> None:
        result = None
        for _ in range(num_calls):
            result = call()
            if workload.num_devices > 1:
                jax.block_until_ready(result)
        jax.block_until_ready(result)

    run(1)
    return timed(run)


def compiling(workload: Workload, platform: str) -> RunMany:
    """Compiling for a platform, after tracing and lowering."""
    inputs = placed(workload, platform, workload.arguments())

    def run(num_calls: int) -> float:
        lowered = [workload.jitted().lower(*inputs) for _ in range(num_calls)]
        start = time.perf_counter()
        for program in lowered:
            program.compile()
        return time.perf_counter() - start

    run(1)
    return run


def normal(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Array:
    """Normally distributed, made in float32: no larger array comes and goes."""
    drawn = np.random.default_rng(seed).standard_normal(shape, np.float32)
    return drawn.astype(dtype, copy=False)


def positive(*shape: int) -> Array:
    return np.abs(normal(*shape)) + np.float32(0.1)


def whole(*shape: int, dtype: Any, seed: int = 0) -> Array:
    """Integers of the dtype's whole range."""
    info = np.iinfo(dtype)
    return np.random.default_rng(seed).integers(info.min, info.max, shape, dtype, endpoint=True)


def indices(count: int, below: int, seed: int = 1) -> Array:
    return np.random.default_rng(seed).integers(0, below, count).astype(np.int32)
