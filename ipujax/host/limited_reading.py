"""Limits the processor time for reading a file on which jaxlib may never end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

#: Seconds of processor time, and bytes per additional second; a valid 0.1 MB program takes 0.02 s.
SECONDS = 10
BYTES_A_SECOND = 1 << 20


@contextmanager
def limited_reading(content: bytes) -> Iterator[None]:
    """The system ends this process if reading the content inside does not end by itself.

    It limits processor time, so that a busy machine does not make a valid file look damaged.
    """
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS + len(content) / BYTES_A_SECOND)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
