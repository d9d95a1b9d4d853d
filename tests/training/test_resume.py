"""Training that was killed, or whose disk was full, goes on as if nothing had been."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import ipujax as ipu
from tests.training import kills, regression


def test_a_training_that_is_killed_ends_bit_equal(tmp_path: Path):
    wanted = kills.undisturbed(tmp_path)
    found, number = kills.killed_often(tmp_path, 3, seed=1)
    assert number == 3
    assert found == wanted
    assert wanted["epoch"] == regression.STEPS // regression.EPOCH
    assert len(wanted["history"]) > regression.STEPS // regression.PER_CALL


@pytest.mark.parametrize("backend", ["files", "orbax"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_in_one_process_as_well(tmp_path: Path, backend: str):
    """States of every kind: half precision, random keys, integers, leaves that are no arrays."""

    def step(state, batch):
        key, sub = jax.random.split(state["key"])
        w = state["w"] + state["f"](batch * jax.random.normal(sub, (3,))).astype(jnp.bfloat16)
        return {"w": w, "n": state["n"] + 1, "key": key, "f": state["f"]}, w.sum()

    def train(folder, steps):
        hooks = [ipu.training.Checkpoint(folder, every=2, backend=backend)]
        loop = ipu.training.Loop(step, steps_per_call=2, hooks=hooks)
        first = {"w": jnp.ones(3, jnp.bfloat16), "n": 0, "key": jax.random.key(0), "f": jnp.tanh}
        return loop.train(first, np.arange(10, dtype=np.float32), steps=steps), hooks[0]

    whole, _ = train(tmp_path / "whole", 9)
    train(tmp_path / "parts", 4)
    parts, checkpoint = train(tmp_path / "parts", 9)
    assert checkpoint.steps() == [6, 8, 9]
    assert parts["n"] == 9
    assert parts["f"] is jnp.tanh
    np.testing.assert_array_equal(parts["w"], whole["w"])
    assert jax.random.key_data(parts["key"]).tolist() == jax.random.key_data(whole["key"]).tolist()


def test_a_training_resumes_at_the_end_of_an_epoch(tmp_path: Path):
    """The checkpoint says that all batches of the epoch are used, not that another began."""
    for steps in (4, 7):
        hooks = [ipu.training.Checkpoint(tmp_path, every=4)]
        loop = ipu.training.Loop(lambda w, b: (2 * w + b, b), steps_per_call=2, hooks=hooks)
        w = loop.train(0.0, np.arange(4, dtype=np.float32), steps=steps)
    assert (float(w), loop.last_run.epoch) == (92, 1)


def _loop(folder: Path, size: int, **options):
    hooks = [ipu.training.Checkpoint(folder, every=1, keep=2)]
    return ipu.training.Loop(lambda w, b: (w + b, b), steps_per_call=1, hooks=hooks, **options)


@pytest.mark.parametrize("limit", [10, 30_000])
def test_a_full_disk_is_an_error_and_leaves_the_checkpoint_before(tmp_path: Path, limit: int):
    """A limit on the size of files stands for a full disk: writing fails halfway."""
    first, data = jnp.zeros(20_000), np.ones(9, np.float32)
    _loop(tmp_path, 20_000).train(first, data, steps=2)
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, old[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            _loop(tmp_path, 20_000).train(first, data, steps=4)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, handler)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "step-000000001.ipuarrays",
        "step-000000002.ipuarrays",
    ]
    assert _loop(tmp_path, 20_000).train(first, data, steps=4)[0] == 4


def test_every_byte_of_a_checkpoint_is_verified(tmp_path: Path):
    first, data = jnp.arange(3.0), np.ones(9, np.float32)
    _loop(tmp_path, 3).train(first, data, steps=2)
    path = tmp_path / "step-000000002.ipuarrays"
    whole = path.read_bytes()
    for i in range(0, len(whole), 7):
        path.write_bytes(whole[:i] + bytes([whole[i] ^ 4]) + whole[i + 1 :])
        with pytest.raises(ipu.ArrayFileError, match="damaged or of another kind"):
            _loop(tmp_path, 3).train(first, data, steps=3)
    path.write_bytes(whole[:-1])
    with pytest.raises(ipu.ArrayFileError, match="Delete it, and use an earlier one"):
        _loop(tmp_path, 3).train(first, data, steps=3)
    path.unlink()
    assert _loop(tmp_path, 3).train(first, data, steps=3).tolist() == [3, 4, 5]


@pytest.mark.parametrize(
    ("first", "options", "message"),
    [
        (jnp.zeros(4), {}, r"needs float32\[4\] for .*; got float32\[3\]"),
        (jnp.zeros(3, jnp.int32), {}, r"needs int32\[3\] for .*; got float32\[3\]"),
        ({"w": jnp.zeros(3)}, {}, "got one with other arrays"),
        (jnp.zeros(3), {"key": jax.random.key(0)}, "needs a key where"),
    ],
)
def test_a_checkpoint_of_another_model_is_refused(tmp_path: Path, first, options, message):
    data = np.ones(9, np.float32)
    _loop(tmp_path, 3).train(jnp.zeros(3), data, steps=2)
    with pytest.raises(ipu.ArrayFileError, match=message):
        _loop(tmp_path, 3, **options).train(first, data, steps=3)


def test_hooks_may_be_added_and_removed(tmp_path: Path):
    data = np.ones(9, np.float32)

    def train(steps: int, *hooks: ipu.training.Hook) -> ipu.training.Loop:
        others = [*hooks, ipu.training.Checkpoint(tmp_path, every=1)]
        loop = ipu.training.Loop(lambda w, b: (w + b, b), steps_per_call=1, hooks=others)
        loop.train(jnp.zeros(3), data, steps=steps)
        return loop

    class Count(ipu.training.Hook):
        calls = 0

        def after_call(self, run: object) -> None:
            self.calls += 1

        def memory(self) -> int:
            return self.calls

        def remember(self, memory: int) -> None:
            self.calls = memory

    class Other(Count):
        pass

    train(2, first := Count())
    train(4, other := Other(), again := Count())
    assert (first.calls, other.calls, again.calls) == (2, 2, 4)
    train(5, last := Other())
    assert last.calls == 3


def test_a_hook_that_cannot_read_its_memory_is_refused(tmp_path: Path):
    class Another(ipu.training.Hook):
        __qualname__ = "EarlyStop"

        def memory(self) -> int:
            return 7

    data = np.ones(9, np.float32)
    hooks = [ipu.training.Checkpoint(tmp_path, every=1), Another()]
    ipu.training.Loop(lambda w, b: (w + b, b), hooks=hooks).train(jnp.zeros(3), data, steps=2)
    hooks = [
        ipu.training.Checkpoint(tmp_path, every=1),
        ipu.training.EarlyStop("loss", patience=2),
    ]
    with pytest.raises(ipu.ArrayFileError, match="what was kept of the hooks"):
        ipu.training.Loop(lambda w, b: (w + b, b), hooks=hooks).train(jnp.zeros(3), data, steps=3)


def test_a_state_partly_on_a_mesh_resumes(tmp_path: Path):
    """Adam's count may be anywhere, the weights are on four IPUs."""
    mesh = Mesh(jax.devices()[:4], "data")
    whole = jax.device_put(jnp.ones((4, 2)), NamedSharding(mesh, PartitionSpec("data")))
    tx = optax.adam(0.1)

    def step(state, batch):
        weights, moments = state
        updates, moments = tx.update(jnp.mean(batch) * weights, moments)
        return (optax.apply_updates(weights, updates), moments), jnp.mean(weights)

    def train(steps: int):
        loop = ipu.training.Loop(
            step, steps_per_call=2, hooks=[ipu.training.Checkpoint(tmp_path, every=2)]
        )
        return loop.train((whole, tx.init(whole)), [np.float32([1, 2])] * 8, steps=steps)

    train(2)
    resumed = train(4)
    for path in tmp_path.iterdir():
        path.unlink()
    for found, wanted in zip(jax.tree.leaves(resumed), jax.tree.leaves(train(4)), strict=True):
        np.testing.assert_array_equal(found, wanted)
