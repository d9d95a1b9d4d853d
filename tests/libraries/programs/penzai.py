"""Penzai: models with named axes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from penzai import pz

from tests.libraries.program import program

LIBRARIES = ("penzai", "optax")


def _linear(name: str, key, **axes):
    return pz.nn.Linear.from_config(name, key, *({k: v} for k, v in axes.items()))


@program(1e-4, "eight steps of Adam")
def named_perceptron():
    keys = jax.random.split(jax.random.key(0), 3)
    model = pz.nn.Sequential(
        [
            _linear("first", keys[0], features=4, hidden=16),
            pz.nn.RMSLayerNorm.from_config("norm", keys[1], {"hidden": 16}),
            pz.nn.Elementwise(jax.nn.silu),
            _linear("second", keys[1], hidden=16, classes=3),
        ]
    )
    x = pz.nx.wrap(jax.random.normal(keys[2], (12, 4)), "batch", "features")
    labels = jnp.arange(12) % 3
    model, params = pz.unbind_params(model, freeze=True)
    optimizer = optax.adam(1e-2, eps=1e-3)

    @jax.jit
    def train_step(params, opt_state):
        def loss_of(params):
            logits = pz.bind_variables(model, params)(x).unwrap("batch", "classes")
            return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

        loss, grads = jax.value_and_grad(loss_of)(params)
        updates, opt_state = optimizer.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    opt_state, losses = optimizer.init(params), []
    for _ in range(8):
        params, opt_state, loss = train_step(params, opt_state)
        losses.append(loss)
    return {"losses": jnp.stack(losses), "params": params}
