"""Files that take the place of others when they are complete."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` when the block ends, whole and on the disk.

    A block that raises, or a process that is killed, leaves what was there and nothing else.

    Raises:
        OSError: no room, no right.
    """
    from ipujax._poplar._poplar import embedded

    new = embedded.NewFile(str(path))
    try:
        with open(new.fileno(), "w+b", closefd=False) as file:
            yield file
        new.keep(str(path))
    finally:
        new.discard()
