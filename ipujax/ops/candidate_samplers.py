"""Samples of classes for `nce_loss` and `sampled_softmax_loss`, as TensorFlow draws them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ipujax import jax_compat
from ipujax.api.arguments import (
    LARGEST_INT32,
    array,
    as_int32,
    check_real,
    count,
    flag,
    known_outside,
    real_number,
    whole_number,
)
from ipujax.api.configure.seeds import seed_words
from ipujax.errors import ConfigError


class Candidates(NamedTuple):
    """What a sampler returns."""

    sampled: jax.Array  # int32 [num_sampled]: classes
    true_expected_count: jax.Array  # float32, like true_classes: how often each is drawn on average
    sampled_expected_count: jax.Array  # float32 [num_sampled]


#: key, how many -> classes int32
_Draw = Callable[[jax.Array, int], jax.Array]
#: classes -> the probability of each in one draw, float32
_Probability = Callable[[jax.Array], jax.Array]


def log_uniform_candidate_sampler(
    key: Any, true_classes: Any, num_sampled: int, unique: bool, range_max: int
) -> Candidates:
    """Draws class c with probability log((c + 2) / (c + 1)) / log(range_max + 1).

    For classes that are numbered by decreasing frequency.

    Args:
        key: a JAX key, an integer or two integers; None: the next seed after `ipu.reset_seed`.
        true_classes: [...] integers from 0 to range_max - 1; they do not change what is drawn.
            Numbers out of range that are known only at run time count as the nearest class.
        num_sampled: number of classes to draw.
        unique: whether no class is drawn twice. Draws that repeat one are rejected, and the
            expected counts follow from the number of draws.
        range_max: the number of classes.
    Returns:
        Candidates. They have no derivatives.
    Raises:
        ConfigError: true classes that are not integers or known to be out of range, nothing to
            draw, more unique samples than classes, or an invalid key.

    Source: `tf.random.log_uniform_candidate_sampler`.

    Example:
        >>> found = ipu.ops.log_uniform_candidate_sampler(0, jnp.array([0]), 3, True, 3)
        >>> print(jnp.sort(found.sampled))
        [0 1 2]
    """
    where = "log_uniform_candidate_sampler"
    num_sampled, range_max = _checked_range(where, num_sampled, unique, range_max)
    log_range = math.log(range_max + 1)

    def draw(key: jax.Array, count: int) -> jax.Array:
        uniform = jax.random.uniform(key, (count,), jnp.float32)
        drawn = jnp.exp(uniform * log_range).astype(jnp.int32) - 1
        return jnp.clip(drawn, 0, range_max - 1)

    def probability(classes: jax.Array) -> jax.Array:
        return jnp.log1p(1 / (classes.astype(jnp.float32) + 1)) / log_range

    return _sampled(where, key, true_classes, num_sampled, unique, range_max, draw, probability)


def uniform_candidate_sampler(
    key: Any, true_classes: Any, num_sampled: int, unique: bool, range_max: int
) -> Candidates:
    """Draws all classes with the same probability.

    Args:
        key, true_classes, num_sampled, unique, range_max: as for `log_uniform_candidate_sampler`.
    Returns:
        Candidates.
    Raises:
        ConfigError: as for `log_uniform_candidate_sampler`.

    Source: `tf.random.uniform_candidate_sampler`.

    Example:
        >>> found = ipu.ops.uniform_candidate_sampler(0, jnp.array([5]), 2, False, 8)
        >>> print(found.true_expected_count)
        [0.25]
    """
    where = "uniform_candidate_sampler"
    num_sampled, range_max = _checked_range(where, num_sampled, unique, range_max)

    def draw(key: jax.Array, count: int) -> jax.Array:
        return jax.random.randint(key, (count,), 0, range_max, jnp.int32)

    def probability(classes: jax.Array) -> jax.Array:
        return jnp.full(classes.shape, 1 / range_max, jnp.float32)

    return _sampled(where, key, true_classes, num_sampled, unique, range_max, draw, probability)


def fixed_unigram_candidate_sampler(
    key: Any,
    true_classes: Any,
    num_sampled: int,
    unique: bool,
    unigrams: Any,
    distortion: float = 1.0,
    num_reserved_ids: int = 0,
) -> Candidates:
    """Draws classes with probabilities in proportion to unigrams ** distortion.

    Args:
        key, true_classes, num_sampled, unique: as for `log_uniform_candidate_sampler`.
        unigrams: [classes - num_reserved_ids] counts or probabilities, not negative.
        distortion: 1 keeps the proportions, 0 makes all equal.
        num_reserved_ids: classes 0 to num_reserved_ids - 1 are never drawn.
    Returns:
        Candidates.
    Raises:
        ConfigError: as for `log_uniform_candidate_sampler`; unigrams that are negative or all zero.

    Source: `tf.random.fixed_unigram_candidate_sampler`.

    Example:
        >>> found = ipu.ops.fixed_unigram_candidate_sampler(0, jnp.array([1]), 4, False, [0, 3, 1])
        >>> print(found.true_expected_count)
        [3.]
    """
    where = "fixed_unigram_candidate_sampler"
    if isinstance(unigrams, jax.core.Tracer) or not math.isfinite(real_number(distortion)):
        raise ConfigError(
            f"[ipu.ops.{where}] needs unigrams and a distortion that are known before the program "
            f"runs; got {unigrams} and {distortion!r}. Pass a NumPy array and a finite number."
        )
    given = array(f"ipu.ops.{where}", "unigrams", unigrams)
    check_real(f"ipu.ops.{where}", "unigrams", given)
    counts = np.asarray(unigrams, np.float64)
    with np.errstate(over="ignore", divide="ignore"):  # non-finite values are refused
        weights = np.where(counts == 0, 0, np.power(counts, real_number(distortion)))
    if weights.ndim != 1 or not np.isfinite(weights).all() or (weights < 0).any():
        raise ConfigError(
            f"[ipu.ops.{where}] needs unigrams [n] of finite numbers, not negative; got "
            f"{list(weights.shape)} with {weights.min(initial=0)}. Pass counts of the classes."
        )
    num_reserved = whole_number(num_reserved_ids)
    most = LARGEST_INT32 - weights.size
    if num_reserved is None or not 0 <= num_reserved <= most or not weights.sum():
        raise ConfigError(
            f"[ipu.ops.{where}] needs a unigram above 0, and num_reserved_ids of at least 0, at "
            f"most {most}; got {int((weights > 0).sum())} and {num_reserved_ids!r}. Pass counts of "
            "the classes."
        )
    weights = np.concatenate([np.zeros(num_reserved), weights])
    num_sampled, _ = _checked_range(where, num_sampled, unique, int((weights > 0).sum()))
    draw, probability = _by_weights(jnp.asarray(weights, jnp.float32))
    return _sampled(where, key, true_classes, num_sampled, unique, weights.size, draw, probability)


def learned_unigram_candidate_sampler(
    key: Any, counts: Any, true_classes: Any, num_sampled: int, unique: bool
) -> tuple[Candidates, jax.Array]:
    """Draws classes with the frequencies of the true classes so far, then counts the new ones.

    Args:
        key, true_classes, num_sampled, unique: as for `log_uniform_candidate_sampler`.
        counts: float32 [classes]: ones at first, then what the last call returned.
    Returns:
        Candidates, and the new counts.
    Raises:
        ConfigError: as for `log_uniform_candidate_sampler`; counts of a wrong rank or dtype.

    Source: `tf.random.learned_unigram_candidate_sampler`.

    Example:
        >>> found, counts = ipu.ops.learned_unigram_candidate_sampler(
        ...     0, jnp.ones(4), jnp.array([[1, 1, 3]]), 2, False
        ... )
        >>> print(found.true_expected_count, counts)
        [[0.5 0.5 0.5]] [1. 3. 1. 2.]
    """
    where = "learned_unigram_candidate_sampler"
    weights = array(f"ipu.ops.{where}", "counts", counts)
    known = np.ones(1) if isinstance(weights, jax.core.Tracer) else np.asarray(weights).ravel()
    is_wrong = not (known >= 0).all() or not 0 < known.sum() < math.inf
    if weights.ndim != 1 or not weights.size or weights.dtype != jnp.float32 or is_wrong:
        raise ConfigError(
            f"[ipu.ops.{where}] needs counts of float32 [classes], not negative and not all 0; got "
            f"{weights.dtype} {list(weights.shape)}{f' with {min(known)}' if is_wrong else ''}. "
            "Begin with jnp.ones(classes)."
        )
    num_sampled, _ = _checked_range(where, num_sampled, unique, weights.size)
    weights = lax.stop_gradient(weights)
    draw, probability = _by_weights(weights)
    classes = classes_of(where, "true_classes", true_classes, weights.size)
    found = _sampled(where, key, classes, num_sampled, unique, weights.size, draw, probability)
    return found, weights.at[classes.ravel()].add(1.0)


def _by_weights(weights: jax.Array) -> tuple[_Draw, _Probability]:
    """Draws in proportion to weights [classes], by their cumulative sum."""
    ends = jnp.cumsum(weights)
    total = ends[-1]

    def draw(key: jax.Array, count: int) -> jax.Array:
        at = jax.random.uniform(key, (count,), jnp.float32) * total
        last = jnp.searchsorted(ends, total)  # rounding must not lead beyond the last weight
        return jnp.minimum(jnp.searchsorted(ends, at, side="right"), last).astype(jnp.int32)

    def probability(classes: jax.Array) -> jax.Array:
        return weights.at[classes].get(mode="clip") / total

    return draw, probability


def _sampled(
    where: str,
    key: Any,
    true_classes: Any,
    num_sampled: int,
    unique: bool,
    num_classes: int,
    draw: _Draw,
    probability: _Probability,
) -> Candidates:
    classes = classes_of(where, "true_classes", true_classes, num_classes)
    words = seed_words(f"ipu.ops.{where}", key, "key")
    key = jax.random.wrap_key_data(words, impl="threefry2x32")
    if unique:
        sampled, tries = _unique(key, num_sampled, num_classes, draw)
    else:
        sampled, tries = draw(key, num_sampled), jnp.int32(num_sampled)

    def expected(of: jax.Array) -> jax.Array:
        p = probability(of)
        some = -jnp.expm1(tries.astype(jnp.float32) * jnp.log1p(-p))
        return jnp.where(tries == num_sampled, p * num_sampled, some)

    return Candidates(sampled, expected(classes), expected(sampled))


def _unique(
    key: jax.Array, num_sampled: int, num_classes: int, draw: _Draw
) -> tuple[jax.Array, jax.Array]:
    """Draws until num_sampled classes are different; returns them and the number of draws."""
    at_once = 2 * num_sampled

    def more(state: Any) -> Any:
        key, sampled, num_found, tries, is_taken = state
        key, one = jax.random.split(key)
        drawn = draw(one, at_once)
        index = jnp.arange(at_once, dtype=jnp.int32)
        firsts = jnp.full(num_classes, at_once, jnp.int32).at[drawn].min(index)
        is_new = (firsts[drawn] == index) & ~is_taken[drawn]
        place = num_found + jnp.cumsum(is_new, dtype=jnp.int32) - 1
        is_used = is_new & (place < num_sampled)
        sampled = sampled.at[jnp.where(is_used, place, num_sampled)].set(drawn, mode="drop")
        is_last = is_new & (place == num_sampled - 1)
        used = jnp.where(jnp.any(is_last), jnp.argmax(is_last).astype(jnp.int32) + 1, at_once)
        num_found = num_found + jnp.sum(is_used, dtype=jnp.int32)
        return key, sampled, num_found, tries + used, is_taken.at[drawn].set(True)

    zero = jnp.int32(0)
    start = (key, jnp.zeros(num_sampled, jnp.int32), zero, zero, jnp.zeros(num_classes, bool))
    start = jax_compat.varying_like(start, jax.eval_shape(lambda: draw(key, at_once)), key)
    end = lax.while_loop(lambda state: state[2] < num_sampled, more, start)
    return end[1], end[3]


def classes_of(where: str, name: str, given: Any, num_classes: int) -> jax.Array:
    """Class numbers as int32; those out of range only at run time become the nearest class.

    Raises:
        ConfigError: a wrong dtype, or a number known to be out of range.
    """
    classes = array(f"ipu.ops.{where}", name, given)
    if not jnp.issubdtype(classes.dtype, jnp.integer):
        raise ConfigError(
            f"[ipu.ops.{where}] needs {name} of an integer dtype; got {classes.dtype}. "
            "Use astype(jnp.int32)."
        )
    wrong = known_outside(classes, 0, num_classes - 1)
    if wrong is not None:
        raise ConfigError(
            f"[ipu.ops.{where}] needs {name} from 0 to {num_classes - 1}; got {wrong}. "
            "Pass numbers of classes."
        )
    return jnp.clip(as_int32(classes), 0, num_classes - 1)


def _checked_range(where: str, num_sampled: Any, unique: bool, num_classes: Any) -> tuple[int, int]:
    """The numbers of samples and of classes."""
    given = (("num_sampled", num_sampled), ("the number of classes", num_classes))
    num_samples, most = (count(f"ipu.ops.{where}", name, value) for name, value in given)
    if flag(f"ipu.ops.{where}", "unique", unique) and num_samples > most:
        raise ConfigError(
            f"[ipu.ops.{where}] needs at least as many classes as unique samples; got "
            f"{num_classes} and num_sampled = {num_sampled}. Pass unique=False or fewer samples."
        )
    return num_samples, most
