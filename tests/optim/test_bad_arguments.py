"""Arguments that are not allowed: each error names the argument, what it needs and what it got."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import ipujax as ipu
from tests.refusals import Refusal, check_refused

optim = ipu.optim
NAN = float("nan")

#: name -> (a call, what the error says that is needed, what it got)
REFUSED: dict[str, Refusal] = {
    "adam-nan": (lambda: optim.adam(NAN), "needs learning_rate to be a finite number", "nan"),
    "adam-traced": (
        lambda: jax.jit(lambda rate: optim.adam(rate).init(rate))(0.1),
        "needs learning_rate to be a finite number of at least 0, known when",
        "JitTracer",
    ),
    "variable-float32": (
        lambda: optim.variable(1e39),
        "needs value to be a finite number",
        "1e+39",
    ),
    "accumulate-dtype": (
        lambda: optim.gradient_accumulation(optim.sgd(0.1), 2, "int8"),
        "needs dtype to be a floating-point dtype or None",
        "'int8'",
    ),
    "adam-float64": (
        lambda: optim.adam(first_moment_dtype="float64"),
        "needs first_moment_dtype to be a floating-point dtype",
        "'float64', which needs jax_enable_x64",
    ),
    "map": (
        lambda: optim.map_gradient(optim.sgd(0.1), 2),
        "needs fn to be a function of a gradient",
        "2",
    ),
    "adam-b1": (lambda: optim.adam(b1=1.0), "needs b1 to be a number from", "1.0"),
    "adam-eps": (lambda: optim.adam(eps=-1), "needs eps to be a finite number", "-1"),
    "adam-ls0": (
        lambda: optim.adam(loss_scaling=0),
        "needs loss_scaling to be a finite number",
        "0",
    ),
    "adam-dtype": (
        lambda: optim.adam(first_moment_dtype="int8"),
        "needs first_moment_dtype to be a floating-point dtype",
        "'int8'",
    ),
    "adam-micro": (
        lambda: optim.adam(num_micro_batches=0),
        "needs num_micro_batches of at least 1",
        "0",
    ),
    "sgd-nest": (
        lambda: optim.sgd(0.1, nesterov=True),
        "needs momentum above 0 and dampening =",
        "momentum = 0.0 and dampening = 0.0",
    ),
    "sgd-vs": (
        lambda: optim.sgd(0.1, velocity_scaling=0),
        "needs velocity_scaling to be a finite number",
        "0",
    ),
    "lamb-mwn": (
        lambda: optim.lamb(max_weight_norm=0),
        "needs max_weight_norm to be a finite number",
        "0",
    ),
    "var": (lambda: optim.variable(NAN), "needs value to be a finite number", "nan"),
    "rms-decay": (lambda: optim.rmsprop(decay=-0.1), "needs decay to be a number from", "-0.1"),
    "adam-mgn": (
        lambda: optim.adam(max_grad_norm=NAN),
        "needs max_grad_norm to be a finite number above",
        "nan",
    ),
    "sgd-axis": (
        lambda: optim.sgd(0.1, axis_name="replica"),
        "needs combined_accumulation=True for an axis_name",
        "axis_name='replica' alone",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    check_refused(REFUSED[name])


#: Each optimizer and each transformation of one.
MADE = {
    "adam": lambda: optim.adam(0.1),
    "rmsprop": lambda: optim.rmsprop(0.1),
    "sgd": lambda: optim.sgd(0.1),
    "lamb": lambda: optim.lamb(0.1),
    "combined": lambda: optim.sgd(0.1, momentum=0.5, combined_accumulation=True),
    "accumulated": lambda: optim.gradient_accumulation(optax.sgd(0.1), 2),
    "scaled": lambda: optim.loss_scale(optax.sgd(0.1)),
    "mapped": lambda: optim.map_gradient(optax.sgd(0.1), lambda g, p: g),
    "offloaded": lambda: optim.offload_state(optax.adam(0.1)),
}


@pytest.mark.parametrize("name", MADE)
def test_parameters_that_are_no_arrays(name: str) -> None:
    tx = MADE[name]()
    state = tx.init({"w": jnp.ones(2)})
    for value in ("x", {1}, lambda x: x, np.array(["a"]), 10**400):
        with pytest.raises(ipu.ConfigError, match="needs parameters to be an array"):
            tx.init({"w": value})
        with pytest.raises(ipu.ConfigError, match="needs gradients to be an array"):
            tx.update({"w": value}, state, {"w": jnp.ones(2)})
    with pytest.raises(ipu.ConfigError, match="needs gradients of the structure of the parameters"):
        tx.update({"v": jnp.ones(2)}, state, {"w": jnp.ones(2)})


@pytest.mark.parametrize("name", MADE)
def test_parameters_that_are_numbers(name: str) -> None:
    made = []
    for kind in (jnp.float32, float, np.float32, np.array):
        tx, weights = MADE[name](), {"w": kind(2.0)}
        state = tx.init(weights)
        for _ in range(2):
            updates, state = tx.update({"w": kind(0.5)}, state, weights)
        made.append(float(updates["w"]))
    assert len(set(made)) == 1, made
