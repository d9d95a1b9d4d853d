"""New tables, in memory or in memory-mapped files."""

from __future__ import annotations

import math
import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ipujax.errors import CallbackError, ConfigError

#: Approximate bytes of the blocks in which a table is filled.
BLOCK_BYTES = 1 << 24


def new_rows(shape: tuple[int, int], dtype: np.dtype, path: Path | None) -> np.ndarray:
    """Zeros, in memory or in a new .npy file whose disk space is reserved.

    Raises:
        ConfigError: the file exists.
        OSError: no space or no permission; no file is left behind.
    """
    if path is None:
        return np.zeros(shape, dtype)
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileExistsError:
        raise ConfigError(
            f"[HostEmbedding] needs a file that does not exist yet; got {path}. Remove it, or use "
            "another path."
        ) from None
    try:
        with os.fdopen(descriptor, "r+b") as file:
            # ml_dtypes have no name in this format: their bits are stored.
            stored = np.dtype(np.uint16) if dtype.kind == "V" else dtype
            header = {"descr": stored.str, "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            begin = file.tell()
            # Here a full disk is an error; later it would end the process.
            os.posix_fallocate(file.fileno(), 0, begin + math.prod(shape) * dtype.itemsize)
            memory = mmap.mmap(file.fileno(), 0)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    memory.madvise(mmap.MADV_RANDOM)  # a row is read without its neighbors
    return np.frombuffer(memory, dtype, offset=begin).reshape(shape)


def memory_of(rows: np.ndarray) -> mmap.mmap | None:
    """The memory of rows that `new_rows` mapped."""
    base: Any = rows
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    mapped = base.obj if isinstance(base, memoryview) else None
    return mapped if isinstance(mapped, mmap.mmap) else None


def check_of(rows: np.ndarray) -> Callable[[], None]:
    """A function that raises CallbackError once the rows' file is too short for them.

    It checks users' `np.memmap`s as well as what `new_rows` mapped.
    """
    base: Any = rows
    begin = 0  #: of the memory, in the file
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap):
            begin = base.offset // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        base = base.base
    memory = base.obj if isinstance(base, memoryview) else base
    if not isinstance(memory, mmap.mmap) or not _has_file(memory):
        return lambda: None
    from ipujax._poplar import _poplar  # ipujax can be imported without it

    watched = _poplar.feeds.MappedMemory(memory)
    needed = begin + rows.ctypes.data + rows.nbytes - np.frombuffer(memory, np.uint8).ctypes.data

    def check() -> None:
        size = memory.size()
        if size >= needed and not watched.is_torn:
            return
        got = f"{size}" if size < needed else "fewer for a while"
        raise CallbackError(
            f"[HostEmbedding] needs all {needed} bytes of its file; got {got}. Restore the table "
            "into another file."
        )

    return check


def _has_file(memory: mmap.mmap) -> bool:
    try:
        return memory.size() >= 0
    except OSError:  # it is anonymous
        return False


@contextmanager
def in_order(rows: np.ndarray) -> Iterator[None]:
    """Surrounds reads of a memory-mapped file from the first row to the last."""
    memory = memory_of(rows)
    if memory is None:
        yield
        return
    memory.madvise(mmap.MADV_SEQUENTIAL)
    try:
        yield
    finally:
        memory.madvise(mmap.MADV_RANDOM)


def fill(rows: np.ndarray, initializer: Callable[[int, int], Any]) -> None:
    """Fills the rows by an initializer, which takes a block's first row and number of rows."""
    size = max(1, BLOCK_BYTES // (rows.shape[1] * rows.itemsize))
    for begin in range(0, len(rows), size):
        block = rows[begin : begin + size]
        made = np.asarray(initializer(begin, len(block)))
        if made.shape != block.shape:
            raise ConfigError(
                "[HostEmbedding.create] needs an initializer that returns "
                f"{list(block.shape)} for this block; got {list(made.shape)}. Return "
                "[count, columns]."
            )
        block[...] = made
