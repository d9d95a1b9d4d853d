"""Host memory of programs, one child process for each backend."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass

from tests.bench import children


@dataclass(frozen=True)
class Measured:
    """Bytes that compiling and running the step added, and that 10,000 calls left behind."""

    step_bytes: int
    growth_bytes: int


def _warm_up(platform: str) -> None:
    """What any first program costs is in no figure."""
    import jax
    import numpy as np

    device = jax.devices(platform)[0]
    jax.block_until_ready(jax.jit(lambda x: x + 1)(jax.device_put(np.ones(4), device)))


def _child_of_transformer(platform: str, num_calls: int) -> list[int]:
    import jax

    from tests.bench import memory, programs

    _warm_up(platform)
    device = jax.devices(platform)[0]
    memory.forget_peak()
    before = memory.resident_bytes()
    run = programs.transformer(device)
    run(10)
    step_bytes = max(memory.peak_bytes() - before, 1)

    small = programs.add_one(device)
    small(num_calls // 10)
    settled = memory.resident_bytes()
    small(num_calls)
    return [step_bytes, memory.resident_bytes() - settled]


def _child_of_workload(platform: str, name: str) -> int:
    """Bytes at the peak of placing the arguments, compiling and a few calls."""
    from tests.bench import memory, workloads
    from tests.bench.workload import on_devices, provide_devices

    workload = workloads.named(name)
    provide_devices(workload.num_devices)
    _warm_up(platform)
    arguments = workload.arguments()
    memory.forget_peak()
    before = memory.resident_bytes()
    on_devices(workload, platform, arguments)(3)
    return max(memory.peak_bytes() - before, 1)


def measure(platform: str, num_calls: int = 10_000) -> Measured:
    """The transformer's training step and calls of a small program, in one child."""
    step_bytes, growth_bytes = _in_child(platform, "transformer", str(num_calls))
    return Measured(step_bytes, growth_bytes)


def peak_bytes(platform: str, workload_name: str) -> int:
    """What one workload adds to a process that has run a small program."""
    (peak,) = _in_child(platform, "workload", workload_name)
    return peak


def _in_child(platform: str, *arguments: str) -> list[int]:
    """The figures that the child prints."""
    environment = {"JAX_PLATFORMS": platform}
    (figures,) = children.json_lines(["-m", __name__, platform, *arguments], environment)
    return [int(figure) for figure in figures]


def _child(platform: str, what: str, argument: str) -> None:
    if what == "workload":
        print(json.dumps([_child_of_workload(platform, argument)]))
    else:
        print(json.dumps(_child_of_transformer(platform, int(argument))))
    sys.stdout.flush()
    os._exit(0)  # nothing is left to measure; taking down JAX takes as long as the child did


if __name__ == "__main__":
    _child(*sys.argv[1:])
