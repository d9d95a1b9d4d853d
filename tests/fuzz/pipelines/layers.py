"""What stages are made of: each layer keeps the shape of x, [samples, length, width].

A row is a function of a `Draw` that returns the layer's parameters and the function
`(parameters, x, flow) -> x`; `LAYERS` holds them by name, with how often they are drawn.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from tests.fuzz.programs.program import from_seed
from tests.fuzz.values import FLOATS

Apply = Callable[[Any, jax.Array, "Flow"], jax.Array]


@dataclass(frozen=True)
class Layer:
    """One layer that was drawn."""

    name: str
    seed: int


@dataclass(frozen=True)
class Shape:
    """The shapes of one model."""

    samples: int
    length: int
    width: int
    dtype: str


class Draw:
    """Draws one layer; layers do not depend on each other, so that some can be left out."""

    def __init__(self, seed: int, shape: Shape):
        self.rng = random.Random(f"layer {seed}")
        self.numbers = np.random.default_rng(seed)
        self.shape = shape

    @property
    def width(self) -> int:
        return self.shape.width

    @property
    def length(self) -> int:
        return self.shape.length

    @cached_property
    def activation(self) -> Callable[[Any], Any]:
        names = ("tanh", "relu", "gelu", "silu", "sigmoid", "softplus", "identity")
        return getattr(jax.nn, self.rng.choice(names))

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def choice(self, items: Sequence[Any]) -> Any:
        return self.rng.choice(items)

    def weights(self, *shape: int, scale: float | None = None) -> jax.Array:
        """Weights for matrix products along the axis before the last one."""
        size = shape[-2] ** -0.5 if len(shape) > 1 else 0.1
        values = self.numbers.normal(size=shape) * (size if scale is None else scale)
        return jnp.asarray(values, self.shape.dtype)

    def ones(self, *shape: int) -> jax.Array:
        return jnp.ones(shape, self.shape.dtype) + self.weights(*shape, scale=0.1)


@dataclass
class Flow:
    """What goes along with x from stage to stage."""

    aux: jax.Array
    key: jax.Array | None = None
    tokens: jax.Array | None = None  #: [samples, length], of integers
    state: jax.Array | None = None  #: [width], goes from micro-batch to micro-batch

    def next_key(self) -> jax.Array:
        if self.key is None:
            return jax.random.PRNGKey(7)
        self.key, own = jax.random.split(self.key)
        return own


#: All layers by name: the function that draws one, and how often.
LAYERS: dict[str, tuple[Callable[[Draw], tuple[Any, Apply]], float]] = {}


def layer(weight: float = 1.0) -> Callable[[Any], Any]:
    def register(draw: Any) -> Any:
        assert draw.__name__ not in LAYERS
        LAYERS[draw.__name__] = (draw, weight)
        return draw

    return register


@layer(3)
def dense(d: Draw) -> tuple[Any, Apply]:
    activation, has_bias = d.activation, d.chance(0.6)
    own = {"kernel": d.weights(d.width, d.width)}
    if has_bias:
        own["bias"] = d.weights(d.width)

    def apply(p: Any, x: jax.Array, _: Flow) -> jax.Array:
        y = x @ p["kernel"]
        return activation(y + p["bias"] if has_bias else y)

    return own, apply


@layer(2)
def residual(d: Draw) -> tuple[Any, Apply]:
    activation, inner = d.activation, d.choice((1, 2, 3)) * d.width
    gated = d.chance(0.3)
    own = [d.weights(d.width, inner), d.weights(inner, d.width), d.weights(d.width, inner)]

    def apply(p: Any, x: jax.Array, _: Flow) -> jax.Array:
        hidden = activation(x @ p[0])
        return x + (hidden * (x @ p[2]) if gated else hidden) @ p[1]

    return own if gated else own[:2], apply


@layer(2)
def norm(d: Draw) -> tuple[Any, Apply]:
    kind, wide = d.choice(("layer", "layer", "rms", "l2")), d.chance(0.5)

    def apply(p: Any, x: jax.Array, _: Flow) -> jax.Array:
        y = x.astype(jnp.float32) if wide else x
        if kind == "layer":
            y = jax.nn.standardize(y, axis=-1, epsilon=1e-2)
        elif kind == "rms":
            y = y * lax.rsqrt(jnp.mean(y**2, -1, keepdims=True) + 0.01)
        else:
            y = y / (jnp.linalg.norm(y + 0.01, axis=-1, keepdims=True) + 0.1)
        return y.astype(x.dtype) * p["scale"] + p["shift"]

    return {"scale": d.ones(d.width), "shift": d.weights(d.width)}, apply


@layer(1)
def batch_norm(d: Draw) -> tuple[Any, Apply]:
    """Keeps a mean if the model carries state; may use it, too."""
    uses = d.chance(0.4)

    def apply(p: Any, x: jax.Array, flow: Flow) -> jax.Array:
        wide = x.astype(jnp.float32)
        mean, variance = jnp.mean(wide, (0, 1)), jnp.var(wide, (0, 1))
        if flow.state is not None:
            used = flow.state if uses else mean
            flow.state = 0.75 * flow.state + 0.25 * lax.stop_gradient(mean)
            mean = used
        return ((wide - mean) * lax.rsqrt(variance + 0.1)).astype(x.dtype) * p

    return d.ones(d.width), apply


@layer(1)
def convolution(d: Draw) -> tuple[Any, Apply]:
    groups = d.choice((1, 1, d.width, 2))
    dilation, size = d.choice((1, 1, 2)), d.choice((1, 2, 3))
    own = d.weights(size, d.width // groups, d.width)

    def apply(p: Any, x: jax.Array, _: Flow) -> jax.Array:
        return lax.conv_general_dilated(
            x,
            p,
            (1,),
            "SAME",
            rhs_dilation=(dilation,),
            dimension_numbers=("NWC", "WIO", "NWC"),
            feature_group_count=groups,
        )

    return own, apply


@layer(2)
def attention(d: Draw) -> tuple[Any, Apply]:
    heads, causal, wide = d.choice((1, 2)), d.chance(0.5), d.chance(0.5)
    own = {name: d.weights(d.width, d.width) for name in ("q", "k", "v", "o")}

    def apply(p: Any, x: jax.Array, _: Flow) -> jax.Array:
        split = (*x.shape[:2], heads, d.width // heads)
        q, k, v = ((x @ p[name]).reshape(split) for name in ("q", "k", "v"))
        scores = jnp.einsum("bqhc,bkhc->bhqk", q, k) / np.sqrt(split[-1]).astype(x.dtype)
        if causal:
            mask = jnp.tril(jnp.ones((d.length, d.length), bool))
            scores = jnp.where(mask, scores, jnp.finfo(x.dtype).min)
        scores = jax.nn.softmax(scores.astype(jnp.float32) if wide else scores).astype(x.dtype)
        return x + jnp.einsum("bhqk,bkhc->bqhc", scores, v).reshape(x.shape) @ p["o"]

    return own, apply


@layer(1)
def embedding(d: Draw) -> tuple[Any, Apply]:
    """Rows of a table; by the largest element of x where there are no tokens."""

    def apply(p: Any, x: jax.Array, flow: Flow) -> jax.Array:
        tokens = jnp.argmax(x, -1) if flow.tokens is None else flow.tokens
        return x + (jnp.take(p, tokens, axis=0) if d.length % 2 else p[tokens])

    return d.weights(VOCABULARY, d.width), apply


#: Rows of embeddings; at least the largest width, which `embedding` may ask for.
VOCABULARY = 13


@layer(0.5)
def dropout(d: Draw) -> tuple[Any, Apply]:
    rate = d.choice((0.1, 0.25, 0.5))

    def apply(_: Any, x: jax.Array, flow: Flow) -> jax.Array:
        kept = jax.random.bernoulli(flow.next_key(), 1 - rate, x.shape)
        return jnp.where(kept, x / (1 - rate), 0).astype(x.dtype)

    return (), apply


@layer(1)
def experts(d: Draw) -> tuple[Any, Apply]:
    """A mixture of experts with an auxiliary loss."""
    number = d.choice((2, 3))
    own = {"gate": d.weights(d.width, number), "experts": d.weights(number, d.width, d.width)}

    def apply(p: Any, x: jax.Array, flow: Flow) -> jax.Array:
        gates = jax.nn.softmax((x @ p["gate"]).astype(jnp.float32))
        chosen = jax.nn.one_hot(jnp.argmax(gates, -1), number)
        flow.aux = flow.aux + number * jnp.sum(jnp.mean(gates, (0, 1)) * jnp.mean(chosen, (0, 1)))
        made = jnp.einsum("btw,ewv->btev", x, p["experts"])
        return x + jnp.einsum("btev,bte->btv", made, (gates * chosen).astype(x.dtype))

    return own, apply


@layer(1.5)
def scanned(d: Draw) -> tuple[Any, Apply]:
    """A scan over equal layers, perhaps with a checkpoint."""
    number, activation = d.choice((1, 2, 3, 4)), d.activation
    wrap = d.choice((lambda f: f, jax.checkpoint, _keeps_products, jax.jit))

    def apply(p: Any, x: jax.Array, _: Flow) -> jax.Array:
        body = wrap(lambda x, w: (x + 0.5 * activation(x @ w), None))
        return lax.scan(body, x, p)[0]

    return d.weights(number, d.width, d.width), apply


def _keeps_products(fun: Any) -> Any:
    return jax.checkpoint(fun, policy=jax.checkpoint_policies.dots_saveable)


@layer(1)
def branch(d: Draw) -> tuple[Any, Apply]:
    number = d.choice((2, 2, 3))
    by_tokens = d.chance(0.5)

    def apply(p: Any, x: jax.Array, flow: Flow) -> jax.Array:
        branches = [lambda x: jnp.tanh(x @ p), lambda x: x * 2, lambda x: x + p[0]][:number]
        if by_tokens and flow.tokens is not None:
            return lax.switch(flow.tokens[0, 0] % number, branches, x)
        # Away from 0, which rounding alone decides after a batch norm.
        return lax.cond(x.astype(jnp.float32).sum() > 0.25, *branches[:2], x)

    return d.weights(d.width, d.width), apply


@layer(0.7)
def loop(d: Draw) -> tuple[Any, Apply]:
    """A while loop whose turns depend on the data; it has no reverse derivative."""
    own = d.weights(d.width)

    def apply(p: Any, x: jax.Array, _: Flow) -> jax.Array:
        def halve(carried: Any) -> Any:
            return carried[0] / 2, carried[1] + 1

        start = (jnp.max(jnp.abs(lax.stop_gradient(x))), jnp.int32(0))
        _, turns = lax.while_loop(lambda c: (c[0] > 0.3) & (c[1] < 6), halve, start)
        return x + p * turns.astype(x.dtype) / 8

    return own, apply


@layer(0.7)
def repeated(d: Draw) -> tuple[Any, Apply]:
    turns = d.choice((1, 2, 3))

    def apply(p: Any, x: jax.Array, _: Flow) -> jax.Array:
        return lax.fori_loop(0, turns, lambda i, x: x + p * jnp.sin(x), x)

    return d.weights(d.width), apply


@layer(1)
def custom_derivative(d: Draw) -> tuple[Any, Apply]:
    limit, keeps = d.choice((0.01, 0.5)), d.chance(0.5)

    @jax.custom_vjp
    def clipped(x: jax.Array) -> jax.Array:
        return jnp.tanh(x)

    clipped.defvjp(
        lambda x: (jnp.tanh(x), x if keeps else None),
        lambda x, g: (jnp.clip(g if x is None else g * (1 - jnp.tanh(x) ** 2), -limit, limit),),
    )
    return d.weights(d.width), lambda p, x, _: clipped(x * p) + x


@layer(0.7)
def recurrent(d: Draw) -> tuple[Any, Apply]:
    """A gated recurrence along the length."""
    own = [d.weights(d.width, d.width) for _ in range(2)]
    backwards = d.chance(0.3)

    def apply(p: Any, x: jax.Array, _: Flow) -> jax.Array:
        def step(h: jax.Array, now: jax.Array) -> Any:
            gate = jax.nn.sigmoid(now @ p[0])
            h = gate * h + (1 - gate) * jnp.tanh(now @ p[1])
            return h, h

        along = jnp.swapaxes(x, 0, 1)
        return jnp.swapaxes(lax.scan(step, along[0] * 0, along, reverse=backwards)[1], 0, 1)

    return own, apply


@layer(1)
def moved(d: Draw) -> tuple[Any, Apply]:
    """Rolls, flips, pads, sorts and cumulative sums."""
    kinds: list[Callable[[jax.Array], jax.Array]] = [
        lambda x: jnp.roll(x, 1, 1),
        lambda x: jnp.concatenate([x[..., 1:], x[..., :1]], -1),
        lambda x: jnp.flip(x, -1),
        lambda x: jnp.pad(x, ((0, 0), (1, 0), (0, 0)))[:, :-1],
        lambda x: jnp.cumsum(x, 1) / 2,
        lambda x: jnp.sort(x, -1),
        lambda x: jnp.stack([x, -x]).max(0),
        lambda x: x.at[:, 0].add(1.0),
        lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2, 1), (1, 1, 1), "SAME") / 2,
    ]
    kind = d.choice(kinds)
    return (), lambda _, x, flow: x + kind(x).astype(x.dtype)


@layer(0.7)
def mapped(d: Draw) -> tuple[Any, Apply]:
    """A layer of its own for each position, by vmap."""

    def apply(p: Any, x: jax.Array, _: Flow) -> jax.Array:
        return jax.vmap(lambda w, row: jnp.tanh(row @ w), in_axes=(0, 1), out_axes=1)(p, x)

    return d.weights(d.length, d.width, d.width), apply


@layer(0.7)
def mixed_precision(d: Draw) -> tuple[Any, Apply]:
    narrow = d.choice(("float16", "float16", "bfloat16"))

    def apply(p: Any, x: jax.Array, _: Flow) -> jax.Array:
        made = jnp.matmul(x.astype(narrow), p.astype(narrow), preferred_element_type=jnp.float32)
        return jnp.tanh(made).astype(x.dtype)

    return d.weights(d.width, d.width), apply


@layer(0.3)
def observed(d: Draw) -> tuple[Any, Apply]:
    """The host sees a value."""

    def apply(p: Any, x: jax.Array, _: Flow) -> jax.Array:
        jax.debug.callback(lambda mean: None, jnp.mean(x))
        return x * p

    return d.ones(d.width), apply


@layer(1)
def random_program(d: Draw) -> tuple[Any, Apply]:
    """The loss of a random program of `tests.fuzz.programs`, of x and of constants."""
    drawn = from_seed(d.rng.randrange(100_000), "gradients")
    heads = ", ".join(f"a{k}" for k in range(len(drawn.arguments)))
    source = f"{drawn.source.rpartition(RETURN)[0]}{RETURN}loss({heads})\n"  # and no gradient of it
    function = replace(drawn, source=source).function
    first = next(k for k, a in enumerate(drawn.arguments) if a.dtype.name in FLOATS)

    def apply(p: Any, x: jax.Array, _: Flow) -> jax.Array:
        given = [jnp.asarray(a) for a in drawn.arguments]
        given[first] = given[first] * p[0].astype(given[first].dtype)
        given[first] = given[first] + jnp.mean(x).astype(given[first].dtype)
        score = jnp.tanh(function(*given).astype(jnp.float32) / 8)
        return x + (p[1] * jnp.nan_to_num(score)).astype(x.dtype)

    return d.ones(2), apply


#: Where a program's last line begins.
RETURN = "\n    return "
