"""Tables in files that somebody truncates while they are used: errors, and the process lives."""

from __future__ import annotations

import mmap
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ipujax as ipu
from ipujax.api.embed.table.files import save
from ipujax.api.embed.table.table import HostTable, Part
from ipujax.errors import CallbackError

SHAPE = (4000, 16)  # 62 pages and a part of one


def created(path: Path) -> np.ndarray:
    made = ipu.HostEmbedding.create(SHAPE, file=path)
    made._table.rows[:] = 3
    return made._table.rows


def mapped(path: Path) -> np.ndarray:
    np.save(path, np.full(SHAPE, 3, np.float32))
    return np.load(path, mmap_mode="r+")


def mapped_from_the_middle(path: Path) -> np.ndarray:
    path.write_bytes(np.full((12_000, 16), 3, np.float32).tobytes())
    return np.memmap(path, np.float32, "r+", 4000 * 64 + 36, SHAPE)


#: A file's rows, all threes.
FILES: list[Callable[[Path], np.ndarray]] = [created, mapped, mapped_from_the_middle]
#: What is done with a table.
USES: dict[str, Callable[[HostTable, Path], Any]] = {
    "lookup": lambda table, _: table.lookup(0, np.arange(4000), Part(), False),
    "lookup ahead": lambda table, _: (
        table.lookup_ahead(np.arange(4000), Part(), False),
        table.lookup(0, np.arange(4000), Part(), False),
    ),
    "update": lambda table, _: (
        table.deposit(
            0,
            np.arange(9),
            np.ones((9, 16), np.float32),
            Part(),
            replica=0,
            learning_rate=1.0,
            clip=True,
        ),
        table.settle("lookup", 1),
    ),
    "save": lambda table, folder: save(table, folder / "saved"),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("make", FILES)
@pytest.mark.parametrize("left", ["a row is missing", "nothing"])
def test_a_truncated_file_is_an_error(tmp_path: Path, make: Any, use: str, left: str):
    path = tmp_path / "table.npy"
    table = HostTable(make(path), ipu.HostEmbeddingSGD(1.0))
    np.testing.assert_array_equal(table.lookup(0, np.arange(4000), Part(), False), 3)
    end = path.stat().st_size if make is not mapped_from_the_middle else 8000 * 64 + 36
    os.truncate(path, end - 64 if left == "a row is missing" else 0)
    for _ in range(2):
        with pytest.raises(CallbackError, match=rf"needs all {end} bytes of its file; got"):
            USES[use](table, tmp_path)
    assert os.listdir(tmp_path) == ["table.npy"]


def test_files_are_truncated_at_any_moment(tmp_path: Path):
    """Between two looks at its size a file may have been too short."""
    path = tmp_path / "table.npy"
    table = HostTable(mapped(path), None)
    size, ended, errors = path.stat().st_size, threading.Event(), 0

    def change() -> None:
        while not ended.is_set():
            os.truncate(path, 0)
            os.truncate(path, size)

    thread = threading.Thread(target=change)
    thread.start()
    for _ in range(200):
        try:
            table.lookup(0, np.arange(4000), Part(), False)
        except CallbackError:
            errors += 1
    ended.set()
    thread.join()
    assert errors > 0


def test_a_larger_file_and_memory_without_a_file_are_whole(tmp_path: Path):
    path = tmp_path / "table.npy"
    table = HostTable(mapped(path), None)
    os.truncate(path, path.stat().st_size + 100_000)
    np.testing.assert_array_equal(table.lookup(0, np.arange(4000), Part(), False), 3)

    rows = np.frombuffer(mmap.mmap(-1, 4000 * 64), np.float32).reshape(SHAPE)
    assert not HostTable(rows, None).lookup(0, np.arange(9), Part(), False).any()
