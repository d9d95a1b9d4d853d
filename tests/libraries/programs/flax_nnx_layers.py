"""Layers of Flax's NNX, each with its gradients, and NNX's transforms."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from tests.libraries.program import program

LIBRARIES = ("flax", "optax")


def _numbers(seed: int, *shape: int):
    return jax.random.normal(jax.random.key(seed), shape)


def _gradients(module, *inputs):
    """Outputs, gradients of parameters, and the rest of the state after one training step."""

    @nnx.jit
    def step(module):
        def loss_of(module):
            y = module(*inputs)
            first = jax.tree.leaves(y)[0]
            first = first.astype(jnp.promote_types(first.dtype, jnp.float32))
            return jnp.mean(jnp.sin(first) * first), y

        return nnx.value_and_grad(loss_of, has_aux=True)(module)

    (loss, y), grads = step(module)
    return {"loss": loss, "y": y, "grads": grads, "state": nnx.state(module)}


@program(1e-5, "one gradient of each layer")
def layers_of_images():
    rngs, x = nnx.Rngs(0), _numbers(0, 3, 8, 8, 4)
    layers = {
        "conv": nnx.Conv(4, 6, (3, 3), strides=2, padding="VALID", rngs=rngs),
        "grouped": nnx.Conv(4, 8, (3, 3), feature_group_count=2, kernel_dilation=2, rngs=rngs),
        "circular": nnx.Conv(4, 2, (5, 3), padding="CIRCULAR", use_bias=False, rngs=rngs),
        "transposed": nnx.ConvTranspose(4, 3, (3, 3), strides=(2, 2), rngs=rngs),
        "batch_norm": nnx.BatchNorm(4, momentum=0.8, rngs=rngs),
        "group_norm": nnx.GroupNorm(4, num_groups=2, rngs=rngs),
        "instance_norm": nnx.InstanceNorm(4, rngs=rngs),
        "layer_norm": nnx.LayerNorm(4, reduction_axes=(1, 2, 3), feature_axes=-1, rngs=rngs),
        "spectral_norm": nnx.SpectralNorm(nnx.Linear(4, 5, rngs=rngs), n_steps=2, rngs=rngs),
        "weight_norm": nnx.WeightNorm(nnx.Linear(4, 5, rngs=rngs), rngs=rngs),
        "prelu": nnx.PReLU(),
    }
    found = {name: _gradients(layer, x) for name, layer in layers.items()}
    pools = (nnx.max_pool, nnx.avg_pool, nnx.min_pool)
    pooled = [jax.jit(lambda x, p=p: p(x, (3, 2), (2, 1), "SAME"))(x) for p in pools]
    return {**found, "pooled": pooled}


@program(1e-5, "one gradient of each layer")
def layers_of_features():
    rngs, x = nnx.Rngs(1), _numbers(1, 5, 6)
    ids = jnp.array([[0, 3, 3], [8, 1, 0]])
    layers = {
        "general": (nnx.LinearGeneral((5, 6), (2, 3), axis=(0, 1), rngs=rngs), x),
        "einsum": (nnx.Einsum("ab,bcd->acd", (6, 2, 3), (2, 3), rngs=rngs), x),
        "embed": (nnx.Embed(9, 4, rngs=rngs), ids),
        "lora": (nnx.LoRALinear(6, 4, lora_rank=2, rngs=rngs), x),
        "rms_norm": (nnx.RMSNorm(6, rngs=rngs), x),
        "dropout": (nnx.Dropout(0.4, rngs=rngs), x),
        "shared_dropout": (nnx.Dropout(0.4, broadcast_dims=(0,), rngs=rngs), x),
        "sequence": (
            nnx.Sequential(nnx.Linear(6, 8, rngs=rngs), nnx.gelu, nnx.Linear(8, 2, rngs=rngs)),
            x,
        ),
    }
    return {name: _gradients(layer, given) for name, (layer, given) in layers.items()}


@program(1e-5, "one gradient through six steps")
def recurrent_cells():
    rngs, x = nnx.Rngs(2), _numbers(2, 3, 6, 4)
    lengths = jnp.array([6, 1, 4])

    class Limited(nnx.Module):
        def __init__(self, cell, **options):
            self.rnn = nnx.RNN(cell, **options)

        def __call__(self, x):
            return self.rnn(x, seq_lengths=lengths)

    layers = {
        "simple": nnx.RNN(nnx.SimpleCell(4, 5, rngs=rngs)),
        "gru": Limited(nnx.GRUCell(4, 5, rngs=rngs), reverse=True, keep_order=True),
        "lstm": Limited(nnx.LSTMCell(4, 5, rngs=rngs), return_carry=True),
        "optimized": nnx.RNN(nnx.OptimizedLSTMCell(4, 5, rngs=rngs), time_major=False),
        "both_ways": nnx.Bidirectional(
            nnx.RNN(nnx.GRUCell(4, 5, rngs=rngs)), nnx.RNN(nnx.LSTMCell(4, 5, rngs=rngs))
        ),
    }
    return {name: _gradients(layer, x) for name, layer in layers.items()}


@program(2e-5, "softmax of sums of 12 terms, and its gradient")
def attention():
    rngs, x, memory = nnx.Rngs(3), _numbers(3, 2, 7, 12), _numbers(4, 2, 5, 12)
    mask = nnx.make_causal_mask(jnp.ones((2, 7)))

    class Block(nnx.Module):
        def __init__(self):
            self.own = nnx.MultiHeadAttention(
                num_heads=3,
                in_features=12,
                decode=False,
                dropout_rate=0.1,
                deterministic=False,
                rngs=rngs,
            )
            self.other = nnx.MultiHeadAttention(
                num_heads=2,
                in_features=12,
                qkv_features=8,
                normalize_qk=True,
                decode=False,
                rngs=rngs,
            )

        def __call__(self, x, memory):
            x = x + self.own(x, mask=mask)
            return x + self.other(x, memory)

    made = _gradients(Block(), x, memory)
    made["grads"] = nnx.to_pure_dict(made["grads"])
    # Softmax does not depend on it: this gradient is a rounding error of zero.
    del made["grads"]["own"]["key"]["bias"]
    return made


@program(1e-10, "double precision", x64=True)
def double_precision():
    types = {"dtype": jnp.float64, "param_dtype": jnp.float64, "rngs": nnx.Rngs(5)}
    x = jnp.asarray(np.random.default_rng(0).standard_normal((3, 5, 6)))
    model = nnx.Sequential(
        nnx.Conv(6, 4, (3,), **types),
        nnx.LayerNorm(4, **types),
        nnx.tanh,
        nnx.Linear(4, 2, **types),
    )
    return _gradients(model, x)


@program(1e-4, "six steps of Adam")
def transforms_and_optimizer():
    """Per-example gradients by vmap, carried state by scan, a condition and a loop."""

    class Counter(nnx.Variable):
        pass

    class Model(nnx.Module):
        def __init__(self, rngs: nnx.Rngs):
            self.linear = nnx.Linear(4, 4, rngs=rngs)
            self.calls = Counter(jnp.int32(0))

        def __call__(self, x):
            self.calls[...] = self.calls[...] + 1
            return nnx.cond(jnp.sum(x) > 0, lambda m, x: m(x), lambda m, x: -m(x), self.linear, x)

    model = Model(nnx.Rngs(6))
    chain = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(1e-2, eps=1e-3))
    optimizer = nnx.Optimizer(model, chain, wrt=nnx.Param)
    xs = _numbers(7, 6, 4)

    @nnx.scan(in_axes=(nnx.Carry, 0))
    def train(carry, x):
        model, optimizer = carry
        loss, grads = nnx.value_and_grad(lambda model: jnp.mean((model(x) - x[::-1]) ** 2))(model)
        optimizer.update(model, grads)
        return (model, optimizer), loss

    _, losses = nnx.jit(train)((model, optimizer), xs)
    each = nnx.vmap(nnx.grad(lambda linear, x: jnp.sum(linear(x) ** 2)), in_axes=(None, 0))
    halved = nnx.while_loop(
        lambda c: jnp.max(jnp.abs(c[1])) > 0.1, lambda c: (c[0], c[1] / 2), (model.linear, xs)
    )[1]
    definition, state = nnx.split(model)
    merged = nnx.merge(definition, jax.tree.map(lambda x: x * 2, state))
    return {
        "losses": losses,
        "state": nnx.to_pure_dict(nnx.state(model)),
        "each": nnx.jit(each)(model.linear, xs),
        "halved": halved,
        "merged": nnx.jit(lambda m, x: m(x))(merged, xs[0]),
    }
