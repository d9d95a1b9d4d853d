"""A child process that runs programs, or harnesses of JAX, on its build's IPUs; pickles results.

python -m tests.sdk.worker programs|staged|ops <file>
"""

from __future__ import annotations

import os
import pickle
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ipujax.compiler import kept_arguments
from tests.conformance.harnesses import Harness
from tests.sdk.ops import small_harnesses


def main() -> None:
    kind, file = sys.argv[1:]
    assert jax.default_backend() == "ipu"
    kept_arguments.LEAST_BYTES = 1  # arguments of tests are small
    results = {name: _result(run) for name, run in _runs(kind)}
    Path(file).write_bytes(pickle.dumps(results))
    # Nothing of value is left; a program that hangs must not keep the process.
    sys.stdout.flush()
    os._exit(0)


def _runs(kind: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    if kind == "ops":
        for name, harness in small_harnesses().items():
            yield name, lambda h=harness: _second_run(h)
        return
    from tests.sdk import feed_programs, programs

    both = programs.PROGRAMS | feed_programs.FEEDS
    yield from (programs.STAGED if kind == "staged" else both).items()


def _second_run(harness: Harness) -> Any:
    """With arrays that the device has from the first run, as no rule may write to arguments."""
    function, arguments = jax.jit(harness.function), jax.device_put(harness.arguments())
    jax.block_until_ready(function(*arguments))
    return function(*arguments)


def _result(run: Callable[[], Any]) -> dict[str, Any]:
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            leaves = jax.tree.leaves(jax.block_until_ready(run()))
        arrays = [np.asarray(_plain(leaf)) for leaf in leaves]
        found: dict[str, Any] = {"arrays": arrays}
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {error}"}
    return found | {"seconds": time.perf_counter() - start}


def _plain(leaf: Any) -> Any:
    if hasattr(leaf, "dtype") and jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.key_data(leaf)
    return leaf


if __name__ == "__main__":
    main()
