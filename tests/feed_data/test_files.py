"""Files of batches and inputs: what comes back, and that damage is noticed."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import ipujax as ipu

RNG = np.random.default_rng(0)


def _batch(i):
    return {
        "x": RNG.normal(size=(3, 2)).astype(ml_dtypes.bfloat16),
        "y": (np.int32(i), [RNG.normal(size=5).astype(np.float16), np.array(i % 2 == 0)]),
        "none": None,
    }


BATCHES = [_batch(i) for i in range(6)]


def _same(a, b):
    assert jax.tree.structure(a) == jax.tree.structure(b)
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert np.asarray(x).dtype == np.asarray(y).dtype
        np.testing.assert_array_equal(x, y)


def test_a_dataset_comes_back_and_can_be_entered_anywhere(tmp_path: Path):
    path = tmp_path / "d.ipubatch"
    assert ipu.data.export_dataset(path, BATCHES) == 6
    data = ipu.data.DatasetFile(path)
    assert len(data) == 6
    for start in (0, 4, 6):
        found = list(data.skip(start))
        assert len(found) == 6 - start
        for got, wanted in zip(found, BATCHES[start:], strict=True):
            _same(got, wanted)
    assert ipu.data.export_dataset(path, iter(BATCHES), number=2) == 2
    assert len(ipu.data.DatasetFile(path)) == 2
    assert [p.name for p in tmp_path.iterdir()] == ["d.ipubatch"]


def test_a_file_feeds_a_program(tmp_path: Path):
    arrays = RNG.normal(size=(7, 4)).astype(np.float32)
    ipu.data.export_dataset(tmp_path / "d", arrays)
    infeed = ipu.Infeed(ipu.data.DatasetFile(tmp_path / "d"), position=2)
    total = jax.jit(lambda: ipu.repeat(5, jnp.add, jnp.zeros(4), infeed=infeed))()
    np.testing.assert_allclose(total, arrays[2:].sum(0), rtol=1e-5)
    assert infeed.position == 7


def test_inputs_come_back(tmp_path: Path):
    ipu.data.export_inputs(tmp_path / "i", (BATCHES[0], 2.5, np.arange(3)))
    _same(ipu.data.load_inputs(tmp_path / "i"), (BATCHES[0], 2.5, np.arange(3)))


@pytest.mark.parametrize("kind", ["dataset", "inputs"])
def test_every_byte_is_verified(tmp_path: Path, kind: str):
    path = tmp_path / "f"
    if kind == "dataset":
        ipu.data.export_dataset(path, BATCHES[:2])
        read = lambda: list(ipu.data.DatasetFile(path))  # noqa: E731
    else:
        ipu.data.export_inputs(path, BATCHES[:1])
        read = lambda: ipu.data.load_inputs(path)  # noqa: E731
    whole = path.read_bytes()
    wanted = read()
    for i in range(len(whole)):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 0x10]) + whole[i + 1 :])
        try:
            found = read()
        except ipu.ArrayFileError:
            continue
        _same(found, wanted)  # between two arrays, where nothing is
    for cut in range(0, len(whole), 11):
        path.write_bytes(whole[:cut])
        with pytest.raises(ipu.ArrayFileError, match="damaged or of another kind"):
            read()


def test_a_failed_export_leaves_the_file_that_was_there(tmp_path: Path):
    def broken():
        yield np.float32(1)
        raise OSError("gone")

    path = tmp_path / "d"
    ipu.data.export_dataset(path, [np.float32(5)])
    with pytest.raises(OSError, match="gone"):
        ipu.data.export_dataset(path, broken)
    with pytest.raises(ipu.FeedError, match="batches like the first"):
        ipu.data.export_dataset(path, [np.zeros(2), np.zeros(3)])
    with pytest.raises(ipu.FeedError, match="at least one batch"):
        ipu.data.export_dataset(path, [])
    assert list(ipu.data.DatasetFile(path)) == [5]
    assert [p.name for p in tmp_path.iterdir()] == ["d"]


def test_other_pytrees_are_refused(tmp_path: Path):
    with pytest.raises(ipu.FeedError, match="dicts with names, lists and tuples"):
        ipu.data.export_inputs(tmp_path / "i", {"x": object()})
