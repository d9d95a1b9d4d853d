"""Files of named arrays, for checkpoints and exported inputs.

A file is `IPUARRAY`, the length of a JSON header, the header, and the arrays' bytes. The header has
a name, dtype, shape, offset and checksum for each array. A file is whole or absent, and all
of it is verified before an array is used.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes  # noqa: F401 (gives NumPy the names bfloat16, float8_e5m2 ...)
import numpy as np

from ipujax.errors import ArrayFileError
from ipujax.host.file_reading import content_of, json_of
from ipujax.host.new_files import replacing

_MAGIC = b"IPUARRAY"
_VERSION = 1
_LENGTHS = struct.Struct("<QI")  # of the header, its checksum
_ALIGNMENT = 64


def write(path: Path, arrays: Mapping[str, np.ndarray], meta: Any = None) -> None:
    """Writes the whole file, or leaves an existing one unchanged.

    Args:
        meta: any JSON value.
    Raises:
        OSError: the file cannot be written, such as on a full disk.
    """
    plain = {name: np.asarray(x, order="C") for name, x in arrays.items()}
    entries: list[dict[str, Any]] = []
    offset = 0
    for name, x in plain.items():
        entries.append(
            {
                "name": name,
                "dtype": x.dtype.name,
                "shape": list(x.shape),
                "offset": offset,
                "checksum": zlib.crc32(_bytes(x)),
            }
        )
        offset += -(-x.nbytes // _ALIGNMENT) * _ALIGNMENT
    header = {"version": _VERSION, "meta": meta, "arrays": entries}
    with replacing(path) as file:
        file.write(header_bytes(_MAGIC, header))
        start = file.tell()
        for entry, x in zip(entries, plain.values(), strict=True):
            file.write(b"\0" * (start + entry["offset"] - file.tell()))
            file.write(_bytes(x))


def _bytes(array: np.ndarray) -> Any:
    return array.reshape(-1).view(np.uint8).data


def read(path: Path) -> tuple[dict[str, np.ndarray], Any]:
    """The arrays by name, and `meta`.

    Raises:
        ArrayFileError: the file is damaged, or of another kind.
        OSError: it cannot be read.
    """
    data = content_of(path)
    try:
        header, start = read_header(data, _MAGIC, _VERSION)
        arrays = {_name(entry): _array(data, start, entry) for entry in header["arrays"]}
        return arrays, header["meta"]
    except (ValueError, KeyError, TypeError, struct.error, OverflowError) as error:
        raise damaged(path, error) from error


def _name(entry: Any) -> str:
    name = entry["name"]
    if not isinstance(name, str):
        raise ValueError(f"{name!r} is no name")
    return name


def damaged(path: Path, why: object) -> ArrayFileError:
    return ArrayFileError(
        f"[array file] needs a whole file of ipujax; got {path}, which is damaged or of another "
        f"kind ({why}). Delete it, and use an earlier one."
    )


def read_header(data: bytes, magic: bytes, version: int) -> tuple[dict[str, Any], int]:
    """The JSON header, and where it ends. Raises ValueError."""
    if data[: len(magic)] != magic:
        raise ValueError(f"it does not begin with {magic.decode()}")
    length, checksum = _LENGTHS.unpack_from(data, len(magic))
    start = len(magic) + _LENGTHS.size
    text = data[start : start + length]
    if len(text) != length or zlib.crc32(text) != checksum:
        raise ValueError("its header does not match its checksum")
    header = json_of(text)
    if header["version"] != version:
        raise ValueError(f"it has version {header['version']}, not {version}")
    return header, start + length


def header_bytes(magic: bytes, header: Mapping[str, Any]) -> bytes:
    """The bytes that `read_header` reads."""
    text = json.dumps(header).encode()
    return magic + _LENGTHS.pack(len(text), zlib.crc32(text)) + text


def _array(data: bytes, start: int, entry: Any) -> np.ndarray:
    dtype, shape = dtype_of(entry["dtype"]), shape_of(entry["shape"])
    size = dtype.itemsize * int(np.prod(shape, dtype=object))
    first = start + int(entry["offset"])
    held = data[first : first + size]
    if first < start or len(held) != size or zlib.crc32(held) != entry["checksum"]:
        raise ValueError(f"array {entry['name']!r} does not match its checksum")
    return np.frombuffer(held, dtype).reshape(shape)


def dtype_of(name: Any) -> np.dtype:
    """A numeric dtype by its name. Raises ValueError."""
    dtype = np.dtype(str(name))
    if dtype.hasobject or dtype.names or dtype.kind in "SUMm":
        raise ValueError(f"the dtype {name!r} is not one of numbers")
    return dtype


def shape_of(shape: Any) -> tuple[int, ...]:
    """A shape from JSON. Raises ValueError."""
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError(f"{shape!r} is no shape")
    return tuple(shape)
