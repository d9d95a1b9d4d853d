"""Cross-entropy, and CTC with its beam search, in probabilities instead of logarithms."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

import ipujax as ipu
from tests.fuzz.library.case import Case, Draw, Numbers, generator, normal


@generator("nn.cross_entropy")
def cross_entropy(d: Draw) -> Case:
    shape, dtype = d.shape(1, 3), d.dtype()
    classes, scale = shape[-1], d.one(1.0, 1.0, 0.5, 64.0)
    label_dtype = d.one(np.int32, np.uint32, np.int8, np.uint8)
    masked = d.chance(0.4)

    def draw(numbers: Numbers) -> Any:
        labels = numbers.integers(0, max(classes, 1), shape[:-1]).astype(label_dtype)
        if masked:
            wrong = np.array(ipu.nn.MASKED_LABEL).astype(label_dtype)
            labels = np.where(numbers.random(labels.shape) < 0.5, wrong, labels)
        return normal(numbers, shape, dtype), labels

    def reference(logits: Any, labels: Any) -> Any:
        if not classes:
            return jnp.zeros(labels.shape)
        powers = jnp.exp(logits)
        probabilities = powers / jnp.sum(powers, -1, keepdims=True)
        safe = jnp.clip(labels.astype(jnp.int64), 0, classes - 1)
        picked = jnp.take_along_axis(probabilities, safe[..., None], -1)[..., 0]
        is_class = (labels.astype(jnp.int64) >= 0) & (labels.astype(jnp.int64) < classes)
        loss = jnp.where(is_class, -jnp.log(picked), 0)
        return scale * loss - lax.stop_gradient(scale * loss - loss)

    return Case(
        lambda logits, labels: ipu.nn.cross_entropy(logits, labels, loss_scale=scale),
        reference,
        draw,
        factor=2,
        text=f"loss_scale={scale}, masked={masked}",
    )


def _probabilities(data: Any, are_logits: bool) -> Any:
    powers = jnp.exp(data)
    return powers / jnp.sum(powers, -1, keepdims=True) if are_logits else powers


def _ctc(data: Any, labels: Any, lengths: Any, counts: Any, blank: int, are_logits: bool) -> Any:
    """The sum over alignments, step by step, as a probability."""
    p = _probabilities(data, are_logits)
    steps, batch, _ = p.shape
    most = labels.shape[1]
    states = jnp.full((batch, 2 * most + 1), blank).at[:, 1::2].set(labels)
    two_before = jnp.pad(states, ((0, 0), (2, 0)), constant_values=blank)[:, : 2 * most + 1]
    skips = (states != blank) & (states != two_before)
    alpha = jnp.zeros((batch, 2 * most + 1)).at[:, 0].set(1.0)

    def step(alpha: Any, t: Any) -> Any:
        one = jnp.pad(alpha, ((0, 0), (1, 0)))[:, : 2 * most + 1]
        two = jnp.pad(alpha, ((0, 0), (2, 0)))[:, : 2 * most + 1]
        emitted = jnp.take_along_axis(p[t], states, 1)
        following = (alpha + one + jnp.where(skips, two, 0)) * emitted
        return jnp.where((t < lengths)[:, None], following, alpha), None

    alpha, _ = lax.scan(step, alpha, jnp.arange(steps))
    total = jnp.take_along_axis(alpha, 2 * counts[:, None], 1)[:, 0]
    before = jnp.take_along_axis(alpha, jnp.maximum(2 * counts - 1, 0)[:, None], 1)[:, 0]
    total = total + jnp.where(counts > 0, before, 0)
    possible = total > 0
    return jnp.where(possible, -jnp.log(jnp.where(possible, total, 1)), jnp.inf)


@generator("nn.ctc_loss", "nn.ctc_loss_with_log_probs")
def ctc_loss(d: Draw, name: str) -> Case:
    steps, batch, classes = d.integer(1, 8), d.integer(1, 4), d.integer(2, 5)
    most, dtype = d.integer(0, 4), d.dtype()
    blank = d.integer(-classes, classes - 1)
    are_logits = name == "nn.ctc_loss"
    with_lengths = d.chance(0.7)

    def draw(numbers: Numbers) -> Any:
        data = numbers.standard_normal((steps, batch, classes))
        if not are_logits:
            data = np.log(np.exp(data) / np.exp(data).sum(-1, keepdims=True))
        labels = numbers.integers(0, classes - 1, (batch, most))
        labels = (labels + (labels >= blank % classes)).astype(np.int32)
        lengths = numbers.integers(0, steps + 1, batch).astype(np.int32)
        counts = numbers.integers(0, most + 1, batch).astype(np.int32)
        return (data.astype(dtype), labels, *((lengths, counts) if with_lengths else ()))

    def reference(data: Any, labels: Any, *lengths: Any) -> Any:
        whole = (jnp.full(batch, steps), jnp.full(batch, most))
        return _ctc(data, labels, *(lengths or whole), blank % classes, are_logits)

    function = getattr(ipu.nn, name.removeprefix("nn."))
    return Case(
        lambda data, labels, *lengths: function(data, labels, *lengths, blank_index=blank),
        reference,
        draw,
        factor=4,
        text=f"blank_index={blank}",
    )


def _beams(logs: Any, blank: int, width: int) -> list[tuple[float, tuple[int, ...]]]:
    """Prefix beam search of one sequence: (probability, labels), the best first."""
    beams = {(): (1.0, 0.0)}
    for row in np.exp(logs):
        found: dict[tuple[int, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
        for labels, (ends_blank, ends_label) in beams.items():
            found[labels][0] += (ends_blank + ends_label) * row[blank]
            if labels:
                found[labels][1] += ends_label * row[labels[-1]]
            for c in range(len(row)):
                if c != blank:
                    repeats = labels and labels[-1] == c
                    found[(*labels, c)][1] += row[c] * (
                        ends_blank if repeats else ends_blank + ends_label
                    )
        best = sorted(found.items(), key=lambda item: -sum(item[1]))
        beams = {labels: tuple(p) for labels, p in best[:width] if sum(p) > 0}
    return sorted(((sum(p), labels) for labels, p in beams.items()), reverse=True)


@generator("nn.ctc_beam_search_decoder", "nn.ctc_beam_search_decoder_with_log_probs")
def beam_search(d: Draw, name: str) -> Case:
    steps, batch, classes = d.integer(1, 7), d.integer(1, 3), d.integer(2, 5)
    width = d.integer(1, 12)
    paths, blank = d.integer(1, min(width, 3)), d.integer(-classes, classes - 1)
    are_logits = not name.endswith("log_probs")

    def draw(numbers: Numbers) -> Any:
        data = 2 * numbers.standard_normal((steps, batch, classes))
        if not are_logits:
            data = np.log(np.exp(data) / np.exp(data).sum(-1, keepdims=True))
        return data.astype(np.float32), numbers.integers(0, steps + 1, batch).astype(np.int32)

    def function(data: Any, lengths: Any) -> Any:
        decode = getattr(ipu.nn, name.removeprefix("nn."))
        losses, counts, labels = decode(
            data, lengths, beam_width=width, top_paths=paths, blank_index=blank
        )
        exists = jnp.isfinite(losses)
        return losses, jnp.where(exists, counts, 0), jnp.where(exists[..., None], labels, -1)

    def reference(data: Any, lengths: Any) -> Any:
        p = np.asarray(_probabilities(np.asarray(data), are_logits))
        losses = np.full((batch, paths), np.inf)
        counts = np.zeros((batch, paths), np.int32)
        labels = np.full((batch, paths, steps), -1)
        for n in range(batch):
            found = _beams(np.log(p[: int(lengths[n]), n]), blank % classes, width)[:paths]
            for k, (probability, sequence) in enumerate(found):
                losses[n, k], counts[n, k] = -np.log(probability), len(sequence)
                labels[n, k] = blank % classes
                labels[n, k, : len(sequence)] = sequence
        return losses, counts, labels

    return Case(
        function,
        reference,
        draw,
        smooth=(),
        order=0,
        compiled=False,
        factor=4,
        text=f"beam_width={width}, top_paths={paths}, blank_index={blank}",
    )
