"""What ipujax adds to the start of a process that uses JAX."""

from __future__ import annotations

import statistics

from tests.bench import children
from tests.bench.row import Row, seconds

#: Seconds that importing ipujax and listing its devices may take longer than JAX alone.
BOUND_SECONDS = 0.5
NAME = "import and devices, s over JAX's"

#: JAX alone: a plugin of that name that does nothing stands where JAX looks for ipujax.
_JAX_ALONE = """
import json, sys, time, types
sys.modules["ipujax"] = types.ModuleType("ipujax")
sys.modules["ipujax.plugin"] = types.ModuleType("ipujax.plugin")
sys.modules["ipujax.plugin"].initialize = lambda: None
start = time.perf_counter()
import jax
jax.devices("cpu")
print(json.dumps(time.perf_counter() - start))
"""
_WITH_IPUJAX = """
import json, time
start = time.perf_counter()
import ipujax, jax
jax.devices("ipu")
print(json.dumps(time.perf_counter() - start))
"""


def row(num_rounds: int) -> Row:
    """Medians over children by turns, after one of each that is not counted."""
    taken: dict[str, list[float]] = {_JAX_ALONE: [], _WITH_IPUJAX: []}
    platforms = {_JAX_ALONE: "cpu", _WITH_IPUJAX: "ipu,cpu"}
    for _ in range(num_rounds + 1):
        for code, samples in taken.items():
            environment = {"JAX_PLATFORMS": platforms[code]}
            samples.append(children.json_lines(["-c", code], environment)[-1])
    alone, with_ipujax = (statistics.median(samples[1:]) for samples in taken.values())
    detail = f"ipujax {seconds(with_ipujax)}, JAX alone {seconds(alone)}"
    return Row(NAME, with_ipujax - alone, BOUND_SECONDS, detail)
