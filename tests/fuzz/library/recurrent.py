"""Layers of recurrent cells as loops over time and units."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

import ipujax as ipu
from tests.fuzz.library.case import Case, Draw, Numbers, generator, normal

ACTIVATIONS = {
    "tanh": jnp.tanh,
    "sigmoid": lambda x: 1 / (1 + jnp.exp(-x)),
    "hard_sigmoid": lambda x: jnp.where(abs(x) < 2.5, 0.2 * x + 0.5, (x > 0) * 1.0),
    "relu": lambda x: jnp.where(x > 0, x, 0),
}


def _options(d: Draw, units: tuple[str, ...]) -> dict[str, Any]:
    return {
        "activation": d.one("tanh", "tanh", *ACTIVATIONS),
        "recurrent_activation": d.one("sigmoid", "sigmoid", "hard_sigmoid", "tanh"),
        "cell_order": tuple(d.rng.sample(units, len(units))),
        "recompute": d.chance(0.3),
    }


def _sizes(d: Draw) -> tuple[int, int, int, int]:
    """Steps, batch, in, out."""
    steps = 0 if d.chance(0.03) else d.integer(1, 6)
    return steps, d.integer(1, 4), d.integer(1, 6), d.integer(1, 6)


@generator("nn.lstm")
def lstm(d: Draw) -> Case:
    units = ("forget", "input", "candidate", "output")
    options, (steps, batch, num_in, size) = _options(d, units), _sizes(d)
    dtype, limited, with_state = d.dtype(), d.chance(0.4), d.chance(0.6)
    options["precompute_inputs"] = d.chance(0.5)

    def draw(numbers: Numbers) -> Any:
        shapes = [(steps, batch, num_in), (4, num_in, size), (4, size, size), (4, size)]
        shapes += [(batch, size)] * (2 * with_state)
        lengths = numbers.integers(0, steps + 1, batch).astype(np.int32)
        arrays = [normal(numbers, shape, dtype, 0.6) for shape in shapes]
        return (*arrays, *([lengths] if limited else []))

    def function(x: Any, w: Any, u: Any, b: Any, *rest: Any) -> Any:
        state = ipu.nn.LSTMState(*rest[:2]) if with_state else None
        lengths = rest[-1] if limited else None
        return ipu.nn.lstm(x, ipu.nn.LSTMWeights(w, u, b), state, lengths=lengths, **options)

    def reference(x: Any, w: Any, u: Any, b: Any, *rest: Any) -> Any:
        h, c = rest[:2] if with_state else (jnp.zeros((batch, size)),) * 2
        at = {unit: options["cell_order"].index(unit) for unit in units}
        gate = ACTIVATIONS[options["recurrent_activation"]]
        activation = ACTIVATIONS[options["activation"]]

        def step(state: Any, given: Any) -> Any:
            (h, c), (t, x) = state, given
            sums = {unit: x @ w[k] + h @ u[k] + b[k] for unit, k in at.items()}
            new = gate(sums["forget"]) * c + gate(sums["input"]) * activation(sums["candidate"])
            out = gate(sums["output"]) * activation(new)
            runs = (t < rest[-1])[:, None] if limited else jnp.ones((batch, 1), bool)
            state = jnp.where(runs, out, h), jnp.where(runs, new, c)
            return state, jnp.where(runs, out, 0)

        state, outputs = lax.scan(step, (h, c), (jnp.arange(steps), x))
        return outputs, state

    return Case(
        function,
        reference,
        draw,
        smooth=tuple(range(4 + 2 * with_state)),
        factor=4,
        text=f"{options}, lengths={limited}",
    )


def _call_gru(name: str, x: Any, weights: Any, rest: list[Any], options: dict[str, Any]) -> Any:
    state, attention, lengths = rest
    if name == "nn.augru":
        return ipu.nn.augru(x, attention, weights, state, lengths=lengths, **options)
    if name == "nn.dynamic_gru":
        return ipu.nn.dynamic_gru(x, lengths, weights, state, **options)
    return ipu.nn.gru(x, weights, state, **options)


@generator("nn.gru", "nn.dynamic_gru", "nn.augru")
def gru(d: Draw, name: str) -> Case:
    units = ("reset", "update", "candidate")
    options, (steps, batch, num_in, size) = _options(d, units), _sizes(d)
    dtype, after, with_state = d.dtype(), d.chance(0.5), d.chance(0.6)
    options["reset_after"] = after
    attends = name == "nn.augru"
    limited = name == "nn.dynamic_gru" or (attends and d.chance(0.5))

    def draw(numbers: Numbers) -> Any:
        shapes = [(steps, batch, num_in), (3, num_in, size), (3, size, size)]
        shapes += [(3, 2, size) if after else (3, size)] + [(batch, size)] * with_state
        arrays = [normal(numbers, shape, dtype, 0.6) for shape in shapes]
        if attends:
            arrays.append(numbers.random((batch, steps)).astype(dtype))
        lengths = numbers.integers(0, steps + 1, batch).astype(np.int32)
        return (*arrays, *([lengths] if limited else []))

    def split(rest: Any) -> list[Any]:
        """State, attention and lengths, None for those that are absent."""
        given = iter(rest)
        return [next(given) if there else None for there in (with_state, attends, limited)]

    def function(x: Any, w: Any, u: Any, b: Any, *rest: Any) -> Any:
        return _call_gru(name, x, ipu.nn.GRUWeights(w, u, b), split(rest), options)

    def reference(x: Any, w: Any, u: Any, b: Any, *rest: Any) -> Any:
        state, attention, lengths = split(rest)
        h = jnp.zeros((batch, size)) if state is None else state
        r, z, n = (options["cell_order"].index(unit) for unit in units)
        gate = ACTIVATIONS[options["recurrent_activation"]]
        activation = ACTIVATIONS[options["activation"]]
        first = b[:, 0] if after else b
        second = b[:, 1] if after else jnp.zeros_like(b)

        def step(h: Any, given: Any) -> Any:
            t, x, *shares = given
            reset, update = (gate(x @ w[k] + first[k] + h @ u[k] + second[k]) for k in (r, z))
            inner = reset * (h @ u[n] + second[n]) if after else (reset * h) @ u[n]
            candidate = activation(x @ w[n] + first[n] + inner)
            for share in shares:
                update = update * (1 - share[:, None])
            out = update * h + (1 - update) * candidate
            runs = (t < lengths)[:, None] if limited else jnp.ones((batch, 1), bool)
            return jnp.where(runs, out, h), jnp.where(runs, out, 0)

        shares = [attention.T] if attends else []
        h, outputs = lax.scan(step, h, (jnp.arange(steps), x, *shares))
        return outputs, h

    return Case(
        function,
        reference,
        draw,
        smooth=tuple(range(4 + with_state + attends)),
        factor=4,
        text=f"{options}, lengths={limited}",
    )
