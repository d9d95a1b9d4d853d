"""Which arrays `HostEmbedding` trains where they are, and which it copies or refuses."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from ipujax.errors import ConfigError

RATE, ROWS, COLUMNS = 0.1, 40, 8
START = np.random.default_rng(0).normal(size=(ROWS, COLUMNS)).astype(np.float32)
IDS = np.random.default_rng(2).integers(0, ROWS, (4, 6)).astype(np.int32)


def test_arrays_of_numpy_are_changed_in_place() -> None:
    own = START.copy()
    table = ipu.HostEmbedding(own, ipu.HostEmbeddingSGD(RATE))
    rows = table.read(table.update(table.token(), IDS[0], START[IDS[0]]))
    np.testing.assert_array_equal(own, rows)


@pytest.mark.parametrize("make", [jnp.asarray, np.ndarray.tolist])
def test_other_arrays_are_copied(make) -> None:
    rows = make(START)
    table = ipu.HostEmbedding(rows, ipu.HostEmbeddingSGD(RATE))
    changed = table.read(table.update(table.token(), IDS[0], START[IDS[0]]))
    np.testing.assert_array_equal(np.asarray(rows, np.float32), START)
    assert (changed != START).any()


def _memmap(tmp_path, mode):
    np.save(tmp_path / "rows.npy", START)
    return np.load(tmp_path / "rows.npy", mmap_mode=mode)


def _read_only() -> np.ndarray:
    rows = START.copy()
    rows.flags.writeable = False
    return rows


#: What no update can reach: the caller's array would stay as it is.
NOT_IN_PLACE = {
    "memmap": (lambda path: _memmap(path, "r"), "got a read-only one"),
    "read-only": (lambda path: _read_only(), "got a read-only one"),
    "jax view": (lambda path: np.asarray(jnp.asarray(START)), "got a read-only one"),
    "transposed": (lambda path: START.T.copy().T, r"got one with strides \[4, 160\]"),
    "columns": (lambda path: np.zeros((ROWS, 9), np.float32)[:, :8], r"strides \[36, 4\]"),
    "reversed": (lambda path: START.copy()[::-1], r"strides \[-32, 4\]"),
}


@pytest.mark.parametrize("name", NOT_IN_PLACE)
def test_arrays_that_cannot_be_changed_in_place_are_not_trained(name, tmp_path) -> None:
    make, text = NOT_IN_PLACE[name]
    rows = make(tmp_path)
    with pytest.raises(ConfigError, match=rf"\[HostEmbedding\] needs a writeable.*{text}"):
        ipu.HostEmbedding(rows, ipu.HostEmbeddingSGD(RATE))
    table = ipu.HostEmbedding(rows)  # looked up where they are, without a copy
    assert np.shares_memory(table._table.rows, rows)
    found = jax.jit(lambda token: table.lookup(token, IDS[0]))(table.token())
    np.testing.assert_array_equal(found, rows[IDS[0]])
    table.save(table.token(), tmp_path / "saved")
    with pytest.raises(ConfigError, match=rf"\[HostEmbedding.restore\] needs a writeable.*{text}"):
        table.restore(tmp_path / "saved")


def test_a_memory_mapped_file_is_trained(tmp_path) -> None:
    table = ipu.HostEmbedding(_memmap(tmp_path, "r+"), ipu.HostEmbeddingSGD(RATE))
    table.read(table.update(table.token(), IDS[0], START[IDS[0]]))
    assert (np.load(tmp_path / "rows.npy") != START).any()
