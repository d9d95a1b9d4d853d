"""Feeds and training loops over the loaders of tf.data, grain and torch."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from tests.interop.packages import needed

RNG = np.random.default_rng(0)
NUM, BATCH = 26, 4
STEPS = NUM // BATCH  # the last two examples are left out
X = RNG.normal(size=(NUM, 3)).astype(np.float32)
Y = (X @ np.float32([1, 2, -1])).astype(np.float32)


class Examples:
    """What the loaders of torch and grain read."""

    def __len__(self) -> int:
        return NUM

    def __getitem__(self, i: int) -> dict[str, np.ndarray]:
        return {"x": X[i], "y": Y[i]}


def tf_data() -> Any:
    tf = needed("tensorflow")
    tf.config.set_visible_devices([], "GPU")
    examples = tf.data.Dataset.from_tensor_slices({"x": X, "y": Y})
    return examples.batch(BATCH, drop_remainder=True).prefetch(2)


def tf_eager() -> Any:
    """As TensorFlow's own tensors, not by as_numpy_iterator."""
    dataset = tf_data()
    return lambda: iter(dataset)


def grain_loader() -> Any:
    grain = needed("grain.python")
    sampler = grain.IndexSampler(NUM, grain.NoSharding(), shuffle=False, num_epochs=1)
    operations = [grain.Batch(BATCH, drop_remainder=True)]
    return grain.DataLoader(data_source=Examples(), sampler=sampler, operations=operations)


def grain_dataset() -> Any:
    grain = needed("grain.python")
    return grain.MapDataset.source(Examples()).batch(BATCH, drop_remainder=True)


def grain_iterable() -> Any:
    return grain_dataset().to_iter_dataset()


def torch_loader(workers: int = 0) -> Any:
    needed("torch")
    data = importlib.import_module("torch.utils.data")
    return data.DataLoader(Examples(), BATCH, drop_last=True, num_workers=workers)


def torch_processes() -> Any:
    return torch_loader(2)


def torch_examples() -> Any:
    """Batched by our own loader."""
    torch = needed("torch")
    data = importlib.import_module("torch.utils.data")
    examples = data.TensorDataset(torch.from_numpy(X), torch.from_numpy(Y))

    def by_name(pairs):
        return {
            "x": np.stack([np.asarray(x) for x, _ in pairs]),
            "y": np.stack([np.asarray(y) for _, y in pairs]),
        }

    return ipu.data.Loader(examples, BATCH, workers=2, collate=by_name)


LOADERS: list[Callable[[], Any]] = [
    tf_data,
    tf_eager,
    grain_loader,
    grain_dataset,
    grain_iterable,
    torch_loader,
    torch_processes,
    torch_examples,
]
pytestmark = [
    pytest.mark.parametrize("make", LOADERS, ids=lambda make: make.__name__),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    # torch's and grain's workers are forks of this process, which has threads.
    pytest.mark.filterwarnings("ignore:.*fork.*"),
]


def _step(w: jax.Array, batch: Any) -> tuple[jax.Array, jax.Array]:
    loss, gradient = jax.value_and_grad(lambda w: jnp.mean((batch["x"] @ w - batch["y"]) ** 2))(w)
    return w - 0.05 * gradient, loss


def _plain(steps: int) -> tuple[np.ndarray, list[float]]:
    """Weights and losses by NumPy in float64; epochs follow one another."""
    w, losses = np.zeros(3), []
    for i in range(steps):
        rows = slice(i % STEPS * BATCH, i % STEPS * BATCH + BATCH)
        r = X[rows].astype(np.float64) @ w - Y[rows]
        losses.append(np.mean(r**2))
        w = w - 0.05 * 2 * X[rows].T @ r / BATCH
    return w, losses


def test_a_feed_gives_the_batches_in_order(make):
    infeed, outfeed = ipu.Infeed(make()), ipu.Outfeed()

    def body(c, batch):
        return (c, batch)

    def loop():
        return ipu.repeat(99, body, 0, infeed=infeed, outfeed=outfeed, stop_at_end=True)

    assert int(jax.jit(loop)()[1]) == STEPS
    got = outfeed.dequeue()
    np.testing.assert_array_equal(got["x"], X[: STEPS * BATCH].reshape(STEPS, BATCH, 3))
    np.testing.assert_array_equal(got["y"], Y[: STEPS * BATCH].reshape(STEPS, BATCH))


def test_a_feed_begins_again_at_a_position(make):
    infeed = ipu.Infeed(make())
    sums = jax.jit(lambda: ipu.repeat(2, lambda c, b: c + b["y"].sum(), 0.0, infeed=infeed))
    assert float(sums()) == pytest.approx(Y[: 2 * BATCH].sum(), rel=1e-5)
    infeed.restart(position=3)
    assert float(sums()) == pytest.approx(Y[3 * BATCH : 5 * BATCH].sum(), rel=1e-5)
    assert infeed.position == 5


def test_a_training_over_epochs_is_that_of_a_plain_loop(make):
    loop = ipu.training.Loop(
        _step, evaluate=lambda w, b: jnp.mean((b["x"] @ w - b["y"]) ** 2), steps_per_call=4
    )
    data = make()
    w = loop.train(jnp.zeros(3), data, epochs=3)
    wanted, losses = _plain(3 * STEPS)
    np.testing.assert_allclose(w, wanted, rtol=1e-4)
    assert (loop.last_run.step, loop.last_run.epoch) == (3 * STEPS, 3)
    assert loop.last_run.metrics["loss"] == pytest.approx(np.mean(losses[-2:]), rel=1e-3)
    assert loop.evaluate(w, data)["loss"] < losses[0]


def test_replicas_share_each_batch(make):
    infeed = ipu.Infeed(make())

    @ipu.pmap(devices=jax.devices()[:2])
    def sums(carry):
        return ipu.repeat(STEPS, lambda c, b: c + b["x"].sum(0), carry, infeed=infeed)

    wanted = X[: STEPS * BATCH].reshape(STEPS, 2, BATCH // 2, 3).sum((0, 2))
    np.testing.assert_allclose(sums(np.zeros((2, 3), np.float32)), wanted, rtol=1e-4, atol=1e-5)


def test_the_benchmark_counts_its_bytes(make):
    import json

    found = json.loads(ipu.data.dataset_benchmark(make(), 1, STEPS, print_stats=False))
    assert found["epochs"][0]["total_bytes_processed"] == STEPS * BATCH * 16
