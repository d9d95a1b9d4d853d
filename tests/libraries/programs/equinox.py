"""Equinox: models that are trees."""

from __future__ import annotations

import io

import equinox as eqx
import jax
import jax.numpy as jnp
import optax

from tests.libraries.program import program

LIBRARIES = ("equinox", "optax")


class Convolutional(eqx.Module):
    """Image [1, 10, 10] -> logits [4]; batch norm's state is passed along."""

    first: eqx.nn.Conv2d
    norm: eqx.nn.BatchNorm
    pool: eqx.nn.MaxPool2d
    out: eqx.nn.Linear

    def __init__(self, key):
        first_key, out_key = jax.random.split(key)
        self.first = eqx.nn.Conv2d(1, 6, 3, key=first_key)
        self.norm = eqx.nn.BatchNorm(6, axis_name="batch", mode="batch")
        self.pool = eqx.nn.MaxPool2d(2, 2)
        self.out = eqx.nn.Linear(96, 4, key=out_key)

    def __call__(self, image, state):
        x, state = self.norm(self.first(image), state)
        return self.out(self.pool(jax.nn.relu(x)).reshape(-1)), state


@program(1e-4, "eight steps of batch norm add up roundings of 1e-6")
def convolutional_network():
    model, state = eqx.nn.make_with_state(Convolutional)(jax.random.key(0))
    images = jax.random.normal(jax.random.key(1), (12, 1, 10, 10))
    labels = jnp.arange(12) % 4
    optimizer = optax.adam(1e-2, eps=1e-3)
    opt_state = optimizer.init(eqx.filter(model, eqx.is_inexact_array))

    @eqx.filter_jit
    def train_step(model, state, opt_state):
        def loss_of(model, state):
            forward = jax.vmap(model, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
            logits, state = forward(images, state)
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
            return losses.mean(), state

        (loss, state), grads = eqx.filter_value_and_grad(loss_of, has_aux=True)(model, state)
        updates, opt_state = optimizer.update(grads, opt_state)
        return eqx.apply_updates(model, updates), state, opt_state, loss

    losses = []
    for _ in range(8):
        model, state, opt_state, loss = train_step(model, state, opt_state)
        losses.append(loss)
    logits, _ = jax.vmap(eqx.nn.inference_mode(model), axis_name="batch", in_axes=(0, None))(
        images, state
    )
    return {"losses": jnp.stack(losses), "logits": logits}


@program(1e-5, "one gradient of small networks")
def ensemble():
    @eqx.filter_vmap
    def create(key):
        return eqx.nn.MLP(3, 2, 16, 2, activation=jax.nn.gelu, key=key)

    models = create(jax.random.split(jax.random.key(0), 5))
    x = jax.random.normal(jax.random.key(1), (11, 3))

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss_of(models):
        each = eqx.filter_vmap(lambda model: jax.vmap(model)(x))(models)
        return jnp.var(each, axis=0).mean()

    loss, grads = loss_of(models)
    return {"loss": loss, "grads": eqx.filter(grads, eqx.is_array)}


@program(1e-5, "one gradient through nine time steps")
def recurrent_with_donated_model():
    cell = eqx.nn.LSTMCell(3, 10, key=jax.random.key(0))
    path = jax.random.normal(jax.random.key(1), (9, 3))

    @eqx.filter_jit(donate="all")
    def sgd_step(cell, path):
        def loss_of(cell):
            start = (jnp.zeros(10), jnp.zeros(10))
            _, states = jax.lax.scan(lambda s, x: (cell(x, s),) * 2, start, path)
            return jnp.sum(states[0] ** 2)

        return jax.tree.map(lambda p, g: p - 0.1 * g, cell, eqx.filter_grad(loss_of)(cell))

    for _ in range(3):
        cell = sgd_step(cell, path + 0)
    return {"hidden": cell.weight_hh, "input": cell.weight_ih, "bias": cell.bias}


@program(1e-6, "one forward pass; what is saved is bits")
def saved_and_loaded():
    def create(key):
        return eqx.nn.MultiheadAttention(2, 8, key=key)

    saved = create(jax.random.key(0))
    file = io.BytesIO()
    eqx.tree_serialise_leaves(file, saved)
    file.seek(0)
    loaded = eqx.tree_deserialise_leaves(file, eqx.filter_eval_shape(create, jax.random.key(1)))
    x = jax.random.normal(jax.random.key(2), (5, 8))
    mask = jnp.tril(jnp.ones((5, 5), bool))
    same = eqx.tree_equal(saved, loaded)
    return {"y": eqx.filter_jit(loaded)(x, x, x, mask), "same": jnp.asarray(same)}


@program(1e-6, "logarithms and whether an error was raised")
def error_if():
    @eqx.filter_jit
    def checked_log(x):
        x = eqx.error_if(x, jnp.any(x <= 0), "x must be positive")
        return jnp.log(x)

    try:
        jax.block_until_ready(checked_log(jnp.array([1.0, -1.0])))
        raised = False
    except RuntimeError as error:
        raised = "x must be positive" in str(error)
    return {"log": checked_log(jnp.array([1.0, 2.0, 3.0])), "raised": jnp.asarray(raised)}
