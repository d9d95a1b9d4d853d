"""Batches in a file: written by `export_dataset`, fed by `DatasetFile`.

A file is `IPUBATCH`, a header as in `ipujax.host.array_files` with the batch's arrays and the
number of batches, then the batches: the arrays' bytes and their checksum.
"""

from __future__ import annotations

import itertools
import shutil
import struct
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ipujax.api.feed.batches import Data, check_same, iterate, leaves_of, specs_of
from ipujax.api.feed.keys import check_none
from ipujax.api.feed.ports import bytes_of
from ipujax.data import trees
from ipujax.errors import FeedError
from ipujax.host import array_files
from ipujax.host.file_reading import opened_file
from ipujax.host.new_files import replacing

_MAGIC = b"IPUBATCH"
_VERSION = 1
_CHECKSUM = struct.Struct("<I")
_MOST_HEADER = 1 << 20


def export_dataset(path: str | Path, data: Data, number: int | None = None) -> int:
    """Writes batches to a file.

    Args:
        path: path of the file; an existing file is replaced.
        data: as for `ipujax.Infeed`; all batches alike; dicts, lists and tuples of arrays.
        number: number of batches; None: all.
    Returns:
        the number of batches written.
    Raises:
        FeedError: batches that differ, or no batches.
        OSError: the file cannot be written; an existing file stays intact.

    Source: `export_dataset_to_file` of Graphcore's TensorFlow.

    Example:
        >>> print(ipu.data.export_dataset("d.ipubatch", [(np.arange(2), np.float32(i))
        ...                                              for i in range(3)]))
        3
        >>> print([float(y) for _, y in ipu.data.DatasetFile("d.ipubatch")])
        [0.0, 1.0, 2.0]
    """
    count, structure = 0, None
    specs: tuple[jax.ShapeDtypeStruct, ...] = ()
    with tempfile.TemporaryFile(dir=Path(path).parent) as body:
        first: Any = None
        for batch in itertools.islice(iterate(data), number):
            check_none("export", "to write them", batch)
            leaves, tree = leaves_of(batch)
            if count == 0:
                structure, specs, first = trees.to_json(batch), specs_of(leaves), tree
            check_same(count, leaves, tree, specs, first)
            record = b"".join(bytes_of(x).tobytes() for x in leaves)
            body.write(record + _CHECKSUM.pack(zlib.crc32(record)))
            count += 1
        if count == 0:
            raise FeedError("[export] needs at least one batch; got none. Pass other data.")
        arrays = [{"dtype": np.dtype(s.dtype).name, "shape": list(s.shape)} for s in specs]
        header = {"version": _VERSION, "tree": structure, "arrays": arrays, "count": count}
        with replacing(path) as file:
            file.write(array_files.header_bytes(_MAGIC, header))
            body.seek(0)
            shutil.copyfileobj(body, file)
    return count


class DatasetFile:
    """The batches of a file, for `ipujax.Infeed`. Each is verified when it is read.

    Args:
        path: written by `export_dataset`.
    Raises:
        ArrayFileError: the file is damaged or of another kind.

    Example:
        >>> n = ipu.data.export_dataset("d.ipubatch", np.arange(4, dtype=np.float32))
        >>> infeed = ipu.Infeed(ipu.data.DatasetFile("d.ipubatch"))
        >>> print(jax.jit(lambda: ipu.repeat(4, jnp.add, 0.0, infeed=infeed))())
        6.0
    """

    def __init__(self, path: str | Path):
        self._path = Path(path)
        with opened_file(self._path) as file:
            head = file.read(_MOST_HEADER)
        try:
            header, self._start = array_files.read_header(head, _MAGIC, _VERSION)
            self._tree, self._count = header["tree"], int(header["count"])
            self._specs = [
                jax.ShapeDtypeStruct(
                    array_files.shape_of(entry["shape"]), array_files.dtype_of(entry["dtype"])
                )
                for entry in header["arrays"]
            ]
            self._sizes = [
                int(np.prod(s.shape, dtype=object)) * s.dtype.itemsize for s in self._specs
            ]
            self._record = sum(self._sizes) + _CHECKSUM.size
            size = self._path.stat().st_size
            if size != self._start + self._count * self._record:
                raise ValueError(f"it has {size} bytes, not those of {self._count} batches")
        except (ValueError, KeyError, TypeError, struct.error, OverflowError) as error:
            raise array_files.damaged(self._path, error) from error

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        return self.skip(0)

    def skip(self, number: int) -> Iterator[Any]:
        """The batches after the first `number`, which are not read."""
        with opened_file(self._path) as file:
            file.seek(self._start + number * self._record)
            for i in range(number, self._count):
                yield self._batch(i, file.read(self._record))

    def _batch(self, number: int, record: bytes) -> Any:
        body, checksum = record[: -_CHECKSUM.size], record[-_CHECKSUM.size :]
        if len(record) != self._record or _CHECKSUM.pack(zlib.crc32(body)) != checksum:
            raise array_files.damaged(self._path, f"batch {number} does not match its checksum")
        leaves, first = [], 0
        for spec, size in zip(self._specs, self._sizes, strict=True):
            leaves.append(np.frombuffer(body[first : first + size], spec.dtype).reshape(spec.shape))
            first += size
        try:
            return trees.from_json(self._tree, leaves)
        except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
            raise array_files.damaged(self._path, error) from error
