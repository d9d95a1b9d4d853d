"""`ipu.training.Loop` against loops of Python."""

from __future__ import annotations

import equinox as eqx
import flax.nnx as nnx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

import ipujax as ipu

RNG = np.random.default_rng(0)
X = RNG.normal(size=(23, 8, 3)).astype(np.float32)
Y = (X @ np.float32([1, 2, -1])).astype(np.float32)
DATA = list(zip(X, Y, strict=True))


def _loss(w, batch):
    x, y = batch
    return jnp.mean((x @ w - y) ** 2)


def _step(w, batch):
    loss, g = jax.value_and_grad(_loss)(w, batch)
    return w - 0.05 * g, {"loss": loss, "norm": jnp.sum(g * g)}


def _plain(steps, w=None):
    """Weights after each step, and each step's losses, by NumPy."""
    w = np.zeros(3) if w is None else w
    weights, losses = [], []
    for i in range(steps):
        x, y = X[i % len(X)].astype(np.float64), Y[i % len(Y)].astype(np.float64)
        r = x @ w - y
        losses.append(np.mean(r**2))
        w = w - 0.05 * 2 * x.T @ r / len(r)
        weights.append(w)
    return weights, losses


@pytest.mark.parametrize("per_call", [1, 7, 100])
def test_steps_are_those_of_a_plain_loop(per_call):
    loop = ipu.training.Loop(_step, steps_per_call=per_call)
    w = loop.train(np.zeros(3, np.float32), DATA, steps=50)
    weights, losses = _plain(50)
    np.testing.assert_allclose(w, weights[-1], rtol=1e-4)
    run = loop.last_run
    assert (run.step, run.epoch, run.position) == (50, 2, 4)
    ends = [step for step, _ in run.history]
    assert ends[-1] == 50
    assert all(b - a <= per_call for a, b in zip([0, *ends], ends, strict=False))
    for begin, (end, metrics) in zip([0, *ends], run.history, strict=False):
        np.testing.assert_allclose(metrics["loss"], np.mean(losses[begin:end]), rtol=1e-3)


def test_epochs_end_with_the_data():
    loop = ipu.training.Loop(_step, steps_per_call=10)
    loop.train(np.zeros(3, np.float32), DATA, epochs=2)
    assert loop.last_run.step == 46
    loop.train(np.zeros(3, np.float32), DATA)
    assert loop.last_run.step == 23


def test_data_that_can_be_read_once_end_the_training():
    loop = ipu.training.Loop(_step, steps_per_call=10)
    loop.train(np.zeros(3, np.float32), iter(DATA), steps=100)
    assert (loop.last_run.step, loop.last_run.stop_reason) == (23, "the data cannot be read again")


def test_data_hear_of_the_epoch():
    class Data:
        heard: tuple[int, ...] = ()

        def set_epoch(self, epoch):
            self.heard += (epoch,)

        def __iter__(self):
            return iter(DATA[:3])

    data = Data()
    ipu.training.Loop(_step).train(np.zeros(3, np.float32), data, epochs=3)
    assert data.heard == (1, 2)


@pytest.mark.parametrize("kind", ["mean", "sum", "last", "max", "min"])
def test_metrics_are_reduced_as_asked(kind):
    reduce = {"mean": np.mean, "sum": np.sum, "last": lambda x: x[-1], "max": max, "min": min}
    values = RNG.normal(size=10).astype(np.float32)
    loop = ipu.training.Loop(
        lambda s, b: (s, {"a": b, "b": b.astype(jnp.float16)}),
        evaluate=lambda s, b: {"a": b},
        metrics={"a": kind, "b": "last"},
        steps_per_call=4,
    )
    loop.train(0.0, values, steps=4)
    np.testing.assert_allclose(loop.last_run.metrics["a"], reduce[kind](values[:4]), rtol=1e-5)
    np.testing.assert_allclose(loop.last_run.metrics["b"], values[3], rtol=1e-3)
    for steps in (None, 7):
        found = loop.evaluate(0.0, values, steps=steps)
        np.testing.assert_allclose(found["a"], reduce[kind](values[:steps]), rtol=1e-5)


def test_evaluation_and_prediction_use_the_state_on_the_device():
    hook = ipu.training.Evaluate(DATA[:5], every=20)
    loop = ipu.training.Loop(
        _step,
        evaluate=lambda w, batch: _loss(w, batch),
        predict=lambda w, batch: {"y": batch[0] @ w},
        steps_per_call=20,
        hooks=[hook],
    )
    with jax.transfer_guard_host_to_device("allow"):
        w = loop.train(np.zeros(3, np.float32), DATA, steps=40)
    at = dict(loop.last_run.history)
    weights, _ = _plain(40)
    wanted = np.mean([np.mean((X[i] @ weights[19] - Y[i]) ** 2) for i in range(5)])
    np.testing.assert_allclose(at[20]["eval_loss"], wanted, rtol=1e-3)
    assert "eval_loss" not in at[23]
    predicted = loop.predict(w, DATA, steps=6)["y"]
    np.testing.assert_allclose(predicted, X[:6] @ np.asarray(w), rtol=1e-4)
    assert loop.predict(w, DATA)["y"].shape == (23, 8)


