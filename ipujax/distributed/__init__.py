"""What the processes of a job know of each other, and how they combine arrays on the host."""

from ipujax.distributed.host_arrays import allgather as allgather
from ipujax.distributed.host_arrays import allreduce as allreduce
from ipujax.distributed.host_arrays import barrier as barrier
from ipujax.distributed.host_arrays import broadcast as broadcast
from ipujax.distributed.job import local_replica_count as local_replica_count
from ipujax.distributed.job import process_count as process_count
from ipujax.distributed.job import process_index as process_index
from ipujax.distributed.job import replica_count as replica_count
from ipujax.distributed.job import replica_offset as replica_offset
from ipujax.host.module_help import with_names as _with_names

#: In the order of the guide.
__all__ = [
    "allgather",
    "allreduce",
    "barrier",
    "broadcast",
    "local_replica_count",
    "process_count",
    "process_index",
    "replica_count",
    "replica_offset",
]

__doc__ = _with_names(globals())
