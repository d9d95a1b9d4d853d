"""The benchmark on fewer processors than the machine has."""

from __future__ import annotations

import os
import sys

from ipujax.errors import ConfigError


def limit(num_threads: int) -> None:
    """Begins this process anew, bound to `num_threads` processors, unless it is.

    Both backends make as many threads as processors are open to the process at their first use;
    threads bound later would be many on few. Child processes inherit the bound.

    Raises:
        ConfigError: the process may not use so many processors.
    """
    open_to_us = sorted(os.sched_getaffinity(0))
    if not 1 <= num_threads <= len(open_to_us):
        raise ConfigError(
            f"[bench] needs --threads from 1 to {len(open_to_us)}, the processors open to this "
            f"process; got {num_threads}. Pass fewer, or start it with more."
        )
    os.environ.pop("IPUJAX_NUM_THREADS", None)  # would hold for one of the two backends
    if num_threads < len(open_to_us):
        # The last ones: interrupts and other programs tend to be on the first.
        os.sched_setaffinity(0, open_to_us[-num_threads:])
        sys.stdout.flush()
        os.execv(sys.executable, sys.orig_argv)
