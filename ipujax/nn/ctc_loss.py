"""ctc_loss: connectionist temporal classification, as in popnn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.interpreters import ad

from ipujax import jax_compat
from ipujax.api.arguments import array as as_array
from ipujax.api.arguments import as_int32, dimension, known_outside
from ipujax.errors import ConfigError
from ipujax.ops.definition import Op

#: Stands for the logarithm of 0, so that sums and gradients stay finite.
_LOG_ZERO = -1e30
_DTYPES = ("float32", "float16", "bfloat16")


def ctc_loss(
    logits: jax.Array,
    labels: jax.Array,
    data_lengths: jax.Array | None = None,
    label_lengths: jax.Array | None = None,
    *,
    blank_index: int = 0,
    out_dtype: Any = None,
) -> jax.Array:
    """-log p(labels | logits), summed over all alignments of labels with blanks and repeats.

    Args:
        logits: [time, batch, classes] of float32, float16 or bfloat16.
        labels: integers [batch, max labels]; those beyond a sequence's label length are ignored.
        data_lengths: number of steps of each sequence, integers [batch]; all by default.
        label_lengths: number of labels of each sequence, integers [batch]; all by default.
        blank_index: the blank's class; -1 is the last one.
        out_dtype: dtype of the losses, at least as wide as that of the logits, which is the
            default. With float32, float16 logits are converted and the losses are never rounded to
            float16.

    Returns:
        The losses [batch]. A loss is infinite, with a gradient of 0, if no alignment exists, or if
        a label known only at run time is the blank or not a class. Lengths beyond the data are
        clipped. If a log-probability of a label or the blank is NaN within a sequence's length, the
        loss and the gradient of the sequence are NaN.

    Raises:
        ConfigError: a wrong shape or dtype; labels or lengths known to be out of range.

    Source: popnn/CTCLoss.hpp; Graves et al., Connectionist Temporal Classification (2006).

    Example:
        >>> import jax.numpy as jnp
        >>> loss = ctc_loss(jnp.zeros((2, 1, 3)), jnp.array([[1]]))
        >>> round(float(jnp.exp(-loss[0])), 4)  # 3 of 9 alignments
        0.3333
    """
    where = "ipu.nn.ctc_loss"
    data = _widened(where, logits, out_dtype)
    return _loss(where, data, labels, data_lengths, label_lengths, blank_index, True)


def ctc_loss_with_log_probs(
    log_probs: jax.Array,
    labels: jax.Array,
    data_lengths: jax.Array | None = None,
    label_lengths: jax.Array | None = None,
    *,
    blank_index: int = 0,
    out_dtype: Any = None,
) -> jax.Array:
    """`ctc_loss` for log-probabilities.

    Args:
        log_probs: [time, batch, classes] of float32, float16 or bfloat16.
        labels, data_lengths, label_lengths, blank_index, out_dtype: as `ctc_loss`.

    Returns:
        The losses [batch], as `ctc_loss`.

    Raises:
        ConfigError: as `ctc_loss`.

    Source: popnn/CTCLoss.hpp.

    Example:
        >>> import jax.numpy as jnp
        >>> logs = jnp.log(jnp.full((2, 1, 3), 1 / 3))
        >>> round(float(jnp.exp(-ctc_loss_with_log_probs(logs, jnp.array([[1]])))[0]), 4)
        0.3333
    """
    where = "ipu.nn.ctc_loss_with_log_probs"
    data = _widened(where, log_probs, out_dtype)
    return _loss(where, data, labels, data_lengths, label_lengths, blank_index, False)


def _widened(where: str, data: Any, out_dtype: Any) -> Any:
    """Casts the data to the losses' dtype.

    Raises:
        ConfigError: the dtype is neither float32 nor that of the data.
    """
    if out_dtype is None:
        return data
    data = as_array(where, "data", data)
    try:
        name = jnp.dtype(out_dtype).name
    except TypeError:
        name = repr(out_dtype)
    if name != data.dtype.name and name != "float32":
        raise ConfigError(
            f"[{where}] needs out_dtype to be float32 or that of the data; got {name} for "
            f"{data.dtype.name} {list(data.shape)}. Convert the losses."
        )
    return data.astype(name)


def _loss(
    where: str,
    data: Any,
    labels: Any,
    data_lengths: Any,
    label_lengths: Any,
    blank_index: int,
    are_logits: bool,
) -> jax.Array:
    data, blank = check_data(where, "logits" if are_logits else "log_probs", data, blank_index)
    steps, batch, classes = data.shape
    labels = _integers(where, "labels", labels, (batch, None), (None, None))
    most = labels.shape[1]
    lengths = length_of(where, "data_lengths", data_lengths, batch, steps)
    counts = length_of(where, "label_lengths", label_lengths, batch, most)
    _check_labels(where, labels, counts, classes, blank)
    wrong = (labels < 0) | (labels >= classes) | (labels == blank)
    is_wrong = (wrong & (jnp.arange(most) < counts[:, None])).any(1)
    if steps == 0 or batch == 0:
        losses = jnp.where(counts > 0, jnp.inf, 0).astype(data.dtype)
    else:
        safe = jnp.where(wrong, blank, labels)
        losses = _CTC(data, safe, lengths, counts, blank=blank, logits=are_logits)
    return jnp.where(is_wrong, jnp.asarray(jnp.inf, losses.dtype), losses)


def check_data(where: str, name: str, data: Any, blank_index: Any) -> tuple[jax.Array, int]:
    """Returns the data [time, batch, classes], and the number of the blank's class.

    Raises:
        ConfigError: data of a wrong rank or dtype, or a blank that is not a class.
    """
    data = as_array(where, name, data)
    if data.ndim != 3 or data.dtype.name not in _DTYPES:
        raise ConfigError(
            f"[{where}] needs {name} [time, batch, classes] of {', '.join(_DTYPES)}; got "
            f"{data.dtype.name} {list(data.shape)}. Move time to the first dimension."
        )
    classes = data.shape[2]
    blank = dimension(blank_index, classes)
    if blank is None:
        raise ConfigError(
            f"[{where}] needs a blank_index among the {classes} classes; got {blank_index}. "
            "Use the index of a class."
        )
    return data, blank


def length_of(where: str, name: str, lengths: Any, batch: int, most: int) -> jax.Array:
    """Lengths [batch] as int32 in [0, most]; `most` for None.

    Raises:
        ConfigError: a wrong shape or dtype; lengths known to be out of range.
    """
    if lengths is None:
        return jnp.full((batch,), most, jnp.int32)
    array = _integers(where, name, lengths, (batch,), (0, most))
    return jnp.clip(array, 0, most)


def _integers(
    where: str,
    name: str,
    values: Any,
    shape: tuple[int | None, ...],
    bounds: tuple[int | None, int | None],
) -> jax.Array:
    array = as_array(where, name, values)
    fits = len(array.shape) == len(shape) and all(
        wanted in (None, size) for size, wanted in zip(array.shape, shape, strict=True)
    )
    if not fits or not jnp.issubdtype(array.dtype, jnp.integer):
        wanted = ", ".join("any" if size is None else str(size) for size in shape)
        raise ConfigError(
            f"[{where}] needs {name} [{wanted}] of integers; got {array.dtype.name} "
            f"{list(array.shape)}. Pass one row for each sequence."
        )
    low, high = bounds
    if low is not None and high is not None:
        outside = known_outside(array, low, high)
        if outside is not None:
            raise ConfigError(
                f"[{where}] needs {name} from {low} to {high}; got {outside}. "
                "Use lengths of the data."
            )
    return as_int32(array)


def _check_labels(where: str, labels: Any, counts: Any, classes: int, blank: int) -> None:
    """Checks that known labels are classes, and not the blank."""
    if isinstance(labels, jax.core.Tracer) or isinstance(counts, jax.core.Tracer):
        return
    found, within = np.asarray(labels), np.arange(labels.shape[1]) < np.asarray(counts)[:, None]
    wrong = found[within & ((found < 0) | (found >= classes) | (found == blank))]
    if wrong.size:
        raise ConfigError(
            f"[{where}] needs labels that are classes from 0 to {classes - 1}, and not the blank "
            f"{blank}; got {wrong[0]}. Use another blank_index, or leave blanks out."
        )


# The definition ----------------------------------------------------------------------------------


def _log_likelihood(data: Any, labels: Any, lengths: Any, counts: Any, **options: Any) -> Any:
    """log p(labels) [batch] of data in float32, by the forward recursion."""
    blank = options["blank"]
    data = jnp.where(_within(data, lengths), data, 0)
    logs = jax.nn.log_softmax(data, -1) if options["logits"] else data
    logs = jnp.maximum(logs, _LOG_ZERO)
    steps, batch, _ = data.shape
    size = 2 * labels.shape[1] + 1
    states = jnp.full((batch, size), blank, jnp.int32).at[:, 1::2].set(labels)
    emitted = jnp.take_along_axis(logs, jnp.broadcast_to(states, (steps, batch, size)), 2)
    two_before = jnp.pad(states, ((0, 0), (2, 0)), constant_values=blank)[:, :size]
    skips = (states != blank) & (states != two_before)

    def shifted(x: Any, n: int) -> Any:
        return jnp.pad(x, ((0, 0), (n, 0)), constant_values=_LOG_ZERO)[:, :size]

    def step(now: Any, given: Any) -> tuple[Any, None]:
        time, emit = given
        two = jnp.where(skips, shifted(now, 2), _LOG_ZERO)
        sums = jax.nn.logsumexp(jnp.stack([now, shifted(now, 1), two]), 0)
        following = jnp.maximum(sums + emit, _LOG_ZERO)
        return jnp.where((time < lengths)[:, None], following, now), None

    first = jnp.full((batch, size), _LOG_ZERO, jnp.float32).at[:, 0].set(0)
    first = jax_compat.varying_like(first, emitted, lengths)
    last, _ = lax.scan(step, first, (jnp.arange(steps), emitted))
    at = jnp.stack([2 * counts, 2 * counts - 1], 1)
    ends = jnp.take_along_axis(last, jnp.maximum(at, 0), 1)
    found = jax.nn.logsumexp(jnp.where(at >= 0, ends, _LOG_ZERO), 1)
    is_state = jnp.arange(size) <= 2 * counts[:, None]
    return jnp.where((jnp.isnan(emitted) & is_state).any((0, 2)), jnp.nan, found)


def _within(data: Any, lengths: Any) -> Any:
    """Which steps belong to their sequence, [time, batch, 1]."""
    return (jnp.arange(data.shape[0])[:, None] < lengths)[:, :, None]


def _plain(data: Any, *integers: Any, **options: Any) -> Any:
    """The losses [batch]."""
    found = _log_likelihood(data.astype(jnp.float32), *integers, **options)
    return _losses(found).astype(data.dtype)


def _plain_trained(data: Any, *integers: Any, **options: Any) -> tuple[Any, Any]:
    """The losses, and their gradients [time, batch, classes]."""

    def total(data: Any) -> tuple[Any, Any]:
        found = _log_likelihood(data.astype(jnp.float32), *integers, **options)
        losses = _losses(found)
        return jnp.where(jnp.isfinite(losses), losses, 0).sum(), losses

    gradient, losses = jax.grad(total, has_aux=True)(data)
    is_nan = jnp.isnan(losses)[:, None]
    spoilt = jnp.where(_within(data, integers[1]), jnp.nan, 0).astype(data.dtype)
    gradient = jnp.where(is_nan, spoilt, gradient)
    return losses.astype(data.dtype), gradient


def _losses(found: Any) -> Any:
    """Losses from log-probabilities, where values near `_LOG_ZERO` stand for log(0)."""
    return jnp.where(found <= _LOG_ZERO / 2, jnp.inf, -found)


def _vjp(operands: Any, results: Any, cotangents: Any, **options: Any) -> Sequence[Any]:
    data, *integers = operands
    made = None
    if cotangents[0] is not None:
        made = results[1] * cotangents[0][None, :, None]
    if cotangents[1] is not None:  # of the gradient: the second derivative

        def gradient(data: Any) -> Any:
            return _plain_trained(data, *integers, **options)[1]

        second = jax.vjp(gradient, data)[1](cotangents[1])[0]
        made = second if made is None else made + second
    return [made, None, None, None]


def _folded(size: int, operands: Any, dims: Any) -> list[Any]:
    """Folds the mapped axis into the batch."""

    def folded(x: Any, dim: int | None, axis: int) -> Any:
        whole = jnp.broadcast_to(x, (size, *x.shape)) if dim is None else jnp.moveaxis(x, dim, 0)
        whole = jnp.moveaxis(whole, 0, axis)
        both = whole.shape[axis] * whole.shape[axis + 1]
        return whole.reshape([*whole.shape[:axis], both, *whole.shape[axis + 2 :]])

    return list(map(folded, operands, dims, (1, 0, 0, 0)))


def _batch(size: int, operands: Any, dims: Any, **options: Any) -> Any:
    losses = _CTC(*_folded(size, operands, dims), **options)
    return [losses.reshape(size, -1)], [0]


def _batch_trained(size: int, operands: Any, dims: Any, **options: Any) -> Any:
    losses, gradient = _TRAINED(*_folded(size, operands, dims), **options)
    steps, _, classes = gradient.shape
    return [losses.reshape(size, -1), gradient.reshape(steps, size, -1, classes)], [0, 1]


# Primitives --------------------------------------------------------------------------------------

_CTC = Op("ctc_loss", _plain, dimensions="TbC, bL, b, b -> b", batch=_batch)
#: Also returns the gradient; it replaces `_CTC` where derivatives are taken.
_TRAINED = Op(
    "ctc_loss_trained",
    _plain_trained,
    multiple=True,
    dimensions="TbC, bL, b, b -> b, TbC",
    vjp=_vjp,
    batch=_batch_trained,
)


def _jvp(primals: Any, tangents: Any, **options: Any) -> Any:
    results, made = ad.primitive_jvps[_TRAINED.primitive](primals, tangents, **options)
    return results[:1], made[:1]


ad.primitive_jvps[_CTC.primitive] = _jvp
