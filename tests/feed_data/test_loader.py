"""`ipu.data.Loader` and `BatchSizes`: which examples are in which batch."""

from __future__ import annotations

import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu


class _Examples:
    """A map-style dataset whose items take time, so that threads finish out of order."""

    def __init__(self, number=23):
        self.number, self.threads, self.read = number, set(), []

    def __len__(self):
        return self.number

    def __getitem__(self, i):
        if i >= self.number:
            raise IndexError(i)
        self.threads.add(threading.current_thread().name)
        self.read.append(i)
        time.sleep(0.001 * (i % 5))
        return {"i": i, "x": np.full(2, i, np.float32)}


@pytest.mark.parametrize("workers", [0, 1, 4])
@pytest.mark.parametrize("drop", [True, False])
def test_order_does_not_depend_on_workers(workers, drop):
    loader = ipu.data.Loader(_Examples(), 4, workers=workers, drop_remainder=drop)
    got = [batch["i"].tolist() for batch in loader]
    wanted = [list(range(i, min(i + 4, 23))) for i in range(0, 23, 4)]
    assert got == (wanted[:-1] if drop else wanted)
    assert len(loader) == len(got)


def test_workers_are_other_threads():
    data = _Examples()
    list(ipu.data.Loader(data, 4, workers=3))
    assert len(data.threads) == 3
    assert threading.current_thread().name not in data.threads


def test_shuffled_epochs_are_permutations_that_can_be_repeated():
    arrays = {"a": np.arange(20), "b": np.arange(20) * 2}
    loader = ipu.data.Loader(arrays, 5, seed=3)
    epochs = []
    for epoch in (0, 1, 0):
        loader.set_epoch(epoch)
        batches = list(loader)
        assert all((b["b"] == 2 * b["a"]).all() for b in batches)
        epochs.append(np.concatenate([b["a"] for b in batches]).tolist())
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(20))
    assert epochs[0] == epochs[2] != epochs[1]


@pytest.mark.parametrize("workers", [0, 2])
def test_skipped_batches_are_not_read(workers):
    data = _Examples()
    loader = ipu.data.Loader(data, 4, seed=1, workers=workers)
    whole = [b["i"].tolist() for b in loader]
    data.read.clear()
    assert [b["i"].tolist() for b in loader.skip(3)] == whole[3:]
    assert sorted(data.read) == sorted(i for batch in whole[3:] for i in batch)


def test_rebatching_keeps_every_row_in_order():
    sizes = [3, 1, 7, 2, 5, 4]
    rows = np.arange(sum(sizes))
    parts = np.split(rows, np.cumsum(sizes)[:-1])
    data = [{"x": part, "y": part * 2} for part in parts]
    loader = ipu.data.Loader(data, 4, rebatch=True, drop_remainder=False)
    batches = list(loader)
    assert [len(b["x"]) for b in batches] == [4] * 5 + [2]
    np.testing.assert_array_equal(np.concatenate([b["x"] for b in batches]), rows)
    assert len(list(ipu.data.Loader(data, 4, rebatch=True))) == 5


def test_iterables_of_examples_are_collated():
    loader = ipu.data.Loader(({"x": i} for i in range(7)), 3)
    assert [b["x"].tolist() for b in loader] == [[0, 1, 2], [3, 4, 5]]


def test_a_worker_that_raises_fails_the_iteration():
    class Broken(_Examples):
        def __getitem__(self, i):
            if i == 9:
                raise OSError("bad sector")
            return super().__getitem__(i)

    batches = iter(ipu.data.Loader(Broken(), 4, workers=2))
    assert [next(batches)["i"][0] for _ in range(2)] == [0, 4]
    with pytest.raises(OSError, match="bad sector"):
        next(batches)


def test_a_training_with_shuffled_epochs_resumes_bit_equal(tmp_path):
    arrays = np.random.default_rng(0).normal(size=(22, 3)).astype(np.float32)

    def train(folder, steps):
        loader = ipu.data.Loader(arrays, 4, seed=5, workers=2)
        loop = ipu.training.Loop(
            lambda s, b: (0.9 * s + b.sum(0), s.sum()),
            steps_per_call=2,
            hooks=[ipu.training.Checkpoint(folder, every=2)],
        )
        return np.asarray(loop.train(jnp.zeros(3), loader, steps=steps))

    whole = train(tmp_path / "a", 17)
    train(tmp_path / "b", 8)
    np.testing.assert_array_equal(train(tmp_path / "b", 17), whole)


def test_sizes_multiply():
    sizes = ipu.data.BatchSizes(2, micro_batches=3, replicas=4, device_iterations=5)
    assert (sizes.replica, sizes.step, sizes.call, sizes.num_calls(359)) == (6, 24, 120, 2)
    loader = ipu.data.Loader(np.arange(240), sizes)
    assert (loader.batch_size, len(loader)) == (24, 10)
    sizes.check(24)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ipu.data.BatchSizes(0), "micro_batch of 1 or more"),
        (lambda: ipu.data.BatchSizes(2, replicas=4).check(9), r"of 8 examples: 2 .* x 4 .*; got 9"),
        (lambda: ipu.data.Loader((np.ones(3), np.ones(4)), 1), r"equal first dimensions.*\[3, 4\]"),
        (lambda: ipu.data.Loader(iter([1]), 1, seed=0), "got an iterable"),
        (lambda: ipu.data.Loader(np.ones(3), 0), "batch_size and buffer of 1 or more"),
        (lambda: ipu.data.Synthetic(np.ones(3), "twos"), "an initializer from zeros, ones"),
        (lambda: ipu.data.dataset_benchmark(np.ones(3), 1, 4), "needs data for all epochs"),
        (lambda: ipu.data.dataset_benchmark(np.ones(3), 0, 4), "1 or more; got 0 and 4"),
        (lambda: ipu.data.infeed_benchmark(ipu.Infeed(np.ones(3)), 1, 4), "data for all epochs"),
    ],
)
def test_wrong_arguments_are_refused(make, message):
    with pytest.raises(ipu.FeedError, match=message):
        make()


@pytest.mark.parametrize("initializer", ["zeros", "ones", "normal", "uniform"])
def test_synthetic_data_are_in_the_program(initializer):
    spec = {"x": jax.ShapeDtypeStruct((64,), np.float16), "y": np.zeros((64, 4), np.int32)}
    data = ipu.data.Synthetic(spec, initializer)
    program = jax.jit(
        lambda: ipu.repeat(
            2,
            lambda c, b: jax.tree.map(jnp.add, c, b),
            jax.tree.map(jnp.zeros_like, spec),
            infeed=data,
        )
    )
    assert "custom_call" not in program.lower().as_text()
    made = jax.tree.map(lambda x: np.asarray(x) / 2, program())
    x = made["x"].astype(np.float64)
    wanted = {"zeros": (0, 0), "ones": (1, 0), "normal": (0, 1), "uniform": (0.5, 12**-0.5)}
    mean, deviation = wanted[initializer]
    assert abs(x.mean() - mean) < 0.5
    assert abs(x.std() - deviation) < 0.35
    assert (made["x"].dtype, made["y"].shape) == (np.float16, (64, 4))
