"""8-bit floats, as on a C600: casts, storage, and products with half results."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ipujax.api.arguments import array, dtype_name, flag, whole_number
from ipujax.errors import ConfigError
from ipujax.ops.definition import Op
from ipujax.types import Float8Format

#: JAX's dtype and the largest number of each format. Both have one NaN, no infinity and no -0.
_FORMATS = {
    "F143": (jnp.float8_e4m3fnuz, 240.0),
    "F152": (jnp.float8_e5m2fnuz, 57344.0),
}
_SCALES = range(-32, 32)
_NAN = 0x80


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Float8:
    """An array of 8-bit floats: the values of the bits, times 2**scale.

    A pytree with one leaf, the bits, which take one byte on the tiles and in memory.

    Args:
        bits: uint8, of the array's shape.
        format: "F143" (4 bits of exponent, 3 of fraction) or "F152".
        scale: -32 to 31.

    Source: Noune et al., arXiv:2206.02915; `poplar::QuarterMetadata`.
    """

    bits: jax.Array
    format: Float8Format = field(metadata={"static": True})
    scale: int = field(metadata={"static": True})

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return tuple(self.bits.shape)


def cast_to_float8(x: Any, format: Float8Format = "F143", scale: int = 0) -> Float8:
    """x / 2**scale, rounded to the nearest 8-bit float, ties to even.

    Values that are too large become the largest number; NaN and infinities become NaN. Not
    differentiable: see `jax.custom_vjp` for gradients that pass through.

    Args:
        x: float16 or float32.
        format: "F143" for numbers up to 240, "F152" for numbers up to 57344, times 2**scale.
        scale: -32 to 31.
    Returns:
        a `Float8` of x's shape.
    Raises:
        ConfigError: an invalid dtype, format or scale.

    Source: `popops::cast` to QUARTER with metadata; `poplar::QuarterMetadata`.

    Example:
        >>> x = jnp.array([0.3, 1000.0])
        >>> ipu.ops.cast_from_float8(ipu.ops.cast_to_float8(x, scale=3)).tolist()
        [0.3125, 1024.0]
    """
    x = array("ipu.ops.cast_to_float8", "x", x)
    if x.dtype not in (jnp.float16, jnp.float32):
        raise ConfigError(
            f"[ipu.ops.cast_to_float8] needs float16 or float32; got {x.dtype} {list(x.shape)}. "
            "Cast it."
        )
    if not isinstance(format, str) or format not in _FORMATS:
        raise ConfigError(
            f"[ipu.ops.cast_to_float8] needs a format of {', '.join(_FORMATS)}; got {format!r}. "
            "Use one of these names."
        )
    exponent = whole_number(scale)
    if exponent is None or exponent not in _SCALES:
        raise ConfigError(
            f"[ipu.ops.cast_to_float8] needs a scale from -32 to 31; got {scale!r}. Pass the "
            "exponent of a power of two."
        )
    bits = _TO_FLOAT8(lax.stop_gradient(x), format=format, scale=exponent)
    return Float8(bits, format, exponent)


def _plain_to(x: jax.Array, *, format: str, scale: int) -> jax.Array:
    dtype, largest = _FORMATS[format]
    wide = x.astype(jnp.float32) * jnp.float32(2.0**-scale)
    finite = jnp.where(jnp.isfinite(x), wide, 0)  # so that no exception is raised for others
    bits = lax.bitcast_convert_type(jnp.clip(finite, -largest, largest).astype(dtype), jnp.uint8)
    return jnp.where(jnp.isfinite(x), bits, jnp.uint8(_NAN))


_TO_FLOAT8 = Op("cast_to_float8", _plain_to, dimensions="... -> ...")


def cast_from_float8(x: Float8, dtype: Any = jnp.float32) -> jax.Array:
    """The numbers of a `Float8`.

    Args:
        x: of any shape.
        dtype: float32, which holds all of them, or float16.
    Returns:
        an array of x's shape.
    Raises:
        ConfigError: x is not a `Float8`, or the dtype is invalid.

    Source: `popops::cast` from QUARTER.

    Example:
        >>> ipu.ops.cast_from_float8(ipu.ops.cast_to_float8(jnp.array([1.1]))).tolist()
        [1.125]
    """
    _check("cast_from_float8", x, dtype)
    name = jnp.dtype(dtype).name
    numbers: jax.Array = _FROM_FLOAT8(x.bits, format=x.format, scale=x.scale, dtype=name)
    return numbers


def _plain_from(bits: jax.Array, *, format: str, scale: int, dtype: str) -> jax.Array:
    return (_numbers(bits, format) * jnp.float32(2.0**scale)).astype(dtype)


def _numbers(bits: jax.Array, format: str) -> jax.Array:
    return lax.bitcast_convert_type(bits, _FORMATS[format][0]).astype(jnp.float32)


_FROM_FLOAT8 = Op("cast_from_float8", _plain_from, dimensions="... -> ...")


def _check(where: str, x: Any, dtype: Any) -> None:
    if not isinstance(x, Float8):
        raise ConfigError(
            f"[ipu.ops.{where}] needs a Float8; got {type(x).__name__}. Use ipu.ops.cast_to_float8."
        )
    bits_dtype = getattr(x.bits, "dtype", type(x.bits).__name__)
    is_format = isinstance(x.format, str) and x.format in _FORMATS
    if not is_format or x.scale not in _SCALES or bits_dtype != jnp.uint8:
        raise ConfigError(
            f"[ipu.ops.{where}] needs a Float8 with bits of uint8, a format of "
            f"{', '.join(_FORMATS)} and a scale from -32 to 31; got {bits_dtype}, {x.format!r} "
            f"and {x.scale!r}. Use ipu.ops.cast_to_float8."
        )
    name = dtype_name(dtype)
    if name not in ("float16", "float32"):
        raise ConfigError(
            f"[ipu.ops.{where}] needs float16 or float32 as dtype; got {name}. Cast the result."
        )


def _plain(
    a: jax.Array, b: jax.Array, *, formats: tuple[str, str], dtype: str, emulate: bool
) -> jax.Array:
    halves = [
        _numbers(bits, name).astype(jnp.float16)  # which hold all of them
        for bits, name in zip((a, b), formats, strict=True)
    ]
    return jnp.matmul(*halves, preferred_element_type=jnp.float32).astype(dtype)


_MATMUL = Op("float8_matmul", _plain, dimensions="...MK, ...KN -> ...MN")


def float8_matmul(
    a: Float8, b: Float8, dtype: Any = jnp.float16, *, emulate: bool = False
) -> jax.Array:
    """The matrix product of 8-bit floats, summed in float32.

    On a C600 it is planned as in PopLibs: 128 multiplications per cycle and tile, twice as many as
    for float16. Partial sums are moved as float16, but the IPU Model does not round them.

    Args:
        a: [..., m, k].
        b: [..., k, n], with the same leading dimensions; its format may differ.
        dtype: of the result, float16 or float32.
        emulate: cast to float16 and multiply these, for IPUs without 8-bit instructions.
    Returns:
        [..., m, n].
    Raises:
        ConfigError: wrong arrays or shapes.
        UnsupportedDtypeError: compiled for a GC200 or Bow without `emulate`.

    Source: `poplin::matMul` of QUARTER; PopLibs has vertices for it only on IPU21, a C600.

    Example:
        >>> a = ipu.ops.cast_to_float8(jnp.eye(2))
        >>> ipu.ops.float8_matmul(a, a, emulate=True).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    _check("float8_matmul", a, dtype)
    _check("float8_matmul", b, dtype)
    fits = len(a.shape) >= 2 and len(b.shape) == len(a.shape) and a.shape[:-2] == b.shape[:-2]
    if not fits or a.shape[-1] != b.shape[-2]:
        raise ConfigError(
            f"[ipu.ops.float8_matmul] needs a [..., m, k] and b [..., k, n]; got {list(a.shape)} "
            f"and {list(b.shape)}. Reshape the bits."
        )
    scale = a.scale + b.scale
    direct = jnp.dtype(dtype if scale == 0 else jnp.float32).name
    formats = (a.format, b.format)
    emulated = flag("ipu.ops.float8_matmul", "emulate", emulate)
    product = _MATMUL(a.bits, b.bits, formats=formats, dtype=direct, emulate=emulated)
    return product if scale == 0 else (product * jnp.float32(2.0**scale)).astype(dtype)
