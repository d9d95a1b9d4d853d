"""What `jax.distributed` knows of the job's processes."""

from __future__ import annotations

from typing import Any


def num_processes() -> int:
    """The number of processes of the job, before JAX has made its devices."""
    from jax._src import distributed

    return distributed.global_state.num_processes or 1


def rank() -> int | None:
    """The number of this process in a job of several; None alone."""
    from jax._src import distributed

    return distributed.global_state.process_id if num_processes() > 1 else None


def coordinator_address() -> str:
    """Host and port of the job's coordinator; empty if there is none."""
    from jax._src import distributed

    return distributed.global_state.coordinator_address or ""


def coordinator(bind_address: str, processes: int, heartbeat_seconds: int) -> Any:
    """Starts the service at which the processes of a job meet; it has a method `shutdown`.

    One that outlives process 0, unlike that of `jax.distributed.initialize`, so that the end of
    any process is like that of any other.
    """
    from jaxlib import _jax

    return _jax.get_distributed_runtime_service(
        bind_address,
        processes,
        heartbeat_timeout=heartbeat_seconds,
        shutdown_timeout=heartbeat_seconds,
        recoverable=True,
    )
