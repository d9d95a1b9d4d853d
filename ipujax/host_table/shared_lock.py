"""A lock that many readers or one writer hold."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class SharedLock:
    """Lookups of several replicas read at the same time; a change waits until they are done."""

    def __init__(self) -> None:
        self._free = threading.Condition()
        self._num_readers = 0
        self._is_written = False

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Holds the lock together with other readers."""
        with self._free:
            self._free.wait_for(lambda: not self._is_written)
            self._num_readers += 1
        try:
            yield
        finally:
            with self._free:
                self._num_readers -= 1
                self._free.notify_all()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Holds the lock alone."""
        with self._free:
            self._free.wait_for(lambda: not (self._is_written or self._num_readers))
            self._is_written = True
        try:
            yield
        finally:
            with self._free:
                self._is_written = False
                self._free.notify_all()
