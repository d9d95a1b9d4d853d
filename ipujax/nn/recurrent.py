"""What layers of recurrent cells have in common: their arguments, and steps that end early."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ipujax.api.arguments import array as as_array
from ipujax.api.arguments import as_int32, known_outside, real_number
from ipujax.errors import ConfigError

ACTIVATIONS: dict[str, Callable[[Any], Any]] = {
    "sigmoid": jax.nn.sigmoid,
    "hard_sigmoid": lambda x: jnp.clip(0.2 * x + 0.5, 0, 1).astype(x.dtype),
    "relu": jax.nn.relu,
    "softmax": jax.nn.softmax,
    "tanh": jnp.tanh,
}
_PARTIALS = ("float", "half")
_DTYPES = ("float32", "float16", "bfloat16")


def product(a: jax.Array, b: jax.Array) -> jax.Array:
    """a [..., k] b [k, n], summed in float32."""
    summed = jnp.matmul(a, b, preferred_element_type=jnp.float32)
    return summed.astype(a.dtype)


def as_matrix(weights: jax.Array, order: Sequence[int]) -> jax.Array:
    """Weights [units, in, out] as one matrix [in, units * out], units in this order."""
    units = weights[jnp.array(order)]
    num_units, num_inputs, size = units.shape
    return jnp.moveaxis(units, 0, 1).reshape(num_inputs, num_units * size)


def limited(
    step: Callable[[Any, Any], tuple[Any, Any, Any]],
    state: Any,
    inputs: Any,
    lengths: Sequence[jax.Array],
) -> tuple[Any, Any, Any]:
    """A scan of `step(state, input) -> state, output, kept`.

    After its length a sequence keeps its state, and its output and what is kept are zero. `kept` is
    [units, batch, out] for each step, the rest [batch, out].
    """
    num_steps = jax.tree.leaves(inputs)[0].shape[0]

    def masked(state: Any, numbered: Any) -> tuple[Any, Any]:
        time, given = numbered
        following, output, kept = step(state, given)
        if lengths:
            within = (time < lengths[0])[:, None]
            following = jax.tree.map(lambda a, b: jnp.where(within, a, b), following, state)
            output, kept = (jnp.where(within, a, jnp.zeros_like(a)) for a in (output, kept))
        return following, (output, kept)

    state, (outputs, kept) = lax.scan(masked, state, (jnp.arange(num_steps), inputs))
    return state, outputs, kept


def before_ends(x: jax.Array, lengths: Sequence[jax.Array]) -> jax.Array:
    """x [time, batch, ...] with zeros after the end of each sequence."""
    if not lengths:
        return x
    within = jnp.arange(x.shape[0])[:, None] < lengths[0]
    return jnp.where(within.reshape(*within.shape, *[1] * (x.ndim - 2)), x, 0)


def last_output(outputs: jax.Array, first: jax.Array, lengths: jax.Array | None) -> jax.Array:
    """Output [batch, out] of each sequence's last step; the initial state for empty sequences."""
    num_steps = outputs.shape[0]
    if num_steps == 0:
        return first
    if lengths is None:
        return outputs[-1]
    counted = jnp.minimum(lengths, num_steps)
    at = jnp.maximum(counted - 1, 0)[None, :, None]
    found = jnp.take_along_axis(outputs, at, 0)[0]
    return jnp.where((counted > 0)[:, None], found, first)


def check_layer(where: str, x: Any, weights: Any, units: int, bias_shape: tuple[int, ...]) -> None:
    """Checks shapes and dtypes: x [time, batch, in], weights [units, in, out], [units, out, out].

    Raises:
        ConfigError: a wrong rank, size or dtype.
    """
    input_weights, output_weights, biases = weights
    if x.ndim != 3 or x.dtype.name not in _DTYPES:
        raise ConfigError(
            f"[{where}] needs x [time, batch, in] of {', '.join(_DTYPES)}; got "
            f"{x.dtype.name} {list(x.shape)}. Move time to the first dimension."
        )
    size = output_weights.shape[-1] if output_weights.ndim else 0
    wanted = {
        "input_weights": (input_weights, (units, x.shape[2], size)),
        "output_weights": (output_weights, (units, size, size)),
        "biases": (biases, (units, *bias_shape, size)),
    }
    for name, (array, shape) in wanted.items():
        check_array(where, name, array, shape, x.dtype)


