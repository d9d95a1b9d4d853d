"""Which layers and transforms a composition has."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from tests.fuzz.composed import own  # noqa: F401 (importing it registers its transforms)
from tests.fuzz.composed.draw import COLUMNS, ROWS, Draw, Function
from tests.fuzz.composed.layers import LAYERS
from tests.fuzz.composed.transforms import TRANSFORMS, Transform

#: Every how many programs is run without an outer jit.
EAGER = 16


@dataclass(frozen=True)
class Spec:
    """One composition.

    Attributes:
        layers: names with numbers, by which equal ones differ.
        transforms: the same, the innermost first.
    """

    seed: int
    layers: tuple[str, ...]
    transforms: tuple[str, ...]
    is_jitted: bool

    def __str__(self) -> str:
        """As an expression."""
        return repr(self)

    def function(self, platform: str, *, is_ours: bool, is_like_ours: bool = False) -> Function:
        layers = [
            (LAYERS[_key(name)].make(Draw(self.seed, name, platform, is_ours)))
            for name in self.layers
        ]

        def model(weights: Any, x: Any) -> Any:
            for layer, weight in zip(layers, weights, strict=True):
                x = layer(weight, x)
            return x

        made: Function = model
        for name in self.transforms:
            draw = Draw(self.seed, name, platform, is_ours, is_like_ours)
            made = _applied(name, made, draw)
        return made

    def arguments(self) -> tuple[list[Any], Any]:
        """Weights and x, as JAX's arrays where the program runs."""
        rng = np.random.default_rng(self.seed)
        weights = [
            jnp.asarray(rng.normal(size=shape) * 0.5, jnp.float32) if shape else ()
            for shape in (LAYERS[_key(name)].weight for name in self.layers)
        ]
        return weights, jnp.asarray(rng.normal(size=(ROWS, COLUMNS)), jnp.float32)

    @property
    def is_half(self) -> bool:
        return any(TRANSFORMS[_key(name)].is_half for name in self.transforms)

    @property
    def num_derivatives(self) -> int:
        return sum(TRANSFORMS[_key(name)].num_derivatives for name in self.transforms)


def _applied(name: str, fun: Function, d: Draw) -> Function:
    """The function transformed; now and then, of ours, as a closure over the weights."""
    row = TRANSFORMS[_key(name)]
    if not row.is_ours or row.num_derivatives or not d.chance(0.25):
        return row.apply(fun, d)

    def closed(w: Any, x: Any) -> Any:
        return row.apply(lambda _, x: fun(w, x), d.again())((), x)

    return closed


def _key(name: str) -> str:
    return name.rpartition("#")[0]


def _draw(rng: random.Random, names: Sequence[str], table: dict[str, Any], count: int) -> list[str]:
    return rng.choices(names, [table[name].often for name in names], k=count)


def from_seed(seed: int) -> Spec:
    """Equal seeds make equal compositions: pairs and triples of ours, with some of JAX's."""
    rng = random.Random(f"composed {seed}")
    ours = [name for name, row in TRANSFORMS.items() if row.is_ours]
    others = [name for name, row in TRANSFORMS.items() if not row.is_ours]
    chosen = _draw(rng, ours, TRANSFORMS, rng.choice((1, 2, 2, 3)))
    chosen += _draw(rng, others, TRANSFORMS, rng.choice((1, 1, 2)))
    rng.shuffle(chosen)
    layers = _draw(rng, list(LAYERS), LAYERS, rng.choice((1, 1, 2, 3)))
    kept = _possible(layers, chosen)
    return Spec(
        seed,
        tuple(f"{name}#{i}" for i, name in enumerate(_possible_layers(layers, kept))),
        tuple(f"{name}#{i}" for i, name in enumerate(kept)),
        rng.randrange(EAGER) != 0,
    )


def _possible(layers: Sequence[str], transforms: Sequence[str]) -> list[str]:
    """Without what JAX itself or a test of its own refuses, and with at most two derivatives."""
    kept: list[Transform] = []
    names: list[str] = []
    for name in transforms:
        row = TRANSFORMS[name]
        others = [row, *kept]
        is_backward = any(LAYERS[layer].is_backward for layer in layers)
        is_backward |= any(other.is_backward for other in kept)
        if row.is_forward and is_backward:
            continue
        if sum(other.num_derivatives for other in others) > 2:
            continue
        if max(sum(o.is_over_devices for o in others), sum(o.is_pipeline for o in others)) > 1:
            continue
        kept.append(row)
        names.append(name)
    return names


def _possible_layers(layers: Sequence[str], transforms: Sequence[str]) -> list[str]:
    """Without those that have no second derivatives, where these are taken."""
    is_twice = any(TRANSFORMS[name].num_derivatives for name in transforms)
    return [name for name in layers if not (is_twice and LAYERS[name].is_once)] or ["dense"]
