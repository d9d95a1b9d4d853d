"""Networks of random layers of flax with a loss of optax, and optimizers of optax.

Layers, activations and optimizers are found in their namespaces. An optimizer gets gradients
that are drawn, so that the comparison is of its arithmetic alone: Adam makes signs of gradients
near zero.
"""

from __future__ import annotations

import functools
import inspect
import random
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import lax

from tests.fuzz.functions.calls import Call

Function = Callable[..., Any]

#: Optimizers that take signs, or search along a line with a function that they are given.
LEFT_OUT = {"lion", "sign_sgd", "signum", "rprop", "lbfgs", "polyak_sgd", "noisy_sgd", "sm3"}
STEPS = 4


def from_seed(seed: int) -> Call:
    """Equal seeds make equal calls; every third one is an optimizer."""
    rng = random.Random(f"training {seed}")
    return _optimizer(rng) if seed % 3 == 0 else _network(rng)


# Optimizers --------------------------------------------------------------------------------------


@functools.cache
def optimizers() -> dict[str, Function]:
    """Functions of optax that take nothing but a learning rate, or need nothing else."""
    found = {}
    for name, function in sorted(vars(optax).items()):
        if name.startswith("_") or not inspect.isfunction(function) or name in LEFT_OUT:
            continue
        parameters = inspect.signature(function).parameters.values()
        needed = [p.name for p in parameters if p.default is p.empty and p.kind < p.VAR_POSITIONAL]
        if needed == ["learning_rate"]:
            found[name] = function
    return found


SCHEDULES: tuple[Callable[[], Any], ...] = (
    lambda: 0.05,
    lambda: optax.cosine_decay_schedule(0.1, 6),
    lambda: optax.linear_schedule(0.1, 0.01, 3),
    lambda: optax.warmup_cosine_decay_schedule(0.0, 0.1, 2, 6),
)
WRAPPERS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("", lambda tx: tx),
    ("clip_by_global_norm", lambda tx: optax.chain(optax.clip_by_global_norm(1.0), tx)),
    ("add_decayed_weights", lambda tx: optax.chain(optax.add_decayed_weights(0.01), tx)),
    ("adaptive_grad_clip", lambda tx: optax.chain(optax.adaptive_grad_clip(0.1), tx)),
    ("MultiSteps", lambda tx: optax.MultiSteps(tx, 2).gradient_transformation()),
    ("ema", lambda tx: optax.chain(tx, optax.ema(0.9))),
    ("zero_nans", lambda tx: optax.chain(optax.zero_nans(), tx)),
    ("apply_if_finite", lambda tx: optax.apply_if_finite(tx, 2)),
)


def _optimizer(rng: random.Random) -> Call:
    """Parameters after some steps, as a function of the parameters and of all gradients."""
    name, function = rng.choice(list(optimizers().items()))
    schedule = rng.randrange(len(SCHEDULES))
    label, wrap = rng.choice(WRAPPERS)
    shapes = [rng.choice(((5,), (4, 6), (3, 2, 4), ())) for _ in range(2)]
    numbers = np.random.default_rng(rng.getrandbits(32))
    params = [numbers.standard_normal(shape).astype(np.float32) for shape in shapes]
    gradients = [_away_from_zero(numbers, (STEPS, *shape)) for shape in shapes]

    def trained(*arrays: Any) -> Any:
        tx = wrap(function(SCHEDULES[schedule]()))
        given, slopes = list(arrays[:2]), list(arrays[2:])

        def step(carry: Any, gradient: Any) -> Any:
            params, state = carry
            updates, state = tx.update(gradient, state, params)
            return (optax.apply_updates(params, updates), state), None

        return lax.scan(step, (given, tx.init(given)), slopes)[0][0]

    return Call(f"{name} {label} {schedule} {shapes}", trained, (*params, *gradients))


