"""`codelet_expression`: a function of scalars that runs on every element, as one step."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr

from ipujax.api.arguments import array, function
from ipujax.errors import ConfigError

WHERE = "codelet_expression"
#: Primitives that are not an elementwise expression.
CONTROL_FLOW = frozenset({"while", "scan", "cond", "pure_callback", "io_callback"})


def codelet_expression(fun: Callable[..., Any]) -> Callable[..., jax.Array]:
    """Turns a function of scalars into one of arrays: one `popops::map` over their elements.

    The compiler makes one step of it, which reads each element of the arguments once and keeps what
    it computes in between in registers. Derivatives are those of the function, and are fused in the
    same way.

    Args:
        fun: takes scalars and returns a scalar, by elementwise operations: arithmetic, `jnp.exp`,
            `jnp.where` ...
    Returns:
        a function of arrays that broadcast against each other.
    Raises:
        ConfigError: the function does not return a scalar, or has loops, branches or callbacks.

    Source: `custom_ops.codelet_expression_op` of Graphcore's TensorFlow.

    Example:
        >>> fused = ipu.codelet_expression(lambda x, y, z: x * x + y * z)
        >>> jax.jit(fused)(jnp.arange(3.0), jnp.ones(3), 2.0).tolist()
        [2.0, 3.0, 6.0]
    """
    function(WHERE, "its argument", fun)

    def checked(*scalars: Any) -> Any:
        return jax.tree.map(lambda x: array(WHERE, "the result", x), fun(*scalars))

    @functools.wraps(fun)
    def call(*args: Any) -> jax.Array:
        if not args:
            raise ConfigError(
                "[codelet_expression] needs an array; got none. Pass the function's arguments."
            )
        arrays = _broadcast([array(WHERE, f"argument {i}", x) for i, x in enumerate(args)])
        _check(checked, getattr(fun, "__name__", repr(fun)), arrays)
        return jnp.vectorize(checked)(*arrays)

    return call


def _broadcast(arrays: list[jax.Array]) -> list[jax.Array]:
    try:
        return jnp.broadcast_arrays(*arrays)
    except ValueError:
        shapes = ", ".join(str(list(x.shape)) for x in arrays)
        raise ConfigError(
            f"[{WHERE}] needs arrays that broadcast against each other; got shapes {shapes}. "
            "Reshape them."
        ) from None


def _check(fun: Callable[..., Any], name: str, arrays: list[jax.Array]) -> None:
    scalars = [jax.ShapeDtypeStruct((), x.dtype) for x in arrays]
    traced = jax.make_jaxpr(fun)(*scalars)
    shapes = [aval.shape for aval in traced.out_avals]
    if shapes != [()]:
        raise ConfigError(
            f"[codelet_expression] needs {name} to return one scalar; got results of shapes "
            f"{shapes}. Write it for one element."
        )
    refused = sorted(_primitives(traced.jaxpr) & CONTROL_FLOW)
    if refused:
        raise ConfigError(
            f"[codelet_expression] needs {name} to be one expression; got {', '.join(refused)}. "
            "Use jnp.where, or ipujax.tile.create_vertex for loops."
        )


def _primitives(jaxpr: Any) -> set[str]:
    found = set()
    for equation in jaxpr.eqns:
        found.add(equation.primitive.name)
        for value in jax.tree.leaves(equation.params, is_leaf=lambda x: hasattr(x, "eqns")):
            inner = getattr(value, "jaxpr", value)
            if isinstance(inner, Jaxpr):
                found |= _primitives(inner)
    return found
