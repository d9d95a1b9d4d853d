"""Haiku: functions with parameters, transformed into pairs of init and apply."""

from __future__ import annotations

import haiku as hk
import jax
import jax.numpy as jnp
import optax

from tests.libraries.program import program

LIBRARIES = ("dm-haiku", "optax")


@program(1e-4, "six steps of a network with batch norms add up roundings of 1e-6")
def residual_network():
    def forward(images, is_training):
        network = hk.nets.ResNet(
            blocks_per_group=(1, 1, 1, 1),
            num_classes=4,
            channels_per_group=(4, 8, 8, 16),
            bottleneck=False,
            resnet_v2=True,
            logits_config={"w_init": hk.initializers.VarianceScaling()},
        )
        return network(images, is_training)

    network = hk.transform_with_state(forward)
    images = jax.random.normal(jax.random.key(0), (8, 32, 32, 3))
    labels = jax.nn.one_hot(jnp.arange(8) % 4, 4)
    params, state = network.init(jax.random.key(1), images, True)

    @jax.jit
    def train_step(params, state):
        def loss_of(params):
            logits, updated = network.apply(params, state, None, images, True)
            return optax.softmax_cross_entropy(logits, labels).mean(), updated

        (loss, state), grads = jax.value_and_grad(loss_of, has_aux=True)(params)
        return jax.tree.map(lambda p, g: p - 0.02 * g, params, grads), state, loss

    losses = []
    for _ in range(6):
        params, state, loss = train_step(params, state)
        losses.append(loss)
    return jnp.stack(losses)


@program(1e-5, "one gradient through twelve time steps")
def lstm():
    def forward(x):
        core = hk.DeepRNN([hk.LSTM(12), jax.nn.relu, hk.Linear(5)])
        outputs, _ = hk.dynamic_unroll(core, x, core.initial_state(x.shape[1]))
        return outputs

    network = hk.without_apply_rng(hk.transform(forward))
    x = jax.random.normal(jax.random.key(0), (12, 4, 3))
    params = network.init(jax.random.key(1), x)
    return jax.jit(jax.value_and_grad(lambda p: jnp.mean(network.apply(p, x) ** 2)))(params)


@program(1e-5, "one gradient through two layers")
def attention_over_stacked_layers():
    def layer(x):
        normed = hk.LayerNorm(-1, create_scale=True, create_offset=True)(x)
        w_init = hk.initializers.VarianceScaling(0.5)
        attention = hk.MultiHeadAttention(2, 8, w_init=w_init, with_bias=False)
        x = x + attention(normed, normed, normed)
        return x + hk.dropout(hk.next_rng_key(), 0.1, hk.Linear(16)(jax.nn.gelu(x)))

    network = hk.transform(lambda x: hk.experimental.layer_stack(2)(layer)(x))
    x = jax.random.normal(jax.random.key(0), (3, 6, 16))
    params = network.init(jax.random.key(1), x)

    @jax.jit
    @jax.value_and_grad
    def loss_of(params):
        return jnp.mean(network.apply(params, jax.random.key(2), x) ** 2)

    return loss_of(params)
