"""What test_full_disk runs on a small disk: `on_full_disk FOLDER files|orbax|cache`."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

import ipujax as ipu

FIRST = np.random.default_rng(0).integers(0, 2**20, 500_000).astype(np.float32)  # 2 MB


def training(folder: Path, backend: str, steps: int):
    """Trains to this step with a checkpoint after each; the state and the steps that are there."""
    hook = ipu.training.Checkpoint(folder, every=1, keep=99, backend=backend)
    loop = ipu.training.Loop(lambda w, b: (w + b, b), steps_per_call=1, hooks=[hook])
    try:
        return loop.train(FIRST, np.ones(99, np.float32), steps=steps), hook.steps()
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        return None, hook.steps()


def checkpoints(folder: Path, backend: str) -> None:
    path = folder / "checkpoints"
    _, there = training(path, backend, 2)
    assert there == [1, 2], there
    state, there = training(path, backend, 99)
    assert state is None, "the disk is full, and it is an error"
    last = there[-1]
    assert there == list(range(1, last + 1)), there
    assert last < 99
    left = [each.name for each in path.iterdir() if "tmp" in each.name]
    assert not left, left
    state, there = training(path, backend, last)  # loads the newest
    np.testing.assert_array_equal(state, FIRST + last)
    assert there[-1] == last


def fill(path: Path) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(file, bytes(4096))
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
    finally:
        os.close(file)


def cache(folder: Path) -> None:
    """JAX's cache of executables, which writes what it can and warns of the rest."""
    jax.config.update("jax_compilation_cache_dir", str(folder / "cache"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    first, second = lambda x: x @ x, lambda x: x @ x + 1
    np.testing.assert_allclose(jax.jit(first)(x), x @ x)
    entries = {path: path.read_bytes() for path in (folder / "cache").iterdir()}
    assert entries
    fill(folder / "rest")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        np.testing.assert_allclose(jax.jit(second)(x), x @ x + 1)
    assert any("No space left on device" in str(each.message) for each in caught), caught
    assert {path: path.read_bytes() for path in entries} == entries
    (folder / "rest").unlink()
    jax.clear_caches()
    np.testing.assert_allclose(jax.jit(first)(jnp.asarray(x)), x @ x)
    np.testing.assert_allclose(jax.jit(second)(jnp.asarray(x)), x @ x + 1)


if __name__ == "__main__":
    where, what = Path(sys.argv[1]), sys.argv[2]
    cache(where) if what == "cache" else checkpoints(where, what)
    print("passed")
