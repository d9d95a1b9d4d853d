"""Tables in files: a JSON header of 512 bytes, the rows, and accumulated gradients.

Accumulated gradients are ids (int64) and values (float32). A checksum covers everything after the
header.
"""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NoReturn

import ml_dtypes
import numpy as np

from ipujax.api.embed.table.mapped import in_order
from ipujax.api.embed.table.table import HostTable
from ipujax.errors import ConfigError
from ipujax.host.file_reading import json_of, opened_file
from ipujax.host.new_files import replacing

MAGIC = b"IPUEMBED"
HEADER_BYTES = 512
#: Bytes of the pieces in which a file is read and written.
PIECE_BYTES = 1 << 24
DTYPES = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
}


@dataclass(frozen=True)
class Header:
    """The contents of the header; `entries` is the number of accumulated gradients."""

    rows: int
    columns: int
    dtype: str
    updates: int
    steps: int  #: accumulated
    entries: int
    checksum: int

    @property
    def bytes_after(self) -> int:
        """The number of bytes after the header."""
        row_bytes = self.columns * DTYPES[self.dtype].itemsize
        return self.rows * row_bytes + self.entries * (8 + 4 * self.columns)


# Saving ------------------------------------------------------------------------------------------


def save(table: HostTable, path: Path) -> None:
    """Writes the table to the file, which is replaced atomically.

    Raises:
        OSError: no space or no permission; an existing file stays as before.
    """
    with table.lock.reading(), in_order(table.rows), replacing(path) as file:
        _write(table, file)


def _write(table: HostTable, file: IO[bytes]) -> None:
    ids, values = _accumulated(table)
    file.write(b"\0" * HEADER_BYTES)
    checksum = 0
    for array in (table.rows, ids, values):
        for piece in _pieces(array):
            checksum = zlib.crc32(piece, checksum)
            file.write(piece)
    rows, columns = table.rows.shape
    header = Header(
        rows,
        columns,
        table.rows.dtype.name,
        table.num_updates,
        table.num_accumulated,
        len(ids),
        checksum,
    )
    text = MAGIC + json.dumps(vars(header)).encode()
    file.seek(0)
    file.write(text.ljust(HEADER_BYTES))


def _accumulated(table: HostTable) -> tuple[np.ndarray, np.ndarray]:
    """Ids [n] and values of whole rows [n, columns]."""
    num_columns = table.rows.shape[1]
    ids, values = [np.zeros(0, np.int64)], [np.zeros((0, num_columns), np.float32)]
    for columns, (some_ids, some_values) in table.accumulated:
        whole = np.zeros((len(some_ids), num_columns), np.float32)
        whole[:, columns] = some_values
        ids.append(some_ids)
        values.append(whole)
    return np.concatenate(ids), np.concatenate(values)


def _pieces(array: np.ndarray) -> Iterator[memoryview]:
    if not array.size:
        return
    rows = max(1, PIECE_BYTES // (array.nbytes // len(array) or 1))
    for begin in range(0, len(array), rows):
        piece = np.ascontiguousarray(array[begin : begin + rows])
        yield piece.view(np.uint8).reshape(-1).data


# Restoring ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def opened(path: Path) -> Iterator[tuple[IO[bytes], Header]]:
    """The file and its header, after the whole file was checked.

    Raises:
        ConfigError: it is not a saved table, or is damaged.
    """
    with opened_file(path) as file:
        header = _header(path, file)
        checksum, ids_begin = 0, header.bytes_after - header.entries * (8 + 4 * header.columns)
        for begin in range(0, header.bytes_after, PIECE_BYTES):
            checksum = zlib.crc32(_exactly(path, file, header, begin), checksum)
        if checksum != header.checksum:
            _refuse(path, "another checksum")
        file.seek(HEADER_BYTES + ids_begin)
        ids = np.frombuffer(file.read(8 * header.entries), np.int64)
        if len(ids) and (ids.min() < 0 or ids.max() >= header.rows):
            _refuse(path, "accumulated gradients of rows that do not exist")
        file.seek(HEADER_BYTES)
        yield file, header


def _exactly(path: Path, file: IO[bytes], header: Header, begin: int) -> bytes:
    wanted = min(PIECE_BYTES, header.bytes_after - begin)
    piece = file.read(wanted)
    if len(piece) != wanted:
        _refuse(path, "fewer bytes than its header says")
    return piece


def read_into(table: HostTable, file: IO[bytes], header: Header) -> None:
    """Fills the table from an opened file of its shape and dtype."""
    into = table.rows.view(np.uint8).reshape(-1).data
    with table.lock.writing(), table.ahead.changing(None):
        for begin in range(0, len(into), PIECE_BYTES):
            file.readinto(into[begin : begin + PIECE_BYTES])  # type: ignore[attr-defined]
        ids = np.frombuffer(file.read(8 * header.entries), np.int64)
        values = np.frombuffer(file.read(4 * header.entries * header.columns), np.float32)
        change = (ids, values.reshape(header.entries, header.columns))
        table.accumulated = [(slice(0, header.columns), change)] if header.steps else []
        table.num_accumulated, table.num_updates = header.steps, header.updates


def _header(path: Path, file: IO[bytes]) -> Header:
    text = file.read(HEADER_BYTES)
    if len(text) != HEADER_BYTES or not text.startswith(MAGIC):
        _refuse(path, "another beginning")
    try:
        found = json_of(text[len(MAGIC) :])
    except ValueError:
        _refuse(path, "a header that is no JSON")
    names = Header.__annotations__
    if not isinstance(found, dict) or set(found) != set(names):
        _refuse(path, "a header with other entries")
    if not _are_counts([value for name, value in found.items() if name != "dtype"]):
        _refuse(path, "a header with values that are no counts")
    if not isinstance(found["dtype"], str) or found["dtype"] not in DTYPES:
        _refuse(path, f"the dtype {str(found['dtype'])[:20]!r}")
    header = Header(**found)
    if not (header.rows and header.columns) or (header.entries and not header.steps):
        _refuse(path, "a header that contradicts itself")
    if os.fstat(file.fileno()).st_size != HEADER_BYTES + header.bytes_after:
        _refuse(path, "another size than its header says")
    return header


def _are_counts(values: Sequence[Any]) -> bool:
    return all(type(value) is int and 0 <= value < 1 << 62 for value in values)


def _refuse(path: Path, what: str) -> NoReturn:
    raise ConfigError(
        f"[HostEmbedding.restore] needs a file that HostEmbedding.save wrote; got {path} with "
        f"{what}. Use another file."
    )
