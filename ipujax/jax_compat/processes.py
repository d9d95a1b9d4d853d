"""What `jax.distributed` knows of the job's processes."""

from __future__ import annotations


def num_processes() -> int:
    """The number of processes of the job, before JAX has made its devices."""
    from jax._src import distributed

    return distributed.global_state.num_processes or 1


def coordinator_address() -> str:
    """Host and port of the job's coordinator; empty if there is none."""
    from jax._src import distributed

    return distributed.global_state.coordinator_address or ""
