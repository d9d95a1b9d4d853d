"""A child process that runs some harnesses and says of each how it went, one JSON line at a time.

A line `{"begin": name}` comes before each harness, so that the parent knows which one was running
when the process died or stood still.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ipujax.errors import IpuError
from tests.conformance.comparison import difference
from tests.conformance.harnesses import WIDE, Harness, all_harnesses

#: What a refusal looks like in JAX: the status of the error, then the place in ipujax.
REFUSAL = "UNIMPLEMENTED: ["


def main() -> None:
    """Reads positions of harnesses, one a line, from stdin; writes to the file it was given."""
    # Before jax is imported: the harnesses must not see a different world in each shell.
    os.environ["JAX_PLATFORMS"] = "ipu,cpu"
    run_positions(all_harnesses(), result)


def run_positions(
    harnesses: Sequence[Harness], result: Callable[[Harness], dict[str, Any]]
) -> None:
    """Runs what stdin asks for; the records go to the file that the first argument names."""
    positions = [int(line) for line in sys.stdin.read().split()]
    with open(sys.argv[1], "a", encoding="utf-8") as out:
        for position in positions:
            _say(out, {"begin": harnesses[position].name})
            _say(out, result(harnesses[position]))


def _say(out: Any, record: dict[str, Any]) -> None:
    out.write(json.dumps(record) + "\n")
    out.flush()


def result(harness: Harness) -> dict[str, Any]:
    """Runs one harness on both backends and compares."""
    record = {"name": harness.name, "group": harness.group, "dtype": harness.dtype}
    if harness.dtype in WIDE:
        return record | {"status": "skipped", "reason": "needs x64"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return record | _run_both(harness)


def _run_both(harness: Harness) -> dict[str, Any]:
    import jax

    try:
        arguments = list(harness.arguments())
        theirs, cpu_seconds = _run(harness.function, arguments, jax.devices("cpu")[0])
    except Exception as error:
        return {"status": "skipped", "reason": f"cpu: {first_lines(error)}"}
    try:
        ours, ipu_seconds = _run(harness.function, arguments, jax.devices("ipu")[0])
    except Exception as error:
        refused = isinstance(error, IpuError) or str(error).startswith(REFUSAL)
        status = "refused" if refused else "error"
        return {"status": status, "reason": first_lines(error), "cpu_s": cpu_seconds}
    times = {"cpu_s": cpu_seconds, "ipu_s": ipu_seconds}
    import numpy as np

    inputs = [np.asarray(jax.device_get(each)) for each in arguments if not _is_key(each)]
    wrong = difference(harness, inputs, ours, theirs)
    if wrong:
        return {"status": "wrong", "reason": wrong} | times
    return {"status": "works"} | times


def _run(
    function: Callable[..., Any], arguments: Sequence[Any], device: Any
) -> tuple[list[Any], float]:
    """Results as NumPy arrays, and seconds to lower, compile and run; tracing is common to both."""
    import jax
    import numpy as np

    placed = jax.block_until_ready(jax.device_put(list(arguments), device))
    with jax.default_device(device), _quiet():
        traced = jax.jit(function).trace(*placed)
        start = time.perf_counter()
        out = jax.block_until_ready(traced.lower().compile()(*placed))
        seconds = time.perf_counter() - start
    leaves = [jax.random.key_data(x) if _is_key(x) else x for x in jax.tree.leaves(out)]
    return [np.asarray(each) for each in leaves], seconds


def _is_key(value: Any) -> bool:
    import jax

    return hasattr(value, "dtype") and jax.numpy.issubdtype(value.dtype, jax.dtypes.prng_key)


def _quiet() -> contextlib.AbstractContextManager[Any]:
    return contextlib.redirect_stdout(sys.stderr)


def first_lines(error: Exception) -> str:
    """What an error says, short enough for one line."""
    lines = f"{type(error).__name__}: {error}".splitlines()
    return " ".join(line.strip() for line in lines[:3])[:400]


if __name__ == "__main__":
    main()
