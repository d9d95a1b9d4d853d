"""Whether results are the same, bit for bit, from run to run and for any number of threads."""

from __future__ import annotations

import hashlib
import json
import sys

from tests.bench import children
from tests.bench.row import Row

NAME = "programs whose bits differ"
#: Threads of the engine in each child; one number twice is one run after another.
THREADS = (1, 3, 3, 8)


def row() -> Row:
    """How many of the programs of `--all` give different bits in some child."""
    found: list[dict[str, str]] = [
        children.json_lines(
            ["-m", __name__], {"JAX_PLATFORMS": "ipu", "IPUJAX_NUM_THREADS": str(count)}
        )[-1]
        for count in THREADS
    ]
    differing = [name for name in found[0] if len({digests[name] for digests in found}) > 1]
    threads = ", ".join(map(str, THREADS))
    detail = f"of {len(found[0])}, with {threads} threads: {', '.join(differing) or 'none'}"
    return Row(NAME, len(differing), 0, detail)


def _digests() -> dict[str, str]:
    """Of each program's results on "ipu", by its name."""
    import jax
    import numpy as np

    from tests.bench.workload import placed, provide_devices
    from tests.bench.workloads import workloads

    programs = workloads()
    provide_devices(max(program.num_devices for program in programs))
    found = {}
    for program in programs:
        result = program.jitted()(*placed(program, "ipu", program.arguments()))
        digest = hashlib.sha256()
        for leaf in jax.tree.leaves(result):
            digest.update(np.asarray(leaf).tobytes())
        found[program.name] = digest.hexdigest()
    return found


if __name__ == "__main__":
    print(json.dumps(_digests()))
    sys.stdout.flush()
