"""tinygp: Gaussian processes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from tinygp import GaussianProcess, kernels

from tests.libraries.program import program

LIBRARIES = ("tinygp", "optax")

X = jnp.sort(jax.random.uniform(jax.random.key(0), (24,), maxval=6.0))
Y = jnp.sin(2 * X) + 0.1 * jax.random.normal(jax.random.key(1), (24,))


def _fitted(build):
    """Log likelihoods of ten steps of Adam, and the prediction at five points."""
    params = {"scale": jnp.array(0.0), "height": jnp.array(0.0), "noise": jnp.array(-2.0)}
    optimizer = optax.adam(5e-2)

    @jax.jit
    def train_step(params, opt_state):
        loss, grads = jax.value_and_grad(lambda p: -build(p).log_probability(Y))(params)
        updates, opt_state = optimizer.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    opt_state, losses = optimizer.init(params), []
    for _ in range(10):
        params, opt_state, loss = train_step(params, opt_state)
        losses.append(loss)
    places = jnp.linspace(0.5, 5.5, 5)
    predicted = jax.jit(lambda p: build(p).predict(Y, places, return_var=True))(params)
    return {"losses": jnp.stack(losses), "params": params, "predicted": predicted}


@program(1e-3, "a Cholesky factor of a matrix with condition number 1e3")
def dense_fit():
    def build(params):
        kernel = jnp.exp(params["height"]) * kernels.Matern32(jnp.exp(params["scale"]))
        return GaussianProcess(
            kernel + kernels.RationalQuadratic(alpha=1.5),
            X,
            diag=jnp.exp(params["noise"]),
        )

    return _fitted(build)


@program(1e-3, "a recurrence over 24 points instead of a Cholesky factor")
def quasiseparable_fit():
    def build(params):
        kernel = kernels.quasisep.Matern52(jnp.exp(params["scale"]), jnp.exp(params["height"]))
        return GaussianProcess(kernel, X, diag=jnp.exp(params["noise"]))

    return _fitted(build)


@program(1e-9, "64-bit numbers, computed exactly as on the CPU", x64=True)
def quasiseparable_in_double_precision():
    kernel = kernels.quasisep.Matern32(jnp.float64(0.8))
    process = GaussianProcess(kernel, jnp.linspace(0.0, 3.0, 8), diag=1e-4)
    return {"likelihood": process.log_probability(jnp.sin(jnp.arange(8.0)))}


@program(1e-9, "64-bit numbers, computed exactly as on the CPU", x64=True)
def dense_in_double_precision():
    kernel = kernels.ExpSquared(jnp.float64(0.8))
    process = GaussianProcess(kernel, jnp.linspace(0.0, 3.0, 8), diag=1e-6)
    return {"likelihood": process.log_probability(jnp.sin(jnp.arange(8.0)))}
