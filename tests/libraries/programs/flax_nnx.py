"""Flax's NNX: modules that are objects with state."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from tests.libraries.program import program

LIBRARIES = ("flax", "optax")


class Perceptron(nnx.Module):
    """[n, 8] -> [n, 3], with batch norm and dropout."""

    def __init__(self, rngs: nnx.Rngs):
        self.hidden = nnx.Linear(8, 32, use_bias=False, rngs=rngs)
        self.norm = nnx.BatchNorm(32, rngs=rngs)
        self.dropout = nnx.Dropout(0.2, rngs=rngs)
        self.out = nnx.Linear(32, 3, rngs=rngs)

    def __call__(self, x):
        return self.out(self.dropout(nnx.relu(self.norm(self.hidden(x)))))


@program(1e-4, "ten steps of batch norm add up roundings of 1e-6")
def dropout_and_batch_norm():
    model = Perceptron(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adamw(1e-2, eps=1e-3), wrt=nnx.Param)
    metrics = nnx.MultiMetric(loss=nnx.metrics.Average("loss"), accuracy=nnx.metrics.Accuracy())
    x = jax.random.normal(jax.random.key(0), (24, 8))
    labels = jnp.argmax(x[:, :3], axis=-1)

    @nnx.jit
    def train_step(model, optimizer, metrics):
        def loss_of(model):
            logits = model(x)
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
            return losses.mean(), logits

        (loss, logits), grads = nnx.value_and_grad(loss_of, has_aux=True)(model)
        optimizer.update(model, grads)
        metrics.update(loss=loss, logits=logits, labels=labels)

    for _ in range(10):
        train_step(model, optimizer, metrics)
    model.eval()
    return {"metrics": metrics.compute(), "state": nnx.state(model, nnx.Param), "y": model(x)}


class Residual(nnx.Module):
    def __init__(self, rngs: nnx.Rngs):
        self.norm = nnx.RMSNorm(16, rngs=rngs)
        self.linear = nnx.Linear(16, 16, rngs=rngs)

    def __call__(self, x):
        return x + nnx.tanh(self.linear(self.norm(x)))


@program(1e-5, "one gradient through four layers")
def layers_made_by_vmap_and_run_by_scan():
    @nnx.split_rngs(splits=4)
    @nnx.vmap(in_axes=0, out_axes=0)
    def create(rngs: nnx.Rngs):
        return Residual(rngs)

    @nnx.scan(in_axes=(0, nnx.Carry), out_axes=nnx.Carry)
    def forward(layer, x):
        return nnx.remat(lambda layer, x: layer(x))(layer, x)

    model = create(nnx.Rngs(params=1))
    x = jax.random.normal(jax.random.key(0), (6, 16))
    loss, grads = nnx.jit(nnx.value_and_grad(lambda model: (forward(model, x) ** 3).mean()))(model)
    return {"loss": loss, "grads": grads}


@program(1e-5, "sums of at most 8 terms")
def decoding_with_a_cache():
    attention = nnx.MultiHeadAttention(num_heads=2, in_features=8, decode=True, rngs=nnx.Rngs(2))
    attention.init_cache((3, 6, 8))
    x = jax.random.normal(jax.random.key(1), (6, 3, 1, 8))

    @nnx.jit
    def decode(attention, token):
        return attention(token)

    return jnp.stack([decode(attention, token) for token in x])


@program(1e-4, "Adam over eight steps of a recurrent network")
def split_and_merge():
    class Recurrent(nnx.Module):
        def __init__(self, rngs: nnx.Rngs):
            self.rnn = nnx.RNN(nnx.GRUCell(4, 12, rngs=rngs))
            self.out = nnx.Linear(12, 1, rngs=rngs)

        def __call__(self, x):
            return self.out(self.rnn(x))[..., 0]

    definition, params, rest = nnx.split(Recurrent(nnx.Rngs(3)), nnx.Param, ...)
    x = jax.random.normal(jax.random.key(2), (7, 9, 4))
    wanted = jnp.cumsum(x[..., 0], axis=1)
    optimizer = optax.adam(1e-2, eps=1e-3)

    @jax.jit
    def train_step(params, opt_state):
        loss, grads = jax.value_and_grad(
            lambda params: jnp.mean(
                (nnx.merge(definition, params, rest, copy=True)(x) - wanted) ** 2
            )
        )(params)
        updates, opt_state = optimizer.update(grads, opt_state)
        return optax.apply_updates(params, updates), opt_state, loss

    opt_state, losses = optimizer.init(params), []
    for _ in range(8):
        params, opt_state, loss = train_step(params, opt_state)
        losses.append(loss)
    return {"losses": jnp.stack(losses), "params": params}