def check_array(where: str, name: str, array: Any, shape: tuple[int, ...], dtype: Any) -> None:
    """Checks one argument's shape and dtype.

    Raises:
        ConfigError: one of them is wrong.
    """
    if tuple(array.shape) != shape or array.dtype != dtype:
        raise ConfigError(
            f"[{where}] needs {name} {list(shape)} of {jnp.dtype(dtype).name}; got "
            f"{array.dtype.name} {list(array.shape)}. Pass an array of this shape and dtype."
        )


def check_lengths(where: str, lengths: Any, steps: int, batch: int) -> jax.Array:
    """Lengths as int32, clipped to 0 to steps; known lengths must be in that range.

    Raises:
        ConfigError: a wrong shape or dtype, or a length known to be out of range.
    """
    array = as_array(where, "lengths", lengths)
    if array.shape != (batch,) or not jnp.issubdtype(array.dtype, jnp.integer):
        raise ConfigError(
            f"[{where}] needs lengths [{batch}] of integers, one for each sequence; got "
            f"{array.dtype.name} {list(array.shape)}. Pass the number of steps of each."
        )
    wrong = known_outside(array, 0, steps)
    if wrong is not None:
        raise ConfigError(
            f"[{where}] needs lengths from 0 to {steps}, the number of steps; got {wrong}. "
            "Pass the number of steps of each."
        )
    return jnp.clip(as_int32(array), 0, steps)


def check_options(
    where: str, activation: str, recurrent: str, partials: str | None, memory: Any
) -> float | None:
    """Checks the options; returns the available memory proportion as a Python number.

    Raises:
        ConfigError: an option is invalid.
    """
    for name, value in (("activation", activation), ("recurrent_activation", recurrent)):
        if not isinstance(value, str) or value not in ACTIVATIONS:
            raise ConfigError(
                f"[{where}] needs {name} of {', '.join(sorted(ACTIVATIONS))}; got {value!r}. "
                "Use one of these."
            )
    is_text = isinstance(partials, str)
    if partials is not None and not (is_text and partials in _PARTIALS):
        raise ConfigError(
            f"[{where}] needs partials of {', '.join(_PARTIALS)}; got {partials!r}. "
            "Use one of these."
        )
    if memory is not None and not 0 < real_number(memory) <= 10:
        raise ConfigError(
            f"[{where}] needs an available_memory_proportion above 0, at most 10; got {memory!r}. "
            "Use a proportion such as 0.6."
        )
    return None if memory is None else real_number(memory)


def check_order(where: str, order: Sequence[str], units: Sequence[str]) -> tuple[str, ...]:
    """Checks the order of units in weights and biases.

    Raises:
        ConfigError: it does not have each unit once.
    """
    given = tuple(order) if isinstance(order, Iterable) else (order,)
    if not all(isinstance(unit, str) for unit in given) or sorted(given) != sorted(units):
        raise ConfigError(
            f"[{where}] needs a cell_order with each of {', '.join(units)} once; got "
            f"{given!r}. Name each unit once."
        )
    return given


def fold_batch(
    size: int, operands: Sequence[Any], dims: Sequence[int | None], batch_axes: Sequence[int | None]
) -> list[Any] | None:
    """Operands with the mapped axis folded into the batch; None if one without batch is mapped."""
    folded = []
    for x, dim, axis in zip(operands, dims, batch_axes, strict=True):
        if axis is None:
            if dim is not None:
                return None
            folded.append(x)
            continue
        moved = jnp.broadcast_to(x, (size, *x.shape)) if dim is None else jnp.moveaxis(x, dim, 0)
        moved = jnp.moveaxis(moved, 0, axis)
        shape = list(moved.shape)
        both = shape[axis] * shape[axis + 1]
        folded.append(moved.reshape([*shape[:axis], both, *shape[axis + 2 :]]))
    return folded


def unfold_batch(size: int, results: Sequence[Any], batch_axes: Sequence[int]) -> list[Any]:
    """The inverse: puts the mapped axis where the batch was."""
    return [
        y.reshape([*y.shape[:axis], size, y.shape[axis] // size, *y.shape[axis + 1 :]])
        for y, axis in zip(results, batch_axes, strict=True)
    ]
