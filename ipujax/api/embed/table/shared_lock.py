"""A lock for many readers or one writer."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class SharedLock:
    """Lookups of several replicas read at the same time; a change waits until they are done.

    Args:
        check: called by each holder at its beginning and end: raises if what the lock guards is
            lost.
    """

    def __init__(self, check: Callable[[], None] = lambda: None) -> None:
        self.check = check
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
            self.check()
            yield
            self.check()
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
            self.check()
            yield
            self.check()
        finally:
            with self._free:
                self._is_written = False
                self._free.notify_all()
