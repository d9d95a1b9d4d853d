"""Files that replace others once they are complete."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[BinaryIO]:
    """A new file that replaces `path` when the block ends, complete and on disk.

    If the block raises, or the process is killed, an existing file stays and nothing else is left.

    Raises:
        OSError: no space or no permission.
    """
    from ipujax._poplar._poplar import embedded

    new = embedded.NewFile(str(path))
    try:
        with open(new.fileno(), "w+b", closefd=False) as file:
            yield file
        new.keep(str(path))
    finally:
        new.discard()
