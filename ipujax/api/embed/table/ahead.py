"""Reads rows before they are needed, on a thread of its own."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

#: Maximum number of reads that are kept for later lookups.
_MOST_READS = 64

#: Identifies a read: its part of the table, and the ids' bytes.
Key = tuple[object, bytes]


@dataclass
class _Read:
    rows: Future[np.ndarray]
    changed: list[np.ndarray] = field(default_factory=list)  #: ids written since it began


class Ahead:
    """Reads in progress, by key.

    A read sees rows before or after a concurrent change; the ids of such changes are noted, and
    these rows are read again. So a read ahead never changes a result.
    """

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._reads: OrderedDict[Key, _Read] = OrderedDict()
        self._threads: ThreadPoolExecutor | None = None
        self.num_used = 0  #: number of lookups that found their rows here

    def begin(self, key: Key, read: Callable[[], np.ndarray]) -> None:
        """Begins to read, unless the same rows are being read already."""
        with self._mutex:
            if key in self._reads:
                return
            if self._threads is None:
                self._threads = ThreadPoolExecutor(1, thread_name_prefix="ipujax-lookup-ahead")
            self._reads[key] = _Read(self._threads.submit(read))
            while len(self._reads) > _MOST_READS:
                self._reads.popitem(last=False)

    @contextmanager
    def changing(self, ids: np.ndarray | None) -> Iterator[None]:
        """Surrounds a write of these rows, or of the whole table; no lookup runs meanwhile.

        A read may begin at any moment, so the change is noted after the last row is written.
        """
        try:
            yield
        finally:
            with self._mutex:
                if ids is None:
                    self._reads.clear()
                else:
                    for read in self._reads.values():
                        read.changed.append(ids)

    def take(self, key: Key) -> tuple[np.ndarray, np.ndarray] | None:
        """The rows that were read, and the ids of those that changed since; None if not read."""
        with self._mutex:
            read = self._reads.pop(key, None)
        if read is None:
            return None
        rows = read.rows.result()
        with self._mutex:
            changed = read.changed
            self.num_used += 1
        return rows, np.concatenate(changed) if changed else np.zeros(0, np.int64)
