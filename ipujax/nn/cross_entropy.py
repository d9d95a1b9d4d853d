"""The cross-entropy of a softmax, with popnn's gradient, scaling and masked labels."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ipujax.api.arguments import LARGEST_INT32, array, real_number, wide_dtype
from ipujax.errors import ConfigError
from ipujax.nn.softmax import log_softmax

#: The label of a row that has no loss: popnn's MASKED_LABEL_CODE.
MASKED_LABEL = 0xFFFFFFFF


def cross_entropy(logits: Any, labels: Any, *, loss_scale: Any = 1.0) -> jax.Array:
    """-log(softmax(logits)) at each row's label.

    The gradient with respect to the logits is the softmax minus the one-hot label, times
    `loss_scale`, which is multiplied in before the result is rounded to the logits' dtype. The loss
    itself is not scaled.

    Args:
        logits: [..., classes] of a float dtype.
        labels: [...] of an integer dtype, 0 to classes - 1. Rows whose label is `MASKED_LABEL`, or
            any other label out of range, have a loss and a gradient of 0.
        loss_scale: a number, or a float scalar.
    Returns:
        the losses [...], of the dtype of the logits.
    Raises:
        ConfigError: a shape or dtype is invalid, or the scale is known before the program runs and
            is not above 0.

    Source: `popnn::calcLoss` of PopLibs with CROSS_ENTROPY_LOSS.

    Example:
        >>> logits = jnp.array([[2.0, 0.0], [0.0, 0.0]])
        >>> print(ipu.nn.cross_entropy(logits, jnp.array([0, 1])).round(3))
        [0.127 0.693]
    """
    if isinstance(labels, np.ndarray) and labels.dtype.kind in "iu":
        labels = labels.clip(-1, LARGEST_INT32)  # 64-bit labels out of range stay so
    logits, labels = (
        array("nn.cross_entropy", name, given)
        for name, given in (("logits", logits), ("labels", labels))
    )
    _check(logits, labels, loss_scale)
    if logits.shape[-1] == 0:
        return jnp.zeros(labels.shape, logits.dtype)
    if labels.dtype.itemsize < 4:
        labels = labels.astype(jnp.int32)
    wide = wide_dtype(logits.dtype)
    losses: jax.Array = _loss(logits, labels, jnp.asarray(loss_scale, wide))
    return losses


def _primal(logits: jax.Array, labels: jax.Array, scale: jax.Array) -> jax.Array:
    return -_at_labels(log_softmax(logits), labels)


def _at_labels(values: jax.Array, labels: jax.Array) -> jax.Array:
    """One value of each row, 0 where the label is not a class."""
    return jnp.sum(jnp.where(_one_hot(values, labels), values, 0), -1, dtype=values.dtype)


def _one_hot(values: jax.Array, labels: jax.Array) -> jax.Array:
    return labels[..., None] == jnp.arange(values.shape[-1], dtype=labels.dtype)


def _loss_jvp(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    """Scaled in both modes, so that reverse mode, which transposes this, gives scaled gradients."""
    logits, labels, scale = primals
    logs = log_softmax(logits)
    loss = _loss(*primals)  # whose derivative is scaled, too
    hot = _one_hot(logits, labels)
    wide = jnp.exp(logs.astype(scale.dtype)) - hot.astype(scale.dtype)
    slope = jnp.where(jnp.any(hot, -1, keepdims=True), wide * scale, 0).astype(logits.dtype)
    return loss, jnp.sum(slope * tangents[0], -1, dtype=logits.dtype)


_loss: Any = jax.custom_jvp(_primal)
_loss.defjvp(_loss_jvp)


def _check(logits: jax.Array, labels: jax.Array, loss_scale: Any) -> None:
    if logits.ndim == 0 or not jnp.issubdtype(logits.dtype, jnp.floating):
        raise ConfigError(
            "[nn.cross_entropy] needs logits [..., classes] of a float dtype; got "
            f"{logits.dtype}{list(logits.shape)}. Cast them to float32."
        )
    if labels.shape != logits.shape[:-1] or not jnp.issubdtype(labels.dtype, jnp.integer):
        raise ConfigError(
            f"[nn.cross_entropy] needs integer labels of shape {logits.shape[:-1]}; got "
            f"{labels.dtype}{list(labels.shape)}. Pass one class number for each row of logits."
        )
    is_known = not isinstance(loss_scale, jax.core.Tracer)
    has_rank = isinstance(loss_scale, list | tuple) or np.ndim(loss_scale)
    if has_rank or (is_known and not 0 < real_number(loss_scale) < math.inf):
        raise ConfigError(
            f"[nn.cross_entropy] needs a finite scalar loss_scale above 0; got {loss_scale}. "
            "Use 1 for no scaling."
        )
