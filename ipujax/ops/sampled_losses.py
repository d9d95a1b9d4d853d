"""`nce_loss` and `sampled_softmax_loss`: losses over a sample of many classes."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from ipujax.api.arguments import array, arrays, flag, whole_number, wide_dtype
from ipujax.api.configure.seeds import seed_words
from ipujax.errors import ConfigError
from ipujax.ops.candidate_samplers import (
    Candidates,
    classes_of,
    log_uniform_candidate_sampler,
)
from ipujax.ops.embedding_lookup import embedding_lookup


class _Logits(NamedTuple):
    """Logits minus the logarithm of how often each class is drawn."""

    true: jax.Array  # [batch, num_true]
    sampled: jax.Array  # [batch, num_sampled]


def nce_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Candidates | None = None,
    *,
    seed: Any = None,
    remove_accidental_hits: bool = False,
) -> jax.Array:
    """Noise-contrastive estimation: the true classes against drawn ones, each a logistic loss.

    Args:
        weights: [num_classes, dim], or a list of arrays whose concatenation has this shape.
        biases: [num_classes].
        labels: [batch, num_true] integers, from 0 to num_classes - 1. Numbers out of range that are
            known only at run time count as the nearest class.
        inputs: [batch, dim], of the dtype of weights.
        num_sampled: number of classes drawn for the whole batch.
        num_classes: number of classes.
        num_true: number of true classes of one example.
        sampled_values: from a sampler, such as `ipu.ops.uniform_candidate_sampler`; None: unique
            ones of `log_uniform_candidate_sampler` with `seed`.
        seed: a JAX key, an integer or two integers, different in each step; None: the next seed
            after `ipu.reset_seed`.
        remove_accidental_hits: whether to ignore, for each example, the drawn classes that are true
            classes of it.
    Returns:
        float32 [batch], the loss of each example. Differentiable in weights, biases and inputs.
    Raises:
        ConfigError: wrong shapes or dtypes.

    Source: `nn_ops.nce_loss` of Graphcore's TensorFlow; Gutmann and Hyvarinen, 2010.

    Example:
        >>> weights, biases = jnp.zeros((8, 2)), jnp.zeros(8)
        >>> labels, inputs = jnp.array([[1], [0]]), jnp.ones((2, 2))
        >>> loss = ipu.ops.nce_loss(weights, biases, labels, inputs, 4, 8, seed=0)
        >>> loss.shape
        (2,)
    """
    where = "nce_loss"
    arrays = _checked(where, (weights, biases, labels, inputs), num_classes, num_true)
    found = _drawn(where, arrays[2], num_sampled, num_classes, sampled_values, seed)
    hits = flag(f"ipu.ops.{where}", "remove_accidental_hits", remove_accidental_hits)
    logits = _logits(*arrays, found, hits)
    true = jnp.sum(jax.nn.softplus(logits.true) - logits.true / num_true, 1)
    return true + jnp.sum(jax.nn.softplus(logits.sampled), 1)


def sampled_softmax_loss(
    weights: Any,
    biases: Any,
    labels: Any,
    inputs: Any,
    num_sampled: int,
    num_classes: int,
    num_true: int = 1,
    sampled_values: Candidates | None = None,
    *,
    seed: Any = None,
    remove_accidental_hits: bool = True,
) -> jax.Array:
    """Cross-entropy of a softmax over the true classes and drawn ones.

    For training only: it underestimates the loss over all classes.

    Args:
        weights, biases, labels, inputs, num_sampled, num_classes, num_true, sampled_values, seed,
            remove_accidental_hits: as for `nce_loss`.
    Returns:
        float32 [batch], the loss of each example. Differentiable in weights, biases and inputs.
    Raises:
        ConfigError: as for `nce_loss`.

    Source: `nn_ops.sampled_softmax_loss` of Graphcore's TensorFlow; Jean et al., 2014
    (arXiv 1412.2007), section 3.

    Example:
        >>> weights, biases = jnp.zeros((8, 2)), jnp.zeros(8)
        >>> labels, inputs = jnp.array([[1], [0]]), jnp.ones((2, 2))
        >>> loss = ipu.ops.sampled_softmax_loss(weights, biases, labels, inputs, 4, 8, seed=0)
        >>> loss.shape
        (2,)
    """
    where = "sampled_softmax_loss"
    arrays = _checked(where, (weights, biases, labels, inputs), num_classes, num_true)
    found = _drawn(where, arrays[2], num_sampled, num_classes, sampled_values, seed)
    hits = flag(f"ipu.ops.{where}", "remove_accidental_hits", remove_accidental_hits)
    logits = _logits(*arrays, found, hits)
    both = jnp.concatenate(logits, 1)
    return jax.nn.logsumexp(both, 1) - jnp.mean(logits.true, 1)


def _drawn(
    where: str, labels: jax.Array, num_sampled: Any, num_classes: Any, given: Any, seed: Any
) -> Candidates:
    if given is None:
        words = seed_words(f"ipu.ops.{where}", seed)
        return log_uniform_candidate_sampler(words, labels, num_sampled, True, num_classes)
    found = arrays(f"ipu.ops.{where}", "sampled_values", Candidates, given)
    shapes = (found.sampled.shape, found.true_expected_count.shape)
    if shapes != ((whole_number(num_sampled),), labels.shape):
        raise ConfigError(
            f"[ipu.ops.{where}] needs sampled_values of {num_sampled} classes, with expected "
            f"counts like labels; got {list(found.sampled.shape)} and "
            f"{list(found.true_expected_count.shape)}. Call the sampler with the same arguments."
        )
    return found


def _logits(
    table: jax.Array,
    biases: jax.Array,
    labels: jax.Array,
    inputs: jax.Array,
    found: Candidates,
    remove_accidental_hits: bool,
) -> _Logits:
    true_rows, sampled_rows = embedding_lookup(table, (labels, found.sampled))
    true_bias, sampled_bias = (
        each.astype(wide_dtype(each.dtype))
        for each in embedding_lookup(biases, (labels, found.sampled))
    )
    true = jnp.einsum("bd,btd->bt", inputs, true_rows, preferred_element_type=jnp.float32)
    sampled = jnp.einsum("bd,sd->bs", inputs, sampled_rows, preferred_element_type=jnp.float32)
    true = true + true_bias - jnp.log(found.true_expected_count)
    sampled = sampled + sampled_bias - jnp.log(found.sampled_expected_count)
    if remove_accidental_hits:
        is_hit = jnp.any(labels[:, :, None] == found.sampled, 1)
        sampled = jnp.where(is_hit, jnp.finfo(sampled.dtype).min, sampled)
    return _Logits(true, sampled)


def _checked(
    where: str, given: tuple[Any, Any, Any, Any], num_classes: int, num_true: int
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Weights, biases, labels and inputs as arrays; labels are classes."""
    weights, *others = given
    own = f"ipu.ops.{where}"
    parts = weights if isinstance(weights, list | tuple) else ()
    is_parted = len(parts) > 0 and all(np.ndim(part) == 2 for part in parts)
    table = jnp.concatenate(parts) if is_parted else array(own, "weights", weights)
    names = ("biases", "labels", "inputs")
    biases, labels, inputs = (array(own, *pair) for pair in zip(names, others, strict=True))
    dim = table.shape[-1] if table.ndim == 2 else 0
    batch = labels.shape[0] if labels.ndim == 2 else 0
    wanted = {
        "weights": (table, (whole_number(num_classes), dim)),
        "biases": (biases, (whole_number(num_classes),)),
        "labels": (labels, (batch, whole_number(num_true))),
        "inputs": (inputs, (batch, dim)),
    }
    for name, (given_array, shape) in wanted.items():
        if given_array.shape != shape:
            raise ConfigError(
                f"[ipu.ops.{where}] needs weights [{num_classes}, dim], biases [{num_classes}], "
                f"labels [batch, {num_true}] and inputs [batch, dim]; got {name} "
                f"{list(given_array.shape)}. Reshape it."
            )
    for name, floats in (("weights", table), ("biases", biases)):
        if not jnp.issubdtype(floats.dtype, jnp.floating):
            raise ConfigError(
                f"[{own}] needs {name} of a float dtype; got {floats.dtype}. Cast it to float32."
            )
    if inputs.dtype != table.dtype:
        raise ConfigError(
            f"[ipu.ops.{where}] needs inputs of the dtype of weights, {table.dtype}; got "
            f"{inputs.dtype}. Cast them."
        )
    return table, biases, classes_of(where, "labels", labels, num_classes), inputs
