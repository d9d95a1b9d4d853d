"""The benchmark on fewer processors than the machine has."""

from __future__ import annotations

import os
import sys

from ipujax.errors import ConfigError


def limit(num_threads: int) -> None:
    """Restarts this process bound to `num_threads` processors, unless it is already.

    Both backends create as many threads as there are processors available at their first use; a
    later limit would put many threads on few processors. Child processes inherit the limit.

    Raises:
        ConfigError: fewer processors are available to the process.
    """
    available = sorted(os.sched_getaffinity(0))
    if not 1 <= num_threads <= len(available):
        raise ConfigError(
            f"[bench] needs --threads from 1 to {len(available)}, the processors available to "
            f"this process; got {num_threads}. Pass a smaller number."
        )
    os.environ.pop("IPUJAX_NUM_THREADS", None)  # would apply to one backend only
    if num_threads < len(available):
        # The last ones: interrupts and other programs tend to use the first.
        os.sched_setaffinity(0, available[-num_threads:])
        sys.stdout.flush()
        os.execv(sys.executable, sys.orig_argv)
