"""Constants, variables and schedules, and what is refused."""

from __future__ import annotations

import pickle

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import ipujax as ipu

optim = ipu.optim
NAN = float("nan")


def test_variables_change_without_compiling_again():
    tx = optim.gradient_accumulation(optim.sgd(optim.variable(1.0)), 1)
    update = jax.jit(tx.update)
    state = tx.init(jnp.zeros(2))
    for rate in (1.0, 0.25, 0.0):
        state = optim.set_hyperparameters(state, learning_rate=rate)
        updates, state = update(jnp.array([2.0, 4.0]), state)
        np.testing.assert_array_equal(updates, [-2 * rate, -4 * rate])
    assert update._cache_size() == 1


def test_every_optimizer_of_a_state_gets_the_value():
    labels = {"a": "sgd", "b": "adam"}
    chosen = {
        "sgd": optim.sgd(optim.variable(1.0)),
        "adam": optim.adam(optim.variable(1.0), eps=0.0),
    }
    tx = optax.partition(chosen, labels)
    params = {"a": jnp.zeros(2), "b": jnp.zeros(2)}
    state = optim.set_hyperparameters(tx.init(params), learning_rate=0.5)
    updates, _ = tx.update({"a": jnp.ones(2), "b": jnp.ones(2)}, state, params)
    np.testing.assert_allclose(np.stack([updates["a"], updates["b"]]), -0.5, rtol=1e-6)


def test_variables_set_inside_a_program():
    tx = optim.sgd(optim.variable(1.0))

    @jax.jit
    def update(grad, state, rate):
        return tx.update(grad, optim.set_hyperparameters(state, learning_rate=rate))

    updates, state = update(jnp.ones(2), tx.init(jnp.zeros(2)), 0.5)
    np.testing.assert_array_equal(updates, [-0.5, -0.5])
    assert float(state.hyperparameters.variables["learning_rate"]) == 0.5


@pytest.mark.parametrize("bad", [NAN, float("inf")])
def test_an_update_with_a_variable_that_is_not_finite_changes_nothing(bad: float):
    tx = optim.adam(optim.variable(0.1), weight_decay=0.1)
    params = jnp.array([1.0, 2.0])
    state = tx.init(params)

    @jax.jit
    def update(state, rate):
        state = optim.set_hyperparameters(state, learning_rate=rate)
        return tx.update(jnp.ones(2), state, params)

    _, state = update(state, 0.1)
    updates, after = update(state, bad)
    np.testing.assert_array_equal(updates, 0)
    assert int(after.count) == 1
    np.testing.assert_array_equal(after.mu, state.mu)
    np.testing.assert_array_equal(after.nu, state.nu)
    again, after = update(after, 0.1)
    assert int(after.count) == 2
    assert (np.asarray(again) != 0).all()


def test_a_constant_cannot_be_changed():
    state = optim.sgd(0.1, momentum=optim.variable(0.9)).init(jnp.zeros(2))
    with pytest.raises(
        ipu.ConfigError,
        match=r"needs a variable; got learning_rate, which is a constant of ipu.optim.sgd. "
        r"Pass learning_rate=ipu.optim.variable\(...\) to ipu.optim.sgd.",
    ):
        optim.set_hyperparameters(state, learning_rate=0.2)
    with pytest.raises(ipu.ConfigError, match=r"got 'momentun'. Use momentum."):
        optim.set_hyperparameters(state, momentun=0.2)
    with pytest.raises(ipu.ConfigError, match=r"\(it has none\); got 'b1'"):
        optim.set_hyperparameters(optax.adam(0.1).init(jnp.zeros(2)), b1=0.2)
    with pytest.raises(ipu.ConfigError, match="momentum to be a finite number of at least 0; got"):
        optim.set_hyperparameters(state, momentum=-1.0)


def test_a_state_can_be_pickled():
    """By users, as some checkpoint libraries do; ipujax itself pickles nothing."""
    state = optim.adam(optim.variable(0.5)).init(jnp.zeros(2))
    again = pickle.loads(pickle.dumps(state))
    assert jax.tree.structure(again) == jax.tree.structure(state)
    assert float(again.hyperparameters.variables["learning_rate"]) == 0.5


def test_an_optimizer_with_other_constants_refuses_the_state():
    state = optim.adam(0.1).init(jnp.zeros(2))
    with pytest.raises(
        ipu.ConfigError, match=r"got learning_rate = 0.2 where the state has 0.1. Pass ipu.optim"
    ):
        optim.adam(0.2).update(jnp.ones(2), state)
    with pytest.raises(ipu.ConfigError, match=r"learning_rate = a variable where the state has"):
        optim.adam(optim.variable(0.1)).update(jnp.ones(2), state)


