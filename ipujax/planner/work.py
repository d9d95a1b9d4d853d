"""Estimates the arithmetic of an equation, only to decide where parts begin."""

from __future__ import annotations

import math
from typing import Any

from jax.extend.core import JaxprEqn

from ipujax import jax_compat

#: Primitives that make an equation a layer rather than glue between layers.
LAYERS = frozenset({"dot_general", "ragged_dot_general", "conv_general_dilated", "gather"})


def is_layer(eqn: JaxprEqn) -> bool:
    """Whether it is, or holds, a contraction or a look-up."""
    return jax_compat.holds(eqn, lambda inner: inner.primitive.name in LAYERS)


def work_of(eqn: JaxprEqn) -> float:
    """In operations on elements; loops without a known number of iterations count once."""
    bodies = [sum(map(work_of, body.eqns)) for body in jax_compat.inner_jaxprs(eqn)]
    if bodies:
        return max(bodies) * int(eqn.params.get("length", 1))
    elements = float(sum(_size(variable.aval) for variable in eqn.outvars))
    if eqn.primitive.name == "dot_general":
        (contracted, _), _ = eqn.params["dimension_numbers"]
        shape = eqn.invars[0].aval.shape
        return 2 * elements * math.prod(shape[axis] for axis in contracted)
    if eqn.primitive.name == "conv_general_dilated":
        kernel = eqn.invars[1].aval
        channels = kernel.shape[eqn.params["dimension_numbers"].rhs_spec[0]]
        return 2 * elements * _size(kernel) / max(1, channels)
    return elements


def _size(aval: Any) -> int:
    return math.prod(getattr(aval, "shape", ()))
