"""Stage 2: one program for all devices becomes one program per device.

For a single device there is nothing to divide: shardings over meshes of size 1 say nothing, and the
reader of stage 3 drops them (`sdy.*`). Several devices are refused here until collectives are
lowered.
"""

from __future__ import annotations

from ipujax.compiler.ingest import Request
from ipujax.errors import UnsupportedOpError


def partition(request: Request) -> Request:
    """Refuses programs for several devices; hands on all others.

    Raises:
        UnsupportedOpError: the program is for more than one device.
    """
    num_devices = request.num_replicas * request.num_partitions
    if num_devices > 1:
        raise UnsupportedOpError(
            [
                (
                    f"a program over {num_devices} devices",
                    "programs over several devices are not lowered yet; put arrays on one device",
                    "",
                )
            ]
        )
    return request
