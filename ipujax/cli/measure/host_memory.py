"""Host memory of the transformer's training step, one child process for each backend."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from ipujax.cli.measure import source_tree
from ipujax.errors import IpuError


@dataclass(frozen=True)
class Measured:
    """Bytes that compiling and running the step added, and that 10,000 calls left behind."""

    step_bytes: int
    growth_bytes: int


def _resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _child(platform: str, num_calls: int) -> None:
    """Runs in the child; prints one JSON line."""
    import jax
    import numpy as np

    from ipujax.cli.measure import programs

    device = jax.devices(platform)[0]
    jax.block_until_ready(jax.jit(lambda x: x + 1)(jax.device_put(np.ones(4), device)))
    before = _resident_bytes()
    run = programs.transformer(device)
    run(10)
    step_bytes = max(_peak_bytes() - before, 1)

    small = programs.add_one(device)
    small(num_calls // 10)
    settled = _resident_bytes()
    small(num_calls)
    print(json.dumps([step_bytes, _resident_bytes() - settled]))


def measure(platform: str, num_calls: int = 10_000) -> Measured:
    """Starts a child with only that backend."""
    environment = {
        **os.environ,
        "JAX_PLATFORMS": platform,
        "PYTHONPATH": os.pathsep.join([str(source_tree.ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    command = [sys.executable, "-m", __name__, platform, str(num_calls)]
    child = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    if child.returncode != 0:
        raise IpuError(
            f"[bench] needs a child process on {platform} that ends well; got exit code "
            f"{child.returncode}: {child.stderr[-2000:]}. Do run it alone: {' '.join(command)}"
        )
    return Measured(*json.loads(child.stdout.splitlines()[-1]))


if __name__ == "__main__":
    _child(sys.argv[1], int(sys.argv[2]))
