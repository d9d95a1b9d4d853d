"""Flax's linen: modules whose parameters are a separate tree."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax
from flax.training.train_state import TrainState

from tests.libraries.program import program

LIBRARIES = ("flax", "optax")


class Convolutional(nn.Module):
    """[n, 12, 12, 1] -> logits [n, 5]."""

    @nn.compact
    def __call__(self, x, train: bool):
        x = nn.relu(nn.BatchNorm(use_running_average=not train)(nn.Conv(8, (3, 3))(x)))
        x = nn.max_pool(x, (2, 2), strides=(2, 2))
        x = nn.relu(nn.Conv(16, (3, 3), strides=(2, 2), feature_group_count=2)(x))
        x = nn.Dropout(0.2, deterministic=not train)(x.mean((1, 2)))
        return nn.Dense(5)(x)


@program(1e-4, "ten steps of batch norm add up roundings of 1e-6")
def convolutional_network():
    model = Convolutional()
    images = jax.random.normal(jax.random.key(0), (16, 12, 12, 1))
    labels = jnp.arange(16) % 5
    variables = model.init(jax.random.key(1), images, train=False)
    optimizer = optax.sgd(0.1, momentum=0.9)

    @jax.jit
    def train_step(params, stats, opt_state, key):
        def loss_of(params):
            logits, updated = model.apply(
                {"params": params, "batch_stats": stats},
                images,
                train=True,
                mutable=["batch_stats"],
                rngs={"dropout": key},
            )
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
            return losses.mean(), updated["batch_stats"]

        (loss, stats), grads = jax.value_and_grad(loss_of, has_aux=True)(params)
        updates, opt_state = optimizer.update(grads, opt_state)
        return optax.apply_updates(params, updates), stats, opt_state, loss

    params, stats = variables["params"], variables["batch_stats"]
    opt_state, losses = optimizer.init(params), []
    for key in jax.random.split(jax.random.key(2), 10):
        params, stats, opt_state, loss = train_step(params, stats, opt_state, key)
        losses.append(loss)
    logits = model.apply({"params": params, "batch_stats": stats}, images, train=False)
    return {"losses": jnp.stack(losses), "stats": stats, "logits": logits}


class Block(nn.Module):
    @nn.compact
    def __call__(self, x, mask):
        normed = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(num_heads=4)(normed, mask=mask)
        return x + nn.Dense(32)(nn.gelu(nn.Dense(64)(nn.LayerNorm()(x))))


class LanguageModel(nn.Module):
    """Tokens [n, time] -> logits [n, time, 17]; its two blocks are one scanned, remade block."""

    @nn.compact
    def __call__(self, tokens):
        embed = nn.Embed(17, 32)
        places = self.param("places", nn.initializers.normal(0.1), (tokens.shape[1], 32))
        mask = nn.make_causal_mask(tokens)
        layers = nn.scan(
            lambda block, x, _: (block(x, mask), None),
            variable_axes={"params": 0},
            split_rngs={"params": True},
            length=2,
        )
        x, _ = layers(nn.remat(Block)(), embed(tokens) + places, None)
        return embed.attend(nn.LayerNorm()(x))


@program(1e-4, "Adam divides by gradients' sizes: small gradients make roundings larger")
def transformer():
    model = LanguageModel()
    tokens = (jnp.arange(13) * jnp.arange(1, 9)[:, None]) % 17
    state = TrainState.create(
        apply_fn=model.apply,
        params=model.init(jax.random.key(0), tokens[:, :-1])["params"],
        tx=optax.chain(optax.clip_by_global_norm(1.0), optax.adam(3e-3, eps=1e-3)),
    )

    @jax.jit
    def train_step(state):
        def loss_of(params):
            logits = state.apply_fn({"params": params}, tokens[:, :-1])
            losses = optax.softmax_cross_entropy_with_integer_labels(logits, tokens[:, 1:])
            return losses.mean()

        loss, grads = jax.value_and_grad(loss_of)(state.params)
        return state.apply_gradients(grads=grads), loss

    losses = []
    for _ in range(6):
        state, loss = train_step(state)
        losses.append(loss)
    return {"losses": jnp.stack(losses), "places": state.params["places"], "step": state.step}


class Tagger(nn.Module):
    """Sequences [n, time, 6] of given lengths -> logits [n, time, 3]."""

    @nn.compact
    def __call__(self, x, lengths):
        both = nn.Bidirectional(nn.RNN(nn.OptimizedLSTMCell(8)), nn.RNN(nn.GRUCell(8)))
        return nn.Dense(3)(both(x, seq_lengths=lengths))


@program(1e-5, "one gradient through ten time steps")
def recurrent_gradient():
    model = Tagger()
    x = jax.random.normal(jax.random.key(0), (5, 10, 6))
    lengths = jnp.array([10, 7, 3, 1, 10])
    params = model.init(jax.random.key(1), x, lengths)

    @jax.jit
    def loss_of(params):
        logits = model.apply(params, x, lengths)
        valid = jnp.arange(10) < lengths[:, None]
        return jnp.sum(jax.nn.log_softmax(logits)[..., 0] * valid) / valid.sum()

    return jax.value_and_grad(loss_of)(params)


class Autoencoder(nn.Module):
    """Images [n, 64] -> logits [n, 64], mean and log variance of the latent [n, 4]."""

    @nn.compact
    def __call__(self, x, key):
        hidden = nn.silu(nn.Dense(32)(x))
        mean, logvar = nn.Dense(4, name="mean")(hidden), nn.Dense(4, name="logvar")(hidden)
        latent = mean + jnp.exp(0.5 * logvar) * jax.random.normal(key, mean.shape)
        return nn.Dense(64)(nn.silu(nn.Dense(32)(latent))), mean, logvar


@program(1e-4, "twenty steps of Adam")
def variational_autoencoder():
    model = Autoencoder()
    images = jax.random.bernoulli(jax.random.key(0), 0.3, (32, 64)).astype(jnp.float32)
    params = model.init(jax.random.key(1), images, jax.random.key(2))
    optimizer = optax.adam(1e-2, eps=1e-3)

    def train_step(carry, key):
        def loss_of(params):
            logits, mean, logvar = model.apply(params, images, key)
            distance = -0.5 * jnp.sum(1 + logvar - mean**2 - jnp.exp(logvar), -1)
            errors = optax.sigmoid_binary_cross_entropy(logits, images).sum(-1)
            return jnp.mean(errors + distance)

        params, opt_state = carry
        loss, grads = jax.value_and_grad(loss_of)(params)
        updates, opt_state = optimizer.update(grads, opt_state)
        return (optax.apply_updates(params, updates), opt_state), loss

    keys = jax.random.split(jax.random.key(3), 20)
    (params, _), losses = jax.jit(lambda carry: jax.lax.scan(train_step, carry, keys))(
        (params, optimizer.init(params))
    )
    return {"losses": losses, "mean": params["params"]["mean"]}
