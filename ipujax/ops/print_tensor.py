"""`print_tensor`: prints an array's elements to standard error while the program runs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from ipujax.api.arguments import array, flag
from ipujax.ops.definition import Op

_WHERE = "ipu.ops.print_tensor"


def _plain(x: jax.Array, *, title: str, gradient_title: str) -> jax.Array:
    jax.debug.callback(_write, x, title=title)
    return x


def _write(x: Any, title: str) -> None:
    import sys

    print(f"{title}: {x}", file=sys.stderr)


def _vjp(
    operands: Any, results: Any, cotangents: Any, title: str, gradient_title: str
) -> tuple[Any]:
    (cotangent,) = cotangents
    if not gradient_title:
        return (cotangent,)
    return (_PRINT(cotangent, title=gradient_title, gradient_title=""),)


_PRINT = Op("print_tensor", _plain, dimensions="... -> ...", vjp=_vjp)


def print_tensor(x: Any, title: str = "", print_gradient: bool = False) -> jax.Array:
    """Returns the array; when the program runs, its elements are written to standard error.

    Use the result: an array that nothing uses is not printed. For a sharded array, each device
    prints its block; under `jax.vmap` the whole batch is printed at once.

    Args:
        x: any array; the real and the imaginary parts of complex numbers are printed one after the
            other.
        title: written before the elements.
        print_gradient: also print the array's gradient, with the title "gradient of ...".
    Returns:
        x.

    Source: `ipu_print_tensor` of PopTorch, `poplar::program::PrintTensor`.

    Example:
        >>> jax.jit(lambda x: ipu.ops.print_tensor(x, "x") + 1)(jnp.zeros(2)).tolist()
        [1.0, 1.0]
    """
    x = array(_WHERE, "x", x)
    prints = flag(_WHERE, "print_gradient", print_gradient)
    if jnp.iscomplexobj(x):
        return jax.lax.complex(
            _printed(x.real, f"{title} (real)", prints), _printed(x.imag, f"{title} (imag)", prints)
        )
    return _printed(x, str(title), prints)


def _printed(x: jax.Array, title: str, prints_gradient: bool) -> jax.Array:
    of_gradient = f"gradient of {title}" if prints_gradient else ""
    return _PRINT(x, title=title, gradient_title=of_gradient)
