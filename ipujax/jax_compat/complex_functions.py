"""Complex functions that jaxlib would expand with premature overflow or cancellation.

A composite's name says which StableHLO op the compiler reads in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.core import Primitive
from jax.interpreters import mlir

from ipujax.jax_compat.platform import PLATFORM

#: Prefix of a StableHLO op's name, for a composite of one complex operand that stands for the op.
COMPLEX_PREFIX = "ipu.complex."


def lower_complex_functions() -> None:
    """Keeps some functions as ops and scales integer powers, only for complex numbers."""
    from jax._src.interpreters import mlir as private_mlir
    from jax._src.lax import lax as private_lax

    for primitive, name in (
        (private_lax.sin_p, "sine"),
        (private_lax.cos_p, "cosine"),
        (private_lax.logistic_p, "logistic"),
    ):
        written_out = private_mlir._lowerings[primitive].rule
        mlir.register_lowering(primitive, _kept(name, written_out), platform=PLATFORM)
    for primitive, near_pole in (
        (private_lax.atan_p, _atan_near_pole),
        (private_lax.atanh_p, _atanh_near_pole),
        (private_lax.log1p_p, _log1p_near_pole),
    ):
        written_out = private_mlir._lowerings[primitive].rule
        rule = _mended(str(primitive), written_out, near_pole)
        mlir.register_lowering(primitive, rule, platform=PLATFORM)
    power = private_lax.integer_pow_p
    unscaled = private_mlir._lowerings[power].rule

    def lower_power(ctx: Any, x: Any, *, y: int) -> Sequence[Any]:
        if not _is_complex(ctx) or y in (0, 1, -1):
            return unscaled(ctx, x, y=y)
        return mlir.lower_fun(_power, multiple_results=False)(ctx, x, y=y)

    mlir.register_lowering(power, lower_power, platform=PLATFORM)


def _is_complex(ctx: Any) -> bool:
    return bool(jnp.issubdtype(ctx.avals_in[0].dtype, jnp.complexfloating))


def _kept(name: str, written_out: Callable[..., Any]) -> Callable[..., Any]:
    primitive = Primitive(f"{name}_written_out")
    primitive.def_abstract_eval(lambda x: x)
    mlir.register_lowering(primitive, lambda ctx, x: written_out(ctx, x, accuracy=None))
    composite = mlir.lower_fun(
        lax.composite(primitive.bind, COMPLEX_PREFIX + name), multiple_results=False
    )

    def lower(ctx: Any, x: Any, *, accuracy: Any) -> Any:
        # For several platforms at once JAX's composites lack the argument for the platform.
        kept = _is_complex(ctx) and len(ctx.module_context.platforms) == 1
        return composite(ctx, x) if kept else written_out(ctx, x, accuracy=accuracy)

    return lower


def _mended(
    name: str, written_out: Callable[..., Any], near_pole: Callable[[Any, Any], Any]
) -> Callable[..., Any]:
    """Lowers with another formula where jaxlib's squares a distance that is too small."""
    primitive = Primitive(f"{name}_written_out")
    primitive.def_abstract_eval(lambda x, **how: x)
    mlir.register_lowering(primitive, lambda ctx, x, **how: written_out(ctx, x, **how))

    def lower(ctx: Any, x: Any, **how: Any) -> Any:
        if not _is_complex(ctx):
            return written_out(ctx, x, **how)
        mended = lambda z: near_pole(z, primitive.bind(z, **how))  # noqa: E731
        return mlir.lower_fun(mended, multiple_results=False)(ctx, x)

    return lower


def _half_log_of_2_over(distance: Any) -> Any:
    return (np.log(2.0).astype(distance.dtype) - jnp.log(distance)) / 2


def _is_small(distance: Any) -> Any:
    return (distance > 0) & (distance < np.sqrt(np.finfo(distance.dtype).tiny) * 2**20)


def _atan_near_pole(z: Any, written_out: Any) -> Any:
    distance = jnp.abs(z.real)
    large = jnp.copysign(_half_log_of_2_over(distance), z.imag)
    near = (jnp.abs(z.imag) == 1) & _is_small(distance)
    return lax.complex(written_out.real, jnp.where(near, large, written_out.imag))


def _atanh_near_pole(z: Any, written_out: Any) -> Any:
    distance = jnp.abs(z.imag)
    large = jnp.copysign(_half_log_of_2_over(distance), z.real)
    near = (jnp.abs(z.real) == 1) & _is_small(distance)
    return lax.complex(jnp.where(near, large, written_out.real), written_out.imag)


def _log1p_near_pole(z: Any, written_out: Any) -> Any:
    distance = jnp.abs(z.imag)
    near = (z.real == -1) & _is_small(distance)
    return lax.complex(jnp.where(near, jnp.log(distance), written_out.real), written_out.imag)


def _power(z: Any, y: int) -> Any:
    """By repeated squaring, with a separate power of two so that no step leaves the range."""
    if y == 2:
        return lax.square(z)
    base, exponent = _normalised(z, 0)
    power, shift = None, 0
    n = abs(y)
    while True:
        if n & 1:
            shift = shift + exponent
            power, shift = (base, shift) if power is None else _normalised(power * base, shift)
        n >>= 1
        if n == 0:
            break
        base, exponent = _normalised(base * base, 2 * exponent)
    assert power is not None
    if y < 0:
        power, shift = 1 / power, -shift
    limit = 4 * np.finfo(z.real.dtype).maxexp  # beyond it, the result is 0 or infinite
    return _shifted(power, jnp.clip(shift, -limit, limit))


def _normalised(z: Any, exponent: Any) -> tuple[Any, Any]:
    """z scaled by a power of two so that its larger part is in [0.5, 1), and the new exponent."""
    _, own = jnp.frexp(jnp.maximum(jnp.abs(z.real), jnp.abs(z.imag)))
    return _shifted(z, -own), exponent + own


def _shifted(z: Any, exponent: Any) -> Any:
    return lax.complex(jnp.ldexp(z.real, exponent), jnp.ldexp(z.imag, exponent))