def _away_from_zero(numbers: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    signs = numbers.choice([-1.0, 1.0], shape)
    return (signs * numbers.uniform(0.2, 2, shape)).astype(np.float32)


# Networks ----------------------------------------------------------------------------------------

ACTIVATIONS = (
    "relu",
    "gelu",
    "silu",
    "tanh",
    "sigmoid",
    "softplus",
    "elu",
    "celu",
    "selu",
    "swish",
)


class Network(nn.Module):
    """Layers by their functions, then a head.

    Attributes:
        layers: functions that make layers, and apply them: x -> x of any rank above 1.
    """

    layers: tuple[Function, ...]
    classes: int = 3

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for layer in self.layers:
            x = layer(x)
        return nn.Dense(self.classes)(x.reshape(x.shape[0], -1))


def _layer(rng: random.Random, rank: int) -> tuple[str, Function]:
    """A layer that fits an input [batch, time, channels] or [batch, height, width, channels]."""
    width, act = rng.choice((4, 6, 8)), rng.choice(ACTIVATIONS)
    heads = rng.choice((1, 2))
    activation = getattr(nn, act)
    choices: list[tuple[str, Function]] = [
        (f"Dense {width} {act}", lambda x: activation(nn.Dense(width)(x))),
        ("LayerNorm", lambda x: nn.LayerNorm()(x)),
        ("RMSNorm", lambda x: nn.RMSNorm()(x)),
        ("GroupNorm", lambda x: nn.GroupNorm(_groups(x))(x)),
        ("residual", lambda x: x + activation(nn.Dense(x.shape[-1])(x))),
        ("WeightNorm", lambda x: nn.WeightNorm(nn.Dense(width))(x)),
        ("remat", lambda x: activation(nn.remat(nn.Dense)(width)(x))),
        ("roll", lambda x: jnp.concatenate([x, jnp.roll(x, 1, 1)], -1)),
        ("where", lambda x: jnp.where(x > 0.1, x, 0.3 * x)),
        ("cond", lambda x: lax.cond(jnp.sum(x) > 0, jnp.sin, jnp.cos, x)),
        ("softmax", lambda x: nn.softmax(x, -1)),
    ]
    window = (2,) * (rank - 2)
    same = (3,) * (rank - 2)
    choices += [
        (f"Conv {width}", lambda x: activation(nn.Conv(width, same)(x))),
        ("Conv strided", lambda x: nn.Conv(width, same, strides=2)(x)),
        ("Conv valid", lambda x: nn.Conv(width, (1,) * (rank - 2), use_bias=False)(x)),
        ("ConvTranspose", lambda x: nn.ConvTranspose(width, same)(x)),
        ("Conv grouped", lambda x: nn.Conv(width, same, feature_group_count=_groups(x))(x)),
        ("avg_pool", lambda x: nn.avg_pool(x, window, window, "SAME")),
        ("max_pool", lambda x: nn.max_pool(x, window, window, "SAME")),
    ]
    if rank == 3:
        choices += [
            ("attention", lambda x: nn.MultiHeadDotProductAttention(heads, qkv_features=4)(x, x)),
            ("GRU", lambda x: nn.RNN(nn.GRUCell(width))(x)),
            ("LSTM", lambda x: nn.RNN(nn.OptimizedLSTMCell(width), reverse=heads == 2)(x)),
            ("cumsum", lambda x: jnp.cumsum(x, 1) / x.shape[1]),
            ("einsum", lambda x: jnp.einsum("btc,bsc->bts", x, x) / x.shape[-1]),
            ("sort", lambda x: jnp.sort(x, 1)),
        ]
    return rng.choice(choices)


def _groups(x: Any) -> int:
    return 1 + (x.shape[-1] + 1) % 2


LOSSES: tuple[tuple[str, Function], ...] = (
    ("mean square", lambda y, labels: jnp.mean(optax.l2_loss(y, jnp.sin(jnp.ones_like(y))))),
    ("cross entropy", optax.softmax_cross_entropy_with_integer_labels),
    ("huber", lambda y, labels: optax.huber_loss(y, 0.5 * jnp.ones_like(y))),
    ("log cosh", lambda y, labels: optax.log_cosh(y)),
)


def _network(rng: random.Random) -> Call:
    """The loss, as a function of the input and of all parameters."""
    rank = rng.choice((3, 4))
    shape = (2, 5, 4) if rank == 3 else (2, 4, 4, 4)
    drawn = [_layer(rng, rank) for _ in range(rng.randint(1, 4))]
    label, loss_of = rng.choice(LOSSES)
    net = Network(tuple(layer for _, layer in drawn))
    numbers = np.random.default_rng(rng.getrandbits(32))
    x = numbers.standard_normal(shape).astype(np.float32)
    labels = numbers.integers(0, 3, 2).astype(np.int32)
    with jax.default_device(jax.devices("cpu")[0]):
        variables = jax.jit(net.init)(jax.random.key(rng.getrandbits(16)), x)
    leaves, tree = jax.tree.flatten(variables)

    def loss(x: Any, labels: Any, *params: Any) -> Any:
        return loss_of(net.apply(jax.tree.unflatten(tree, params), x), labels)

    text = " | ".join(["x".join(map(str, shape)), *(name for name, _ in drawn), label])
    return Call(text, loss, (x, labels, *map(np.asarray, leaves)))
