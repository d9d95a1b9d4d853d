"""Layers of equinox, each with its gradients, and its transforms."""

from __future__ import annotations

import equinox as eqx
import equinox.internal as eqxi
import jax
import jax.numpy as jnp

from tests.libraries.program import program

LIBRARIES = ("equinox",)


def _numbers(seed: int, *shape: int):
    return jax.random.normal(jax.random.key(seed), shape)


def _gradients(layer, *inputs):
    @eqx.filter_jit
    def step(layer):
        def loss_of(layer):
            y = layer(*inputs)
            first = jax.tree.leaves(y)[0]
            first = first.astype(jnp.promote_types(first.dtype, jnp.float32))
            return jnp.mean(jnp.sin(first) * first), y

        return eqx.filter_value_and_grad(loss_of, has_aux=True)(layer)

    (loss, y), grads = step(layer)
    return {"loss": loss, "y": y, "grads": eqx.filter(grads, eqx.is_array)}


def _keys(seed: int):
    return iter(jax.random.split(jax.random.key(seed), 40))


@program(1e-5, "one gradient of each layer")
def layers_of_images():
    keys, x, line = _keys(0), _numbers(0, 4, 9, 7), _numbers(1, 4, 9)
    nn = eqx.nn
    layers = {
        "conv1d": (nn.Conv1d(4, 6, 3, stride=2, padding=1, key=next(keys)), line),
        "conv2d": (nn.Conv2d(4, 6, 3, dilation=2, groups=2, key=next(keys)), x),
        "circular": (
            nn.Conv2d(4, 2, 3, padding=1, padding_mode="CIRCULAR", key=next(keys)),
            x,
        ),
        "transposed": (
            nn.ConvTranspose2d(4, 3, 3, stride=2, output_padding=1, key=next(keys)),
            x,
        ),
        "group_norm": (nn.GroupNorm(2, 4), x),
        "layer_norm": (nn.LayerNorm((9, 7)), x[0]),
        "rms_norm": (nn.RMSNorm((9, 7)), x[0]),
        "weight_norm": (nn.WeightNorm(nn.Linear(7, 5, key=next(keys))), x[0, 0]),
        "prelu": (nn.PReLU(0.2), x),
    }
    pools = {
        "max": nn.MaxPool2d(3, 2, padding=1, use_ceil=True),
        "average": nn.AvgPool2d((3, 2), 2),
        "adaptive": nn.AdaptiveAvgPool2d((4, 3)),
        "adaptive_max": nn.AdaptiveMaxPool2d((2, 5)),
    }
    found = {name: _gradients(layer, given) for name, (layer, given) in layers.items()}
    pooled = {
        name: jax.jit(jax.value_and_grad(lambda x, p=pool: jnp.sum(p(x) ** 3)))(x)
        for name, pool in pools.items()
    }
    return {**found, "pooled": pooled}


@program(1e-5, "one gradient of each layer")
def layers_of_sequences():
    keys, x = _keys(1), _numbers(2, 6, 8)
    nn = eqx.nn
    attention = nn.MultiheadAttention(
        2, 8, key_size=5, value_size=3, qk_size=4, vo_size=6, output_size=7, key=next(keys)
    )
    layers = {
        "linear": (nn.Linear(8, "scalar", key=next(keys)), x[0]),
        "embedding": (nn.Embedding(9, 4, key=next(keys)), jnp.int32(3)),
        "gru": (nn.GRUCell(8, 5, key=next(keys)), x[0], x[1, :5]),
        "lstm": (nn.LSTMCell(8, 5, key=next(keys)), x[0], (x[1, :5], x[2, :5])),
        "mlp": (nn.MLP(8, 3, 7, 2, final_activation=jnp.tanh, key=next(keys)), x[0]),
        "attention": (attention, x, _numbers(3, 5, 5), _numbers(4, 5, 3)),
    }
    found = {name: _gradients(layer, *given) for name, (layer, *given) in layers.items()}
    found["rotary"] = eqx.filter_jit(nn.RotaryPositionalEmbedding(8))(x)
    found["dropout"] = eqx.filter_jit(nn.Dropout(0.3))(x, key=jax.random.key(5))
    return found


