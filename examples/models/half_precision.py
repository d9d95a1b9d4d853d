"""Trains a network in float16 alone, which fails without a loss scale, and finds one by itself.

The targets are displacements of some millimetres, in metres. Gradients of their mean squared error
are around 1e-8, which float16 rounds to zero. The automatic loss scale grows until the largest
gradients come close to the end of float16's range.

Run: python examples/models/half_precision.py
"""

import jax
import jax.numpy as jnp
import numpy as np
import optax

import ipujax as ipu

NUM_POINTS, NUM_INPUTS, NUM_HIDDEN, NUM_OUTPUTS = 512, 8, 64, 4
NUM_STEPS = 400
METRES = 1e-3
WANTED_ERROR = 0.1


def data():
    """x [points, inputs], and displacements [points, outputs] in metres."""
    x = np.random.default_rng(0).normal(size=(NUM_POINTS, NUM_INPUTS))
    return x.astype(np.float16), (METRES * np.sin(x[:, :NUM_OUTPUTS])).astype(np.float32)


def init_params(key):
    keys = jax.random.split(key)
    hidden = jax.random.normal(keys[0], (NUM_INPUTS, NUM_HIDDEN), jnp.float16)
    out = jax.random.normal(keys[1], (NUM_HIDDEN, NUM_OUTPUTS), jnp.float16)
    return {"hidden": hidden / NUM_INPUTS**0.5, "out": out / NUM_HIDDEN**0.5}


def predict(params, x):
    return METRES * (jnp.tanh(x @ params["hidden"]) @ params["out"]).astype(jnp.float32)


def train(optimizer, x, y):
    """Returns (relative error, loss scale after each step, share of gradients that were zero)."""

    def loss_of(params, opt_state):
        loss = jnp.mean((predict(params, x) - y) ** 2)
        return ipu.optim.scale_loss(loss, opt_state)

    def step(state, _):
        params, opt_state = state
        grads = jax.grad(loss_of)(params, opt_state)  # float16, times the scale
        updates, opt_state = optimizer.update(grads, opt_state, params)
        is_zero = jnp.concatenate([g.ravel() == 0 for g in jax.tree.leaves(grads)])
        shown = opt_state.scale, jnp.mean(is_zero.astype(jnp.float32))
        return (optax.apply_updates(params, updates), opt_state), shown

    params = init_params(jax.random.key(0))
    start = (params, optimizer.init(params))
    (params, _), (scales, zeros) = jax.jit(lambda s: jax.lax.scan(step, s, None, NUM_STEPS))(start)
    error = np.abs(np.asarray(predict(params, x)) - y).mean() / np.abs(y).mean()
    return float(error), np.asarray(scales), float(zeros.mean())


def main():
    print("devices:", jax.devices())
    x, y = data()
    adam = ipu.optim.adam(1e-2, eps=1e-12)
    without, _, lost = train(ipu.optim.loss_scale(adam, 1.0), x, y)
    error, scales, still_lost = train(ipu.optim.loss_scale(adam, 1.0, automatic=True), x, y)
    print(f"gradients that float16 rounds to zero without a loss scale: {lost:.0%}")
    print(f"with an automatic loss scale: {still_lost:.0%}")
    print(f"relative error without a loss scale: {without:.3f}")
    print(f"loss scale: from {scales[0]:.0f} to {scales[-1]:.0f}, at most {scales.max():.0f}")
    print(f"relative error with an automatic loss scale: {error:.3f}")
    if not error < WANTED_ERROR < without:
        raise SystemExit(f"needs a relative error below {WANTED_ERROR} with the loss scale alone")


if __name__ == "__main__":
    main()
