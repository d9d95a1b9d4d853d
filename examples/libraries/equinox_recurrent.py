"""Trains an Equinox GRU to classify the direction of a spiral, with an accuracy of at least 98 %.

Run: python examples/libraries/equinox_recurrent.py
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

NUM_STEPS = 300
BATCH_SIZE = 64
LENGTH = 16
WANTED_ACCURACY = 0.98


class Classifier(eqx.Module):
    """One path [time, 2] -> logit []."""

    cell: eqx.nn.GRUCell
    out: eqx.nn.Linear

    def __init__(self, key):
        cell_key, out_key = jax.random.split(key)
        self.cell = eqx.nn.GRUCell(2, 16, key=cell_key)
        self.out = eqx.nn.Linear(16, "scalar", key=out_key)

    def __call__(self, path):
        state, _ = jax.lax.scan(lambda h, x: (self.cell(x, h), None), jnp.zeros(16), path)
        return self.out(state)


def spirals(key, count):
    """Paths [count, LENGTH, 2] and whether each turns left [count]."""
    turn_key, start_key, noise_key = jax.random.split(key, 3)
    left = jax.random.bernoulli(turn_key, shape=(count,))
    time = jnp.linspace(0, 3, LENGTH)
    angle = jnp.where(left, 1.0, -1.0)[:, None] * time
    angle += jax.random.uniform(start_key, (count, 1), maxval=6.28)
    paths = jnp.exp(-0.3 * time)[:, None] * jnp.stack([jnp.cos(angle), jnp.sin(angle)], -1)
    return paths + 0.05 * jax.random.normal(noise_key, paths.shape), left.astype(jnp.float32)


@eqx.filter_jit
def accuracy_of(model, paths, left):
    return ((jax.vmap(model)(paths) > 0) == left).mean()


def main():
    print("devices:", jax.devices())
    model = Classifier(jax.random.key(0))
    optimizer = optax.adam(1e-2)
    opt_state = optimizer.init(eqx.filter(model, eqx.is_array))

    @eqx.filter_jit(donate="all-except-first")
    def train_step(key, model, opt_state):
        paths, left = spirals(key, BATCH_SIZE)

        def loss_of(model):
            return optax.sigmoid_binary_cross_entropy(jax.vmap(model)(paths), left).mean()

        loss, grads = eqx.filter_value_and_grad(loss_of)(model)
        updates, opt_state_new = optimizer.update(grads, opt_state)
        return eqx.apply_updates(model, updates), opt_state_new, loss

    for key in jax.random.split(jax.random.key(1), NUM_STEPS):
        model, opt_state, loss = train_step(key, model, opt_state)
    paths, left = spirals(jax.random.key(2), 1000)
    accuracy = float(accuracy_of(model, paths, left))
    print(f"loss: {float(loss):.4f}")
    print(f"test accuracy: {accuracy:.4f}")
    if accuracy < WANTED_ACCURACY:
        raise SystemExit(f"test accuracy needs {WANTED_ACCURACY}; got {accuracy:.4f}")


if __name__ == "__main__":
    main()
