"""Checks and converts arguments: Python, NumPy or JAX numbers, flags, and arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ipujax import jax_compat
from ipujax.errors import ConfigError

jax_compat.hide_frames(__file__)

_LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
Arrays = TypeVar("Arrays", bound=NamedTuple)


#: Sizes, counts and axes are int32 on an IPU.
LARGEST_INT32 = 2**31 - 1


def whole_number(value: Any) -> int | None:
    """A Python, NumPy or JAX integer as an int; None for anything else, including a bool."""
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def count(where: str, name: str, value: Any, least: int = 1) -> int:
    """A whole number that int32 holds.

    Raises:
        ConfigError: it is not one, or is below `least`.
    """
    number = whole_number(value)
    if number is None or not least <= number <= LARGEST_INT32:
        bound = (
            "at most 2**31 - 1" if number is not None and number > least else f"at least {least}"
        )
        raise ConfigError(
            f"[{where}] needs {name} to be a whole number of {bound}; got {value!r}. Pass such a "
            "number."
        )
    return number


def flag(where: str, name: str, value: Any) -> bool:
    """A Python, NumPy or JAX bool, or 0 or 1, as a Python bool.

    Raises:
        ConfigError: it is something else, such as a string, an array or a traced value.
    """
    if not isinstance(value, jax.core.Tracer):
        if isinstance(value, bool | np.bool_):
            return bool(value)
        if isinstance(value, np.ndarray | jax.Array) and not value.ndim and value.dtype == bool:
            return bool(value)
        number = whole_number(value)
        if number in (0, 1):
            return bool(number)
    raise ConfigError(
        f"[{where}] needs {name} to be True or False; got {value!r}. Pass one of these."
    )


def function(where: str, name: str, value: Any) -> Any:
    """The function, unchanged.

    Raises:
        ConfigError: it cannot be called.
    """
    if not callable(value):
        raise ConfigError(f"[{where}] needs {name} to be a function; got {value!r}. Pass one.")
    return value


def text(where: str, name: str, value: Any) -> str:
    """The string, unchanged.

    Raises:
        ConfigError: it is of another type.
    """
    if not isinstance(value, str):
        raise ConfigError(f"[{where}] needs {name} to be a text; got {value!r}. Pass a str.")
    return value


def texts(where: str, name: str, values: Any) -> tuple[str, ...]:
    """Several strings.

    Raises:
        ConfigError: it is a single string, or one is of another type.
    """
    found = () if isinstance(values, str | bytes) or not isinstance(values, Iterable) else values
    given = tuple(found)
    if (found is not values) or not all(isinstance(value, str) for value in given):
        raise ConfigError(
            f"[{where}] needs {name} to be a list of texts; got {values!r}. Pass a list of str."
        )
    return given


def whole_numbers(where: str, name: str, values: Any) -> list[int]:
    """Several different whole numbers.

    Raises:
        ConfigError: one is not a whole number, or occurs twice.
    """
    is_list = isinstance(values, Iterable) and not isinstance(values, str | bytes | jax.core.Tracer)
    numbers = [whole_number(value) for value in values] if is_list else [None]
    found = [number for number in numbers if number is not None]
    if len(found) < len(numbers) or len(set(found)) < len(found):
        raise ConfigError(
            f"[{where}] needs {name} to be a list of different whole numbers; got {values!r}. Pass "
            "such a list."
        )
    return found


def real_number(value: Any) -> float:
    """A Python, NumPy or JAX number as a float; NaN for anything else, including a traced value.

    A number beyond float32 becomes an infinity, as on an IPU, unless JAX has 64 bits.
    """
    if isinstance(value, str | bytes | bool | np.bool_):
        return float("nan")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")
    is_float32 = abs(number) <= _LARGEST_FLOAT32 or jax.config.jax_enable_x64
    return number if is_float32 or math.isnan(number) else math.copysign(math.inf, number)


def number(where: str, name: str, value: Any, advice: str = "Pass such a number") -> float:
    """A Python, NumPy or JAX number as a float.

    Raises:
        ConfigError: it is NaN, traced, or not a number.
    """
    found = real_number(value)
    if math.isnan(found):
        raise ConfigError(f"[{where}] needs {name} to be a known number; got {value!r}. {advice}.")
    return found


def rate_of(where: str, learning_rate: Any) -> jax.Array:
    """A learning rate as float32 []; None is 0, and a traced value is not checked.

    Raises:
        ConfigError: it is known to be negative, infinite or not a number.
    """
    if isinstance(learning_rate, jax.core.Tracer) and not learning_rate.ndim:
        return learning_rate.astype(jnp.float32)
    rate = 0.0 if learning_rate is None else real_number(learning_rate)
    if not 0 <= rate < math.inf:
        raise ConfigError(
            f"[{where}] needs learning_rate to be a finite number of at least 0; got "
            f"{learning_rate!r}. Pass such a number."
        )
    return jnp.float32(rate)


def dimension(axis: Any, rank: int) -> int | None:
    """The dimension, 0 to rank - 1, that an axis names, from -rank on; None if it names none."""
    number = whole_number(axis)
    return number % rank if number is not None and -rank <= number < rank else None


def dtype_name(dtype: Any) -> str:
    """The name of a dtype; for anything else, its repr."""
    try:
        return jnp.dtype(dtype).name
    except TypeError:
        return repr(dtype)


def check_dtype(where: str, name: str, dtype: Any, kind: Any = jnp.floating) -> None:
    """Refuses anything but None or a dtype of this kind that JAX supports."""
    if dtype is None:
        return
    try:
        given = jnp.dtype(dtype)
    except (TypeError, ValueError):
        given = np.dtype(object)
    exists = given == jax.dtypes.canonicalize_dtype(given)
    if not exists or not jnp.issubdtype(given, kind):
        raise ConfigError(
            f"[{where}] needs {name} to be a floating-point dtype or None; got {dtype!r}"
            f"{'' if exists else ', which needs jax_enable_x64'}. Pass one, such as jnp.float32."
        )


def array(where: str, name: str, value: Any) -> jax.Array:
    """The value as a JAX array.

    Raises:
        ConfigError: it is not an array, or has integers that JAX would wrap around to 32 bits.
    """
    try:
        made = jnp.asarray(value)
        _check_not_wrapped(where, name, value, made.dtype)
        return made
    except (TypeError, ValueError, OverflowError) as error:
        raise ConfigError(
            f"[{where}] needs {name} to be an array of numbers; got {type(value).__name__}: "
            f"{str(error).splitlines()[0].rstrip('.')}. Pass an array."
        ) from None


def _check_not_wrapped(where: str, name: str, value: Any, dtype: Any) -> None:
    """Refuses 64-bit NumPy integers that do not fit 32 bits."""
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in "iu":
        return
    if value.dtype.itemsize <= dtype.itemsize or not value.size:
        return
    ends = np.iinfo(dtype)
    low, high = int(value.min()), int(value.max())
    if low < ends.min or high > ends.max:
        raise ConfigError(
            f"[{where}] needs {name} of integers from {ends.min} to {ends.max}, JAX's {dtype}; got "
            f"{low if low < ends.min else high}. Pass smaller ones, or set jax_enable_x64."
        )


def shape_and_dtype(where: str, name: str, value: Any) -> jax.ShapeDtypeStruct:
    """Shape and dtype of an array, or of a description of one.

    Raises:
        ConfigError: it has none, or a dtype that JAX does not support.
    """
    try:
        given = jax.ShapeDtypeStruct(value.shape, value.dtype)
        dtype = given.dtype
        is_known = jnp.issubdtype(dtype, jax.dtypes.extended) or (
            dtype.kind not in "OSUM" and dtype == jax.dtypes.canonicalize_dtype(dtype)
        )
        if is_known:
            return given
        got = f"{dtype}, which JAX has not" + (
            " without jax_enable_x64" if dtype.itemsize >= 8 and dtype.kind in "iufc" else ""
        )
    except (AttributeError, TypeError, ValueError):
        got = repr(value)
    raise ConfigError(
        f"[{where}] needs {name} with shape and dtype; got {got}. Pass an array or a "
        "jax.ShapeDtypeStruct."
    )


def check_arrays(where: str, name: str, values: Any) -> None:
    """Refuses a pytree with a leaf that is not an array."""
    for leaf in jax.tree.leaves(values):
        array(where, name, leaf)


def floats(where: str, name: str, value: Any) -> jax.Array:
    """The value as an array of a float dtype.

    Raises:
        ConfigError: it is not one.
    """
    made = array(where, name, value)
    if not jnp.issubdtype(made.dtype, jnp.floating):
        raise ConfigError(
            f"[{where}] needs {name} of a float dtype; got {made.dtype}. Cast it to float32."
        )
    return made


def wide_dtype(dtype: Any) -> Any:
    """The dtype to compute in without losing precision: float32 or wider.

    JAX does not promote floats of 8 bits or fewer.
    """
    if jnp.issubdtype(dtype, jnp.floating) and jnp.dtype(dtype).itemsize == 1:
        return jnp.dtype(jnp.float32)
    return jnp.promote_types(dtype, jnp.float32)


def known_outside(values: jax.Array | np.ndarray, low: int, high: int) -> int | None:
    """One of the integers that is below low or above high; None if none is, or they are traced."""
    if isinstance(values, jax.core.Tracer):
        return None
    known = np.asarray(values)
    wrong = known[(known < low) | (known > high)]
    return int(wrong[0]) if wrong.size else None


def as_int32(indices: jax.Array) -> jax.Array:
    """The indices as int32; those that do not fit become its largest or smallest number."""
    if jnp.iinfo(indices.dtype).bits < 32 or indices.dtype == jnp.int32:
        return indices.astype(jnp.int32)
    ends = jnp.iinfo(jnp.int32)
    least = max(int(ends.min), int(jnp.iinfo(indices.dtype).min))
    return jnp.clip(indices, least, ends.max).astype(jnp.int32)


def check_real(where: str, name: str, value: jax.Array) -> None:
    """Refuses complex numbers and bools, which a cast to floats would change.

    Raises:
        ConfigError: the value is one of these.
    """
    if not (jnp.issubdtype(value.dtype, jnp.floating) or jnp.issubdtype(value.dtype, jnp.integer)):
        raise ConfigError(
            f"[{where}] needs {name} of real numbers; got {value.dtype}. Cast it to float32."
        )


def arrays(where: str, name: str, kind: type[Arrays], values: Any) -> Arrays:
    """The values as a named tuple of arrays.

    Raises:
        ConfigError: there are more, or fewer, or one is not an array.
    """
    fields = kind._fields
    if not isinstance(values, tuple | list) or len(values) != len(fields):
        raise ConfigError(
            f"[{where}] needs {name} to be {kind.__name__}({', '.join(fields)}); got "
            f"{type(values).__name__}. Pass one array for each of these."
        )
    named = zip(fields, values, strict=True)
    return kind._make(array(where, f"{name}.{field}", value) for field, value in named)
