"""`python -m tests.libraries.worker`: runs programs of one file on one platform, in this process.

Into the folder of results it writes NAME.npz, the arrays that a program returned, and a line of
`events` as each program begins and ends: what libraries print is kept apart.
"""

from __future__ import annotations

import argparse
import json
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import jax
import numpy as np

from tests.libraries.program import Program, Tree, imported


def arrays_of(tree: Tree, platform: str) -> dict[str, np.ndarray]:
    """Path -> numbers of each leaf; at least one of them has to come from `platform`."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    found = {device.platform for _, leaf in leaves for device in _devices(leaf)}
    if found != {platform}:
        raise ValueError(
            f"[libraries] needs results computed on {platform}; got results on "
            f"{', '.join(sorted(found)) or 'no device'}. Return the program's jax.Arrays."
        )
    return {jax.tree_util.keystr(path): _numbers(leaf) for path, leaf in leaves}


def _devices(leaf: object) -> set[jax.Device]:
    return leaf.devices() if isinstance(leaf, jax.Array) else set()


def _numbers(leaf: object) -> np.ndarray:
    if isinstance(leaf, jax.Array) and jax.dtypes.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    array = np.asarray(leaf)
    # NumPy saves dtypes of other packages, such as bfloat16, as bytes without a meaning.
    return array if array.dtype.isbuiltin == 1 else array.astype(np.float32)


def _outcome(program: Program, platform: str, results: Path) -> dict:
    start = time.perf_counter()
    try:
        with jax.enable_x64(program.x64):
            arrays = arrays_of(program.run(), platform)
        np.savez(results / f"{program.name}.npz", **arrays)
        error = ""
    except Exception:
        error = traceback.format_exc()
    return {"name": program.name, "seconds": time.perf_counter() - start, "error": error}


def run(programs: list[Program], platform: str, results: Path) -> Iterator[dict]:
    if jax.default_backend() != platform:
        raise SystemExit(f"[libraries] needs platform {platform}; got {jax.default_backend()}.")
    for program in programs:
        yield {"begin": program.name}
        yield _outcome(program, platform, results)


def main() -> None:
    parser = argparse.ArgumentParser("python -m tests.libraries.worker", description=__doc__)
    parser.add_argument("file", type=Path, help="of programs")
    parser.add_argument("platform", choices=("ipu", "cpu"))
    parser.add_argument("results", type=Path, help="folder")
    parser.add_argument("--without", nargs="*", default=[], help="programs not to run")
    options = parser.parse_args()
    chosen = [p for p in imported(options.file) if p.name not in options.without]
    with (options.results / "events").open("a") as events:
        for event in run(chosen, options.platform, options.results):
            print(json.dumps(event), file=events, flush=True)


if __name__ == "__main__":
    main()
