"""One process that runs programs over all devices of the job, and tells what its shards hold.

`python -m tests.hosts.digests FILE KIND FIRST COUNT` writes JSON: of each seed the digests of all
shards of all results by device, or the error. Equal jobs over other numbers of processes must write
the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

#: By seed; a text is an error.
Found = dict[str, dict[str, str] | str]


def digest(shard: Any) -> str:
    data = np.asarray(shard.data)
    whole = f"{data.dtype}{data.shape}".encode() + data.tobytes()
    return hashlib.sha256(whole).hexdigest()[:16]


def of_results(results: list[jax.Array]) -> dict[str, str]:
    """The digests of the shards here, by number of the result and device."""
    found = {}
    for number, x in enumerate(results):
        for shard in x.addressable_shards:
            found[f"{number}/{shard.device.id}"] = digest(shard)
    return found


def meshes(seed: int) -> list[jax.Array]:
    from tests.fuzz.meshes.place import Place
    from tests.fuzz.meshes.program import from_seed

    program = from_seed(seed)
    mesh = program.mesh
    return [x for x in program.run(Place(mesh.of("ipu"), mesh.explicit)) if x is not None]


def collectives(seed: int) -> list[jax.Array]:
    from tests.hosts.collectives import results

    return results(seed)


def trainings(seed: int) -> list[jax.Array]:
    from tests.hosts.trainings import TRAININGS

    return TRAININGS[seed]()


KINDS: dict[str, Callable[[int], list[jax.Array]]] = {
    "meshes": meshes,
    "collectives": collectives,
    "trainings": trainings,
}


def run(kind: str, seeds: range) -> Found:
    found: Found = {}
    for seed in seeds:
        try:
            found[str(seed)] = of_results([jax.block_until_ready(x) for x in KINDS[kind](seed)])
        except Exception as error:
            found[str(seed)] = f"{type(error).__name__}: {str(error)[:300]}"
            if "[hosts]" in str(error):
                break
    return found


def main(path: str, kind: str, first: int, count: int) -> None:
    jax.config.update("jax_num_cpu_devices", 8)  # on which programs are drawn
    if "WORLD_SIZE" in os.environ:
        jax.distributed.initialize()
    found = run(kind, range(first, first + count))
    Path(f"{path}.{jax.process_index()}").write_text(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
