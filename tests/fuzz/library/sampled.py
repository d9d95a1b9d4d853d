"""Samples of classes, and losses over them."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import ipujax as ipu
from tests.fuzz.library.case import Case, Draw, Numbers, generator, normal


def _probabilities(name: str, classes: int, unigrams: Any) -> np.ndarray:
    c = np.arange(classes, dtype=np.float64)
    if name.startswith("log_uniform"):
        return (np.log(c + 2) - np.log(c + 1)) / np.log(classes + 1)
    return (
        np.full(classes, 1 / classes) if name.startswith("uniform") else unigrams / unigrams.sum()
    )


@generator(
    "ops.log_uniform_candidate_sampler",
    "ops.uniform_candidate_sampler",
    "ops.fixed_unigram_candidate_sampler",
    "ops.learned_unigram_candidate_sampler",
)
def sampler(d: Draw, name: str) -> Case:
    """Samples are classes, different where they must be, and expected as often as by formula."""
    short = name.removeprefix("ops.")
    classes, unique = d.integer(1, 12), d.chance(0.5)
    num_sampled = d.integer(1, classes if unique else 12)
    shape = d.shape(1, 2, 12)
    unigrams = np.array([d.integer(1, 9) for _ in range(classes)], np.float64)

    def draw(numbers: Numbers) -> Any:
        seed = numbers.integers(0, 2**32, 2, dtype=np.uint32)
        return seed, numbers.integers(0, classes, shape).astype(np.int32)

    def function(seed: Any, true: Any) -> Any:
        key = jax.random.wrap_key_data(seed, impl="threefry2x32")
        sample = getattr(ipu.ops, short)
        counts = ()
        if short.startswith("learned"):
            weights = jnp.asarray(unigrams, jnp.float32)
            found, *counts = sample(key, weights, true, num_sampled, unique)
        elif short.startswith("fixed"):
            found = sample(key, true, num_sampled, unique, unigrams)
        else:
            found = sample(key, true, num_sampled, unique, classes)
        ordered = jnp.sort(found.sampled)
        is_new = jnp.all(ordered[1:] != ordered[:-1]) if unique else True
        good = jnp.all((ordered >= 0) & (ordered < classes)) & is_new
        expected = found.true_expected_count
        # With rejections they depend on how often was drawn.
        return good, jnp.zeros_like(expected) if unique else expected, *counts

    def reference(seed: Any, true: Any) -> Any:
        p = jnp.asarray(_probabilities(short, classes, unigrams))
        expected = jnp.zeros(shape) if unique else p[true] * num_sampled
        counts = ()
        if short.startswith("learned"):
            hot = true.reshape(-1, 1) == jnp.arange(classes)
            counts = (jnp.asarray(unigrams) + jnp.sum(hot, 0),)
        return jnp.asarray(True), expected, *counts

    text = f"{num_sampled} of {classes}, unique={unique}"
    return Case(function, reference, draw, smooth=(), order=0, factor=10, text=text)


@generator("ops.nce_loss", "ops.sampled_softmax_loss")
def sampled_loss(d: Draw, name: str) -> Case:
    classes, dim, batch = d.integer(1, 9), d.integer(1, 5), d.integer(1, 5)
    num_true, num_sampled = d.integer(1, 3), d.integer(1, 6)
    dtype, remove = d.dtype("float32", "float16"), d.chance(0.5)

    def draw(numbers: Numbers) -> Any:
        return (
            normal(numbers, (classes, dim), dtype),
            normal(numbers, (classes,), dtype),
            normal(numbers, (batch, dim), dtype),
            numbers.integers(0, classes, (batch, num_true)).astype(np.int32),
            numbers.integers(0, classes, num_sampled).astype(np.int32),
            (0.2 + numbers.random((batch, num_true))).astype(np.float32),
            (0.2 + numbers.random(num_sampled)).astype(np.float32),
        )

    def function(w: Any, b: Any, x: Any, labels: Any, *found: Any) -> Any:
        loss = getattr(ipu.ops, name.removeprefix("ops."))
        given = ipu.ops.Candidates(found[0], found[1], found[2])
        sizes = (num_sampled, classes, num_true, given)
        return loss(w, b, labels, x, *sizes, remove_accidental_hits=remove)

    def reference(w: Any, b: Any, x: Any, labels: Any, found: Any, often: Any, drawn: Any) -> Any:
        logits = x @ w.T + b
        true = jnp.take_along_axis(logits, labels, 1) - jnp.log(often)
        sampled = jnp.take(logits, found, 1) - jnp.log(drawn)
        hit = jnp.any(labels[:, :, None] == found, 1) if remove else jnp.zeros(sampled.shape, bool)
        if name == "ops.nce_loss":
            softplus = jnp.where(hit, 0, jnp.log(1 + jnp.exp(sampled)))
            return jnp.sum(jnp.log(1 + jnp.exp(true)) - true / num_true, 1) + jnp.sum(softplus, 1)
        powers = jnp.sum(jnp.exp(true), 1) + jnp.sum(jnp.where(hit, 0, jnp.exp(sampled)), 1)
        return jnp.log(powers) - jnp.sum(true, 1) / num_true

    return Case(
        function,
        reference,
        draw,
        smooth=(0, 1, 2),
        factor=3,
        text=f"remove_accidental_hits={remove}",
    )
