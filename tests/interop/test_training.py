"""States of haiku, flax and equinox through the loop; summaries and bars by their own packages."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import ipujax as ipu
from tests.interop.packages import needed

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 8, 3)).astype(np.float32)
DATA = [{"x": x, "y": np.tanh(x @ np.float32([1, 2, -1]))} for x in X]
OPTIMIZER = optax.adam(0.05)


def haiku_model() -> tuple[Any, Any]:
    """With a state of its own beside the parameters: moving averages of a batch norm."""
    hk = needed("haiku")

    def forward(x):
        # No bias before a batch norm: its gradient is rounding alone, which adam scales up.
        x = hk.BatchNorm(True, True, 0.9)(hk.Linear(4, with_bias=False)(x), is_training=True)
        return hk.Linear(1)(jax.nn.tanh(x))[:, 0]

    model = hk.transform_with_state(forward)
    params, averages = model.init(jax.random.key(0), X[0])

    def step(state, batch):
        params, averages, optimizer = state

        def loss_of(params):
            y, new = model.apply(params, averages, None, batch["x"])
            return jnp.mean((y - batch["y"]) ** 2), new

        (loss, averages), gradient = jax.value_and_grad(loss_of, has_aux=True)(params)
        updates, optimizer = OPTIMIZER.update(gradient, optimizer)
        return (optax.apply_updates(params, updates), averages, optimizer), loss

    return step, (params, averages, OPTIMIZER.init(params))


def flax_model() -> tuple[Any, Any]:
    nn, train_state = needed("flax.linen"), needed("flax.training.train_state")
    model = nn.Sequential([nn.Dense(4), jax.nn.tanh, nn.Dense(1)])
    params = model.init(jax.random.key(0), X[0])

    def step(state, batch):
        def loss_of(params):
            return jnp.mean((state.apply_fn(params, batch["x"])[:, 0] - batch["y"]) ** 2)

        loss, gradient = jax.value_and_grad(loss_of)(state.params)
        return state.apply_gradients(grads=gradient), loss

    return step, train_state.TrainState.create(apply_fn=model.apply, params=params, tx=OPTIMIZER)


def equinox_model() -> tuple[Any, Any]:
    eqx = needed("equinox")
    model = eqx.nn.MLP(3, 1, 4, 1, jax.nn.tanh, key=jax.random.key(0))

    def step(state, batch):
        model, optimizer = state

        def loss_of(model):
            return jnp.mean((jax.vmap(model)(batch["x"])[:, 0] - batch["y"]) ** 2)

        loss, gradient = eqx.filter_value_and_grad(loss_of)(model)
        updates, optimizer = OPTIMIZER.update(gradient, optimizer)
        return (eqx.apply_updates(model, updates), optimizer), loss

    return step, (model, OPTIMIZER.init(eqx.filter(model, eqx.is_array)))


MODELS = pytest.mark.parametrize(
    "make", [haiku_model, flax_model, equinox_model], ids=["haiku", "flax", "equinox"]
)


def _arrays(state: Any) -> list[np.ndarray]:
    return [np.asarray(x) for x in jax.tree.leaves(state) if hasattr(x, "shape")]


def _by_hand(step: Any, state: Any, epochs: int) -> tuple[Any, list[float]]:
    """On JAX's CPU backend, one call for each step, by jit of what changes."""
    arrays, rest = [], jax.tree.flatten(state)
    leaves, tree = rest
    is_array = [hasattr(x, "shape") or isinstance(x, int) for x in leaves]

    def join(arrays):
        held = iter(arrays)
        return jax.tree.unflatten(
            tree, [next(held) if a else x for a, x in zip(is_array, leaves, strict=True)]
        )

    def split(state):
        return [x for a, x in zip(is_array, jax.tree.leaves(state), strict=True) if a]

    @jax.jit
    def one(arrays, batch):
        state, loss = step(join(arrays), batch)
        return split(state), loss

    losses = []
    with jax.default_device(jax.devices("cpu")[0]):
        arrays = [jnp.array(np.asarray(x)) for x in split(state)]
        for batch in DATA * epochs:
            arrays, loss = one(arrays, batch)
            losses.append(float(loss))
    return join(arrays), losses


@MODELS
def test_a_state_is_trained_as_by_hand(make):
    step, state = make()
    loop = ipu.training.Loop(step, steps_per_call=6)
    found = loop.train(state, DATA, epochs=5)
    wanted, losses = _by_hand(step, state, 5)
    assert jax.tree.structure(found) == jax.tree.structure(state)
    for got, want in zip(_arrays(found), _arrays(wanted), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-3, atol=2e-4)
    means = [metrics["loss"] for _, metrics in loop.last_run.history if metrics]
    assert losses[-1] < 0.5 * losses[0]
    assert means[0] == pytest.approx(np.mean(losses[:6]), rel=1e-3)
    assert means[-1] == pytest.approx(np.mean(losses[-6:]), rel=1e-2)


@MODELS
@pytest.mark.parametrize("backend", ["files", "orbax"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_training_that_stopped_goes_on_with_the_same_bits(make, backend, tmp_path: Path):
    def train(folder, steps):
        step, state = make()
        hooks = [ipu.training.Checkpoint(folder, every=3, backend=backend)]
        loop = ipu.training.Loop(step, steps_per_call=3, hooks=hooks)
        return loop.train(state, DATA, steps=steps)

    whole = train(tmp_path / "whole", 12)
    train(tmp_path / "parts", 6)
    for got, want in zip(_arrays(train(tmp_path / "parts", 12)), _arrays(whole), strict=True):
        np.testing.assert_array_equal(got, want)


def _scalars(path: Path) -> list[tuple[str, int, float]]:
    """Of a file of TensorBoard: records of a length, its checksum, an event, its checksum."""
    event_pb2 = needed("tensorboardX.proto.event_pb2")
    data, found = path.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        event = event_pb2.Event.FromString(data[12 : 12 + length])
        data = data[16 + length :]
        found += [(value.tag, event.step, value.simple_value) for value in event.summary.value]
    return found


def test_summaries_are_files_of_tensorboard(tmp_path: Path):
    needed("tensorboardX")
    hook = ipu.training.Summaries(tmp_path)

    def step(w, b):
        return (w + b, {"loss": w, "rate": 2 * b})

    loop = ipu.training.Loop(step, steps_per_call=2, hooks=[hook], metrics="last")
    loop.train(0.0, [np.float32(1)] * 6)
    (path,) = tmp_path.iterdir()
    loop.train(0.0, [np.float32(1)] * 2, steps=2)
    (other,) = {*tmp_path.iterdir()} - {path}
    assert _scalars(other) == [("loss", 2, 1), ("rate", 2, 2)]
    wanted = [("loss", 2, 1), ("loss", 4, 3), ("loss", 6, 5)]
    assert [each for each in _scalars(path) if each[0] == "loss"] == wanted
    assert [each for each in _scalars(path) if each[0] == "rate"] == [
        ("rate", at, 2) for at in (2, 4, 6)
    ]


def test_bars_are_those_of_tqdm(capfd):
    needed("tqdm")
    loop = ipu.training.Loop(
        lambda w, b: (w, b), steps_per_call=2, hooks=[ipu.training.ProgressBar()]
    )
    loop.train(0.0, [np.float32(3)] * 6, steps=6)
    shown = capfd.readouterr().err
    last = shown.replace("\n", "").split("\r")[-1]
    assert "100%" in last
    assert "6/6" in last
    assert "loss=3" in last
