"""Becomes the program of one rank: the first code that a process of a job runs.

A script of its own that imports nothing but the standard library, so that it starts at once. Its
argument is the plan of the job as JSON; the command follows. The rank is in the plan, or in the
environment that mpiexec sets.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import sys
from typing import Any

_PR_SET_PDEATHSIG = 1
#: What MPICH's mpiexec, and Open MPI's, call the rank and the rank on its host.
_RANKS = ("PMI_RANK", "OMPI_COMM_WORLD_RANK")
_LOCAL_RANKS = ("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK")


def _first(names: tuple[str, ...]) -> int | None:
    return next((int(os.environ[each]) for each in names if each in os.environ), None)


def environment(plan: dict[str, Any], rank: int, local: int) -> dict[str, str]:
    """The variables by which JAX, ipujax and loaders know their rank.

    JAX takes the number of processes and the rank from a cluster that it recognises, not from
    variables of its own: those of Open MPI are known before those of SLURM.
    """
    devices, ipus = plan["devices"], plan["ipus_per_device"]
    first = local * devices
    most = plan["local_size"] * devices * ipus
    return {
        "OMPI_MCA_orte_hnp_uri": "ipujax launch",
        "OMPI_COMM_WORLD_SIZE": str(plan["size"]),
        "OMPI_COMM_WORLD_RANK": str(rank),
        "OMPI_COMM_WORLD_LOCAL_RANK": str(local),
        "JAX_COORDINATOR_ADDRESS": plan["coordinator"],
        # The launcher has the coordinator; rank 0 starts one that nobody asks.
        "JAX_COORDINATOR_BIND_ADDRESS": f"127.0.0.1:{plan['unused_port']}",
        "JAX_IPU_VISIBLE_DEVICES": ",".join(map(str, range(first, first + devices))),
        "JAX_IPU_IPUS_PER_DEVICE": str(ipus),
        "IPUJAX_NUM_IPUS_IN_HOST": str(max(16, most)),
        "IPUJAX_NUM_THREADS": str(len(cores(plan, local))),
        "RANK": str(rank),
        "LOCAL_RANK": str(local),
        "WORLD_SIZE": str(plan["size"]),
        "LOCAL_WORLD_SIZE": str(plan["local_size"]),
        "RESTART_COUNT": str(plan["restarts"]),
        "PYTHONUNBUFFERED": "1",
    }


def cores(plan: dict[str, Any], local: int) -> list[int]:
    """The cores of a rank: an equal part of those of this host, or one that it shares."""
    own = sorted(os.sched_getaffinity(0))
    count = max(1, len(own) // plan["local_size"])
    first = local * count % len(own)
    return own[first : first + count]


def main(plan_text: str, command: list[str]) -> None:
    plan = json.loads(plan_text)
    rank = plan.get("rank", _first(_RANKS))
    local = plan.get("local_rank", _first(_LOCAL_RANKS))
    if rank is None or local is None:
        sys.exit(
            "[launch] needs mpiexec to set PMI_RANK and MPI_LOCALRANKID; got neither. Use that of "
            "MPICH or Open MPI."
        )
    if "rank" in plan:
        # Processes that have called jax.distributed.initialize ignore SIGTERM.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != plan["launcher"]:
            sys.exit(1)
    os.environ.update(environment(plan, rank, local))
    os.sched_setaffinity(0, cores(plan, local))
    if shutil.which(command[0]) is None:
        sys.exit(
            f"[launch] needs a program to start; got {command[0]!r}, which is not found. Correct "
            "its name or PATH."
        )
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