def test_programs_are_compiled_once():
    count = 0

    def step(w, batch):
        nonlocal count
        count += 1
        return _step(w, batch)

    loop = ipu.training.Loop(step, steps_per_call=5)
    loop.train(np.zeros(3, np.float32), DATA, steps=30)
    traced = count
    loop.train(np.zeros(3, np.float32), DATA, steps=60)
    assert count == traced


def test_the_first_state_is_left_alone_and_a_failed_call_leaves_the_last_one():
    def data():
        yield from DATA[:3]
        raise OSError("disk gone")

    first = jnp.zeros(3)
    loop = ipu.training.Loop(_step, steps_per_call=2, donate=False)
    with pytest.raises(jax.errors.JaxRuntimeError, match="disk gone"):
        loop.train(first, data, steps=9)
    assert first.tolist() == [0, 0, 0]
    assert loop.last_run.step == 2
    assert isinstance(loop.last_run.error, jax.errors.JaxRuntimeError)
    np.testing.assert_allclose(loop.last_run.state, _plain(2)[0][-1], rtol=1e-4)


def test_keys_differ_from_step_to_step_and_not_with_calls():
    drawn = {}
    for per_call in (2, 5):
        outs = []
        loop = ipu.training.Loop(
            lambda s, b, key: (s + jax.random.uniform(key), s),
            steps_per_call=per_call,
            metrics="last",
            key=jax.random.key(3),
        )
        outs.append(float(loop.train(0.0, np.zeros(10, np.float32))))
        drawn[per_call] = outs
    keys = [jax.random.fold_in(jax.random.key(3), i) for i in range(10)]
    wanted = sum(float(jax.random.uniform(key)) for key in keys)
    np.testing.assert_allclose(drawn[2], [wanted], rtol=1e-5)
    assert drawn[2] == drawn[5]


def test_modules_of_equinox_pass_through():
    model = eqx.nn.MLP(3, "scalar", 8, 1, key=jax.random.key(0))
    optimizer = optax.adam(1e-2)

    def step(state, batch):
        model, opt = state
        x, y = batch
        loss, g = eqx.filter_value_and_grad(lambda m: jnp.mean((jax.vmap(m)(x) - y) ** 2))(model)
        updates, opt = optimizer.update(g, opt)
        return (eqx.apply_updates(model, updates), opt), loss

    first = (model, optimizer.init(eqx.filter(model, eqx.is_array)))
    loop = ipu.training.Loop(step, steps_per_call=20)
    trained, _ = loop.train(first, DATA, steps=100)
    state = first
    for i in range(100):
        state, _ = eqx.filter_jit(step)(state, DATA[i % len(DATA)])
    np.testing.assert_allclose(trained(X[0, 0]), state[0](X[0, 0]), rtol=1e-3)
    assert trained.activation is model.activation


def test_states_of_flax_pass_through():
    graph, params = nnx.split(nnx.Linear(3, 1, rngs=nnx.Rngs(0)))

    def step(params, batch):
        x, y = batch

        def loss_of(params):
            return jnp.mean((nnx.merge(graph, params)(x)[:, 0] - y) ** 2)

        loss, g = jax.value_and_grad(loss_of)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, g), loss

    loop = ipu.training.Loop(step, steps_per_call=23)
    trained = nnx.merge(graph, loop.train(params, DATA, epochs=8))
    np.testing.assert_allclose(trained.kernel[...][:, 0], [1, 2, -1], atol=1e-3)
    assert loop.last_run.metrics["loss"] < 1e-4


def test_replicas_train_on_shards_of_batches():
    mesh = Mesh(np.array(jax.devices()[:4]), ("data",))
    infeed = ipu.Infeed(DATA, sharding=NamedSharding(mesh, P("data")))
    first = jax.device_put(np.zeros(3, np.float32), NamedSharding(mesh, P()))
    loop = ipu.training.Loop(_step, steps_per_call=10)
    w = loop.train(first, infeed, steps=30)
    np.testing.assert_allclose(w, _plain(30)[0][-1], rtol=1e-4)
    assert len(w.sharding.device_set) == 4


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda w, b: (w[:2], 0.0), r"keeps shapes and dtypes; got float32\[2\]"),
        (lambda w, b: ({"w": w}, 0.0), "with a state like the first"),
        (lambda w, b: (w, {"a": w}), r"a number for each metric; got shape \(3,\) for 'a'"),
    ],
)
def test_wrong_steps_are_refused(step, message):
    with pytest.raises(ipu.ConfigError, match=message):
        ipu.training.Loop(step).train(np.zeros(3, np.float32), DATA, steps=1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ipu.training.Loop(_step, steps_per_call=0), "steps_per_call of 1 or more"),
        (lambda: ipu.training.Loop(_step, metrics="median"), "metrics to be one of"),
        (lambda: ipu.training.Loop(_step).evaluate(0, DATA), "Pass evaluate="),
        (lambda: ipu.training.Loop(_step).predict(0, DATA), "Pass predict="),
        (lambda: ipu.training.EarlyStop("loss", 1, mode="up"), "mode to be one of"),
        (lambda: ipu.training.Checkpoint("x", every=0), "every and keep of 1 or more"),
    ],
)
def test_wrong_arguments_are_refused(call, message):
    with pytest.raises(ipu.ConfigError, match=message):
        call()
