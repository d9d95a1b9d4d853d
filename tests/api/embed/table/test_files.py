"""Saved tables: whole, damaged, on a full disk, and of a process that was killed."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ipujax as ipu
from ipujax.api.embed.table.files import HEADER_BYTES, MAGIC
from ipujax.api.embed.table.mapped import memory_of
from ipujax.errors import CallbackError, ConfigError


def new_table(seed: int = 0, dtype: Any = np.float32, factor: int = 1) -> ipu.HostEmbedding:
    rows = np.random.default_rng(seed).normal(size=(50, 4)).astype(dtype)
    return ipu.HostEmbedding(rows, ipu.HostEmbeddingSGD(0.5, factor))


def step(table: ipu.HostEmbedding, token: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    return table.update(token, rng.integers(0, 50, 8), rng.normal(size=(8, 4)).astype(np.float32))


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_a_restored_table_goes_on_as_the_saved_one(tmp_path, dtype) -> None:
    """Saved in the middle of an accumulation, and restored into another table."""
    table, path = new_table(dtype=dtype, factor=3), tmp_path / "table"
    token = table.token()
    for seed in range(4):
        token = step(table, token, seed)
    table.save(token, path)
    other = new_table(9, dtype, 3)
    loaded = ipu.HostEmbedding.load(path, ipu.HostEmbeddingSGD(0.5, 3))
    assert (loaded.shape, loaded.dtype) == ((50, 4), dtype)
    tokens = [token, other.restore(path), loaded.token()]
    for seed in range(4, 9):
        tokens = [
            step(one, token, seed)
            for one, token in zip((table, other, loaded), tokens, strict=True)
        ]
    want, *found = (
        one.read(token) for one, token in zip((table, other, loaded), tokens, strict=True)
    )
    for rows in found:
        np.testing.assert_array_equal(rows, want)


def test_tokens_from_before_a_restore_do_not_count(tmp_path) -> None:
    table = new_table()
    table.save(table.token(), tmp_path / "table")
    old = step(table, table.token(), 0)
    token = table.restore(tmp_path / "table")
    np.testing.assert_array_equal(table.read(token), new_table().read(0))
    for number in (0, old):
        with pytest.raises(CallbackError, match=r"HostEmbedding\.read"):
            table.read(number)


def test_a_file_is_the_rows_after_a_header(tmp_path) -> None:
    path = tmp_path / "table"
    new_table().save(0, path)
    contents = path.read_bytes()
    assert json.loads(contents[len(MAGIC) : HEADER_BYTES])["rows"] == 50
    rows = np.frombuffer(contents[HEADER_BYTES:], np.float32).reshape(50, 4)
    np.testing.assert_array_equal(rows, new_table().read(0))


def _with_header(contents: bytes, **changed: Any) -> bytes:
    header = json.loads(contents[len(MAGIC) : HEADER_BYTES]) | changed
    header = {name: value for name, value in header.items() if value is not None}
    return (MAGIC + json.dumps(header).encode()).ljust(HEADER_BYTES) + contents[HEADER_BYTES:]


DAMAGES = {
    "empty": lambda c: b"",
    "short": lambda c: c[:-1],
    "long": lambda c: c + b"\0",
    "header alone": lambda c: c[:HEADER_BYTES],
    "another beginning": lambda c: b"X" + c[1:],
    "no JSON": lambda c: c[:20] + b"}" + c[21:],
    "deep JSON": lambda c: (MAGIC + b"[" * 500).ljust(HEADER_BYTES) + c[HEADER_BYTES:],
    "a bit of a row": lambda c: c[:700] + bytes([c[700] ^ 1]) + c[701:],
    "last bit": lambda c: c[:-1] + bytes([c[-1] ^ 128]),
    "rows": lambda c: _with_header(c, rows=49),
    "negative": lambda c: _with_header(c, rows=-50),
    "huge": lambda c: _with_header(c, rows=1 << 61),
    "swapped": lambda c: _with_header(c, rows=0, columns=0),
    "a float": lambda c: _with_header(c, columns=4.0),
    "true": lambda c: _with_header(c, updates=True),
    "dtype": lambda c: _with_header(c, dtype="object"),
    "list": lambda c: _with_header(c, dtype=["float32"]),
    "missing": lambda c: _with_header(c, updates=None),
    "another entry": lambda c: _with_header(c, more=1),
    "checksum": lambda c: _with_header(c, checksum=1),
    "entries": lambda c: _with_header(c, entries=1),
    "accumulated": lambda c: _with_header(c, steps=1),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_files_are_refused(tmp_path, damage) -> None:
    table, path = new_table(), tmp_path / "table"
    new_table(1).save(0, path)
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    with pytest.raises(ConfigError, match=r"HostEmbedding.restore\] needs .*; got"):
        table.restore(path)
    np.testing.assert_array_equal(table.read(0), new_table().read(0))  # token 0 still counts


def test_accumulated_gradients_of_rows_that_do_not_exist(tmp_path) -> None:
    import zlib

    table, path = new_table(factor=2), tmp_path / "table"
    table.save(step(table, table.token(), 0), path)
    contents = bytearray(path.read_bytes())
    begin = HEADER_BYTES + 50 * 4 * 4
    contents[begin : begin + 8] = np.int64(50).tobytes()
    checksum = zlib.crc32(contents[HEADER_BYTES:])
    path.write_bytes(_with_header(bytes(contents), checksum=checksum))
    with pytest.raises(ConfigError, match="rows that do not exist"):
        new_table(factor=2).restore(path)


def test_tables_of_another_kind_are_refused(tmp_path) -> None:
    table, path = new_table(factor=2), tmp_path / "table"
    table.save(step(table, table.token(), 0), path)
    with pytest.raises(ConfigError, match=r"float16 \[50, 4\]; got float32"):
        new_table(dtype=np.float16, factor=2).restore(path)
    with pytest.raises(ConfigError, match=r"at most 0 accumulated steps.* got 1"):
        new_table().restore(path)
    with pytest.raises(FileNotFoundError):
        table.restore(tmp_path / "none")


# Failures while saving ---------------------------------------------------------------------------


def test_a_full_disk_leaves_the_file_and_the_table(tmp_path) -> None:
    table, path = new_table(), tmp_path / "table"
    table.save(0, path)
    before = path.read_bytes()
    token = step(table, table.token(), 0)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            table.save(token, path)
        with pytest.raises(OSError, match="File too large"):
            ipu.HostEmbedding.create((50, 4), file=tmp_path / "mapped.npy")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["table"]
    table.save(token, path)
    np.testing.assert_array_equal(ipu.HostEmbedding.load(path).read(0), table.read(token))


def test_a_folder_without_the_right_to_write(tmp_path) -> None:
    (tmp_path / "table").mkdir()
    table = new_table()
    with pytest.raises(IsADirectoryError):
        table.save(0, tmp_path / "table")  # is a folder
    with pytest.raises(FileNotFoundError):
        table.save(0, tmp_path / "none" / "table")
    assert os.listdir(tmp_path) == ["table"]
    np.testing.assert_array_equal(table.read(0), new_table().read(0))


KILLED = """
    import os, signal, sys
    import numpy as np
    import ipujax as ipu
    from ipujax._poplar._poplar import embedded
    from ipujax.api.embed.table import files

    files.PIECE_BYTES = 100
    table = ipu.HostEmbedding(np.ones((50, 4), np.float32))
    table.save(0, sys.argv[1])
    table._table.rows[:] = 2
    pieces, last = files._pieces, int(sys.argv[2])

    def some(array):
        for number, piece in enumerate(pieces(array)):
            if number == last:
                os.kill(os.getpid(), signal.SIGKILL)
            yield piece
        if last < 0:
            embedded.NewFile.keep = lambda *_: os.kill(os.getpid(), signal.SIGKILL)

    files._pieces = some
    table.save(0, sys.argv[1])
