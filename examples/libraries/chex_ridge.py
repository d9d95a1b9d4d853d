"""Trains a linear model whose state is a Chex dataclass, with Chex's checks in and around jit.

Run: python examples/libraries/chex_ridge.py
"""

import chex
import jax
import jax.numpy as jnp
import optax
from sklearn.datasets import load_diabetes

NUM_STEPS = 2000
WANTED_SCORE = 0.45  # of the variance explained, on patients not trained on

optimizer = optax.adam(0.05)


@chex.dataclass
class State:
    """weights [features], bias [], and the optimizer's state."""

    weights: chex.Array
    bias: chex.Array
    opt_state: chex.ArrayTree


def predict(weights, bias, features):
    return features @ weights + bias


@jax.jit
def train_step(state: State, features, targets):
    chex.assert_rank([features, targets], [2, 1])
    chex.assert_equal_shape_prefix([features, targets], 1)

    def loss_of(params):
        errors = predict(*params, features) - targets
        return jnp.mean(errors**2) + 1e-3 * jnp.sum(params[0] ** 2)

    params = (state.weights, state.bias)
    loss, grads = jax.value_and_grad(loss_of)(params)
    updates, opt_state = optimizer.update(grads, state.opt_state)
    weights, bias = optax.apply_updates(params, updates)
    return State(weights=weights, bias=bias, opt_state=opt_state), loss


def main():
    print("devices:", jax.devices())
    features, targets = load_diabetes(return_X_y=True)
    features = jnp.asarray(features / features.std(0), jnp.float32)
    targets = jnp.asarray((targets - targets.mean()) / targets.std(), jnp.float32)
    weights, bias = jnp.zeros(features.shape[1]), jnp.zeros(())
    state = State(weights=weights, bias=bias, opt_state=optimizer.init((weights, bias)))
    for _ in range(NUM_STEPS):
        state, loss = train_step(state, features[:300], targets[:300])
    chex.assert_tree_all_finite(state)
    errors = predict(state.weights, state.bias, features[300:]) - targets[300:]
    score = float(1 - jnp.mean(errors**2) / jnp.var(targets[300:]))
    print(f"loss: {float(loss):.4f}")
    print(f"variance explained: {score:.4f}")
    if score < WANTED_SCORE:
        raise SystemExit(f"the score needs {WANTED_SCORE}; got {score:.4f}")


if __name__ == "__main__":
    main()
