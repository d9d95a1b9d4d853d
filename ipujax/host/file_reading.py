"""Reads files from elsewhere: bounded, without waiting, and with ValueError for wrong contents.

Callers turn OSError and ValueError into errors of their own.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

#: Largest file of JSON, in bytes.
MOST_JSON_BYTES = 1 << 29
#: Deepest nesting of JSON; no file of ours has more than a tenth of it.
DEEPEST_JSON = 200


@contextmanager
def opened_file(path: str | Path) -> Iterator[BinaryIO]:
    """A regular file, opened to be read.

    Raises:
        OSError: it cannot be read, or is a device, a pipe or a folder, which may never end.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "Not a regular file", str(path))
        yield file


def content_of(path: str | Path, most_bytes: int = 1 << 40) -> bytes:
    """All bytes of a regular file; raises as `opened_file`, and ValueError above `most_bytes`."""
    with opened_file(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most_bytes:
            raise ValueError(f"{size} bytes, more than {most_bytes}")
        return file.read(size)


def text_of(path: str | Path, most_bytes: int = MOST_JSON_BYTES) -> str:
    """The text of a regular UTF-8 file; raises as `content_of` does."""
    return content_of(path, most_bytes).decode()


def json_of(text: str | bytes) -> Any:
    """The value of JSON text.

    Raises:
        ValueError: it is not JSON or not UTF-8, or nested deeper than `DEEPEST_JSON`.
    """
    too_deep = f"JSON nested deeper than {DEEPEST_JSON}"
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(too_deep) from None
    level = [value]
    for _ in range(DEEPEST_JSON):
        level = [
            child
            for each in level
            if isinstance(each, (dict, list))
            for child in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return value
    raise ValueError(too_deep)
