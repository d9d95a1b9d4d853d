"""Elementwise functions, softmax, and those that return what they get."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import erf

import ipujax as ipu
from tests.fuzz.library.case import Case, Draw, Numbers, generator, normal


def _gelu(x: Any, *, approximate: bool) -> Any:
    if approximate:
        return 0.5 * x * (1 + jnp.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x * x * x)))
    return 0.5 * x * (1 + erf(x / np.sqrt(2)))


#: name -> options that may be drawn, the formula
FORMULAS: dict[str, Any] = {
    "gelu": ({"approximate": (True, False)}, _gelu),
    "hard_sigmoid": ({}, lambda x: jnp.where(abs(x) < 2.5, 0.2 * x + 0.5, (x > 0) * 1.0)),
    "swish": ({}, lambda x: x / (1 + jnp.exp(-x))),
    "relu": ({}, lambda x: jnp.where(x > 0, x, 0)),
    "leaky_relu": ({"alpha": (0.01, 0.25, 0.0)}, lambda x, alpha: jnp.where(x < 0, alpha * x, x)),
    "elu": (
        {"alpha": (1.0, 0.5)},
        lambda x, alpha: jnp.where(x > 0, x, alpha * (jnp.exp(jnp.minimum(x, 0)) - 1)),
    ),
}


@generator(*(f"nn.{name}" for name in FORMULAS))
def activation(d: Draw, name: str) -> Case:
    choices, formula = FORMULAS[name.removeprefix("nn.")]
    options = {key: d.one(*values) for key, values in choices.items()}
    shape, dtype = d.shape(0, 4), d.dtype()
    on_edges = dtype == np.float32 and d.chance(0.2)  # 0 and 2.5 among others

    def draw(numbers: Numbers) -> Any:
        x = normal(numbers, shape, np.float32, 2)
        x = np.where(abs(abs(x) - 2.5) < 0.1, 1, x)  # where rounding decides on which side it is
        return ((np.round(2 * x) / 2 if on_edges and name != "nn.elu" else x).astype(dtype),)

    function = getattr(ipu.nn, name.removeprefix("nn."))
    return Case(
        lambda x: function(x, **options),
        lambda x: formula(x, **options),
        draw,
        text=f"{options}",
        factor=2,
    )


@generator("nn.softmax", "nn.log_softmax")
def softmax(d: Draw, name: str) -> Case:
    shape, dtype = d.shape(1, 4), d.dtype()
    axis = d.integer(-len(shape), len(shape) - 1)
    kind = d.one("plain", "stable", "scaled") if name == "nn.softmax" else ""

    def reference(x: Any) -> Any:
        powers = jnp.exp(x)
        if name == "nn.log_softmax":
            return x - jnp.log(jnp.sum(powers, axis, keepdims=True))
        return powers / jnp.sum(powers, axis, keepdims=True) * (16384 if kind == "scaled" else 1)

    def function(x: Any) -> Any:
        if name == "nn.log_softmax":
            return ipu.nn.log_softmax(x, axis=axis)
        return ipu.nn.softmax(x, axis=axis, kind=kind)

    # The loss squares results of up to 16384.
    return Case(
        function,
        reference,
        lambda numbers: (normal(numbers, shape, dtype),),
        order=2 if kind != "scaled" else 0,
        factor=2,
        text=f"axis={axis}, {kind}",
    )


@generator("ops.nop", "ops.print_tensor", "ops.identity_loss")
def identity(d: Draw, name: str) -> Case:
    shape, dtype = d.shape(0, 3, 60), d.dtype()
    reduction = d.one("sum", "mean", "none")
    show = d.chance(0.5)
    reductions = {
        "sum": jnp.sum,
        "mean": lambda x: jnp.sum(x) / x.size if x.size else jnp.nan * jnp.sum(x),
        "none": lambda x: x,
    }
    functions = {
        "ops.nop": (ipu.ops.nop, lambda x: x),
        "ops.print_tensor": (lambda x: ipu.ops.print_tensor(x, "x", show), lambda x: x),
        "ops.identity_loss": (
            lambda x: ipu.ops.identity_loss(x, reduction),
            reductions[reduction],
        ),
    }
    function, reference = functions[name]
    draw = lambda numbers: (normal(numbers, shape, dtype),)  # noqa: E731
    return Case(function, reference, draw, text=f"reduction={reduction}, print_gradient={show}")