@program(1e-5, "powers and one gradient of small networks")
def stateful_layers():
    class Model(eqx.Module):
        norm: eqx.nn.SpectralNorm
        batch: eqx.nn.BatchNorm

        def __init__(self, key):
            first, second = jax.random.split(key)
            linear = eqx.nn.Linear(5, 6, key=first)
            self.norm = eqx.nn.SpectralNorm(linear, "weight", key=second)
            self.batch = eqx.nn.BatchNorm(6, "batch", mode="ema")

        def __call__(self, x, state):
            y, state = self.norm(x, state)
            return self.batch(y, state)

    model, state = eqx.nn.make_with_state(Model)(jax.random.key(6))
    forward = jax.vmap(model, axis_name="batch", in_axes=(0, None), out_axes=(0, None))
    step = eqx.filter_jit(forward)
    for k in range(3):
        y, state = step(_numbers(10 + k, 7, 5), state)
    return {"y": y, "state": [state.get(model.batch.ema_state_index)]}


@program(1e-5, "gradients of short loops")
def loops_and_custom_gradients():
    """Loops with checkpoints, custom derivatives, and changes of one leaf of a tree."""
    mlp = eqx.nn.MLP(3, 3, 8, 1, key=jax.random.key(7))
    x = _numbers(8, 3)

    @eqx.filter_custom_vjp
    def doubled(pair, factor):
        return pair[0] * pair[1] * factor

    doubled.def_fwd(lambda perturbed, pair, factor: (doubled(pair, factor), None))
    doubled.def_bwd(lambda saved, ct, perturbed, pair, factor: (ct * pair[1] * 3, ct * pair[0] * 5))

    def looped(kind, **options):
        def loss_of(mlp):
            def body(carry):
                k, y = carry
                return k + 1, y + 0.3 * mlp(y)

            end = eqxi.while_loop(
                lambda c: c[0] < 5, body, (0, x), kind=kind, max_steps=8, **options
            )
            return jnp.sum(end[1] ** 2)

        return eqx.filter(eqx.filter_jit(eqx.filter_value_and_grad(loss_of))(mlp), eqx.is_array)

    changed = eqx.tree_at(lambda m: m.layers[0].bias, mlp, replace_fn=lambda b: b + 1)
    weights, rest = eqx.partition(mlp, eqx.is_inexact_array)
    along = eqx.filter(changed, eqx.is_inexact_array)
    return {
        "checkpointed": looped("checkpointed", checkpoints=2),
        "bounded": looped("bounded"),
        "custom": eqx.filter_jit(eqx.filter_grad(lambda p: jnp.sum(doubled(p, 2.0))))((x, x + 1)),
        "changed": eqx.filter_jit(changed)(x),
        "each": eqx.filter_vmap(eqx.filter_grad(lambda x, m: jnp.sum(m(x))), in_axes=(0, None))(
            _numbers(9, 4, 3), mlp
        ),
        "tangents": eqx.filter_jvp(lambda m: eqx.combine(m, rest)(x), (weights,), (along,))[1],
    }


@program(1.5e-2, "layers that compute in 16 bits, and round in other places")
def narrow_types():
    found = {}
    for dtype in (jnp.float16, jnp.bfloat16):
        keys = _keys(9)
        model = eqx.nn.Sequential(
            [
                eqx.nn.Conv2d(3, 4, 3, dtype=dtype, key=next(keys)),
                eqx.nn.Lambda(jax.nn.gelu),
                eqx.nn.Lambda(jnp.ravel),
                eqx.nn.Linear(4 * 16, 5, dtype=dtype, key=next(keys)),
            ]
        )
        found[jnp.dtype(dtype).name] = _gradients(model, _numbers(10, 3, 6, 6).astype(dtype))
    return found


@program(1e-10, "double precision", x64=True)
def double_precision():
    keys = _keys(10)
    cell = eqx.nn.GRUCell(4, 6, dtype=jnp.float64, key=next(keys))
    x = jax.random.normal(next(keys), (5, 4), jnp.float64)

    @eqx.filter_jit
    @eqx.filter_value_and_grad
    def loss_of(cell):
        end, _ = jax.lax.scan(lambda h, x: (cell(x, h), None), jnp.zeros(6, jnp.float64), x)
        return jnp.sum(end**2)

    loss, grads = loss_of(cell)
    return {"loss": loss, "grads": eqx.filter(grads, eqx.is_array)}