REFUSED = [
    (lambda: optim.sgd(NAN), "learning_rate to be a finite number of at least 0; got nan"),
    (lambda: optim.sgd(-0.1), "learning_rate to be a finite number of at least 0; got -0.1"),
    (lambda: optim.sgd("fast"), "learning_rate to be .*; got 'fast'"),
    (lambda: optim.sgd(0.1, True), "momentum to be .*; got True"),
    (lambda: optim.sgd(0.1, nesterov=True), "momentum above 0 and dampening = 0 .*momentum = 0.0"),
    (lambda: optim.sgd(0.1, 0.9, 0.5, nesterov=True), "and dampening = 0.5. Change these"),
    (lambda: optim.sgd(0.1, velocity_scaling=0), "velocity_scaling to be .* above 0; got 0"),
    (lambda: optim.sgd(0.1, loss_scaling=0.0), "loss_scaling to be a finite number above 0; got 0"),
    (lambda: optim.adam(loss_scaling=abs), "loss_scaling to be .*got <built-in function abs>"),
    (lambda: optim.sgd(0.1, num_micro_batches=0), "num_micro_batches of at least 1; got 0"),
    (lambda: optim.adam(b1=1.0), "b1 to be a number from 0 to below 1; got 1.0"),
    (lambda: optim.adam(b2=optim.variable(2)), "b2 to be a number from 0 to below 1; got 2.0"),
    (lambda: optim.adam(accumulator_dtype="int8"), "accumulator_dtype to be a floating-point"),
    (lambda: optim.adam(num_micro_batches=0.5), "num_micro_batches of at least 1; got 0.5"),
    (lambda: optim.adamw(weight_decay=-1), "weight_decay to be .*; got -1"),
    (lambda: optim.adamax(eps=NAN), "eps to be .*; got nan"),
    (lambda: optim.lamb(max_weight_norm=0), "max_weight_norm to be .* above 0; got 0"),
    (lambda: optim.lamb(first_moment_dtype="int32"), "first_moment_dtype to be .*got 'int32'"),
    (lambda: optim.rmsprop(decay=-0.1), "decay to be a number from 0 to below 1; got -0.1"),
    (lambda: optim.rmsprop(velocity_dtype=3), "velocity_dtype to be a floating-point dtype"),
    (lambda: optim.variable(NAN), "value to be a finite number; got nan"),
    (lambda: optim.loss_scale(optax.sgd(1.0), 0.0), "loss_scaling to be .* above 0; got 0.0"),
    (lambda: optim.loss_scale(3), "needs an optax.GradientTransformation; got 3"),
    (lambda: optim.loss_scale(optax.sgd(1.0), period=0), "period to be a whole .*; got 0"),
    (lambda: optim.loss_scale(optax.sgd(1.0), bin_edge_location=2), "from 0 to 1; got 2"),
    (lambda: optim.loss_scale(optax.sgd(1.0), increase_factor=1.0), "above 1; got 1.0"),
    (lambda: optim.loss_scale(optax.sgd(1.0), decrease_factor=NAN), "between 0 and 1; got nan"),
    (lambda: optim.loss_scale(optax.sgd(1.0), minimum=0), "minimum to be .*; got 0"),
    (lambda: optim.loss_scale(optax.sgd(1.0), 2.0**20, automatic=True), "scale to be between"),
    (lambda: optim.loss_scale(optax.sgd(1.0), dtype="int8"), "dtype to be a floating-point"),
]


@pytest.mark.parametrize(("make", "text"), REFUSED, ids=[text[:30] for _, text in REFUSED])
def test_refused_arguments(make, text: str):
    with pytest.raises(ipu.ConfigError, match=text):
        make()


@pytest.mark.parametrize(
    "tx",
    [
        optim.sgd(0.1, weight_decay=0.1),
        optim.adam(weight_decay=0.1),
        optim.adamw(),
        optim.adamax(weight_decay=0.1),
        optim.rmsprop(weight_decay=optim.variable(0.1)),
        optim.lamb(),
    ],
)
def test_missing_parameters(tx):
    with pytest.raises(ipu.ConfigError, match=r"needs the parameters for .*; got none. Call"):
        tx.update(jnp.ones(2), tx.init(jnp.ones(2)))
