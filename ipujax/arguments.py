"""What the arguments of functions are: numbers of Python, NumPy or JAX, flags, and arrays."""

from __future__ import annotations

import operator
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from ipujax import jax_compat
from ipujax.errors import ConfigError

jax_compat.hide_frames(__file__)

Arrays = TypeVar("Arrays", bound=NamedTuple)


def whole_number(value: Any) -> int | None:
    """An integer of Python, NumPy or JAX as Python's; None for all else, also for a bool."""
    if isinstance(value, bool | np.bool_):
        return None
    try:
        return operator.index(value)
    except TypeError:
        return None


def real_number(value: Any) -> float:
    """A number of Python, NumPy or JAX as Python's; NaN for all else, also for a traced one."""
    if isinstance(value, str | bytes):
        return float("nan")
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return float("nan")


def dimension(axis: Any, rank: int) -> int | None:
    """The dimension, 0 to rank - 1, that an axis names, from -rank on; None where it names none."""
    number = whole_number(axis)
    return number % rank if number is not None and -rank <= number < rank else None


def dtype_name(dtype: Any) -> str:
    """The name of a dtype; of what is none, its text."""
    try:
        return jnp.dtype(dtype).name
    except TypeError:
        return repr(dtype)


def array(where: str, name: str, value: Any) -> jax.Array:
    """The value as an array of JAX.

    Raises:
        ConfigError: it is none.
    """
    try:
        return jnp.asarray(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise ConfigError(
            f"[{where}] needs {name} to be an array of numbers; got {type(value).__name__}: "
            f"{str(error).splitlines()[0].rstrip('.')}. Pass an array."
        ) from None


def floats(where: str, name: str, value: Any) -> jax.Array:
    """The value as an array of a float dtype.

    Raises:
        ConfigError: it is none.
    """
    made = array(where, name, value)
    if not jnp.issubdtype(made.dtype, jnp.floating):
        raise ConfigError(
            f"[{where}] needs {name} of a float dtype; got {made.dtype}. Cast it to float32."
        )
    return made


def arrays(where: str, name: str, kind: type[Arrays], values: Any) -> Arrays:
    """The values as a named tuple of arrays.

    Raises:
        ConfigError: there are more, or fewer, or one is no array.
    """
    fields = kind._fields
    if not isinstance(values, tuple | list) or len(values) != len(fields):
        raise ConfigError(
            f"[{where}] needs {name} to be {kind.__name__}({', '.join(fields)}); got "
            f"{type(values).__name__}. Pass one array for each of these."
        )
    named = zip(fields, values, strict=True)
    return kind._make(array(where, f"{name}.{field}", value) for field, value in named)
