"""The processes of a job and their replicas, by PopDist's and Horovod's questions."""

from __future__ import annotations

import jax

from ipujax.jax_compat import PLATFORM


def process_count() -> int:
    """The number of processes of the job; 1 without `jax.distributed.initialize`.

    Source: `popdist.getNumInstances`, `horovod.size`.

    Example:
        >>> ipu.distributed.process_count()
        1
    """
    return jax.process_count()


def process_index() -> int:
    """The number of this process, from 0.

    Source: `popdist.getInstanceIndex`, `horovod.rank`.

    Example:
        >>> ipu.distributed.process_index()
        0
    """
    return jax.process_index()


def replica_count() -> int:
    """The number of IPU devices of all processes.

    Source: `popdist.getNumTotalReplicas`.

    Example:
        >>> ipu.distributed.replica_count() == len(jax.devices("ipu"))
        True
    """
    return jax.device_count(PLATFORM)


def local_replica_count() -> int:
    """The number of IPU devices of this process.

    Source: `popdist.getNumLocalReplicas`.

    Example:
        >>> ipu.distributed.local_replica_count() == len(jax.local_devices(backend="ipu"))
        True
    """
    return jax.local_device_count(PLATFORM)


def replica_offset() -> int:
    """The number of IPU devices of the processes before this one.

    Source: `popdist.getReplicaIndexOffset`.

    Example:
        >>> ipu.distributed.replica_offset()
        0
    """
    own = jax.process_index()
    return sum(device.process_index < own for device in jax.devices(PLATFORM))