"""


@pytest.mark.parametrize("last", [0, 3, -1])
def test_a_process_killed_while_it_saves_leaves_the_file(tmp_path: Path, last: int) -> None:
    path = tmp_path / "table"
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(path), str(last)], check=False
    )
    assert run.returncode == -9
    loaded = ipu.HostEmbedding.load(path)
    np.testing.assert_array_equal(loaded.read(0), np.ones((50, 4)))
    loaded.save(0, path)  # over what the process left
    assert os.listdir(tmp_path) == ["table"]


# Memory-mapped files -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_a_table_in_a_memory_mapped_file(tmp_path, dtype) -> None:
    path = tmp_path / "table.npy"

    def initializer(first: int, count: int) -> np.ndarray:
        return np.arange(first, first + count)[:, None] * np.ones(4)

    table = ipu.HostEmbedding.create(
        (50, 4), dtype, ipu.HostEmbeddingSGD(1.0), initializer=initializer, file=path
    )
    token = table.update(table.token(), np.array([3]), np.ones((1, 4), np.float32))
    wanted = initializer(0, 50)
    wanted[3] = 2
    np.testing.assert_array_equal(table.read(token).astype(np.float64), wanted)
    in_file = np.load(path)
    np.testing.assert_array_equal(in_file.view(dtype).astype(np.float64), wanted)
    with pytest.raises(ConfigError, match="does not exist yet"):
        ipu.HostEmbedding.create((50, 4), file=path)
    table.save(token, tmp_path / "saved")
    again = ipu.HostEmbedding.load(tmp_path / "saved", file=tmp_path / "again.npy")
    np.testing.assert_array_equal(again.read(0).astype(np.float64), wanted)


def test_the_room_of_a_file_is_reserved(tmp_path) -> None:
    ipu.HostEmbedding.create((100_000, 4), file=tmp_path / "table.npy")
    status = (tmp_path / "table.npy").stat()
    assert status.st_blocks * 512 >= status.st_size > 1_600_000


def test_only_own_files_are_advised_on(tmp_path) -> None:
    made = ipu.HostEmbedding.create((50, 4), file=tmp_path / "table.npy")
    assert memory_of(made._table.rows) is not None
    other = np.load(tmp_path / "table.npy", mmap_mode="r+")
    assert memory_of(ipu.HostEmbedding(other)._table.rows) is None
    assert memory_of(new_table()._table.rows) is None


def test_an_initializer_of_another_shape_leaves_no_file(tmp_path) -> None:
    with pytest.raises(ConfigError, match=r"returns \[50, 4\] for this block; got \[4\]"):
        ipu.HostEmbedding.create(
            (50, 4), initializer=lambda *_: np.zeros(4), file=tmp_path / "table.npy"
        )
    assert os.listdir(tmp_path) == []
