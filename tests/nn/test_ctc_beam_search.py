"""ipu.nn.ctc_beam_search_decoder against all alignments, and its definition on the CPU."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import Any

import jax
import numpy as np
import pytest

from ipujax.nn import ctc_beam_search_decoder, ctc_beam_search_decoder_with_log_probs

CPU = jax.devices("cpu")[0]


def all_sequences(logits: Any, blank: int) -> list[tuple[float, tuple[int, ...]]]:
    """(probability, labels) of every sequence, the most probable first."""
    logs = np.asarray(jax.nn.log_softmax(logits, -1), np.float64)
    sums: dict[tuple[int, ...], float] = defaultdict(float)
    for path in itertools.product(range(logs.shape[1]), repeat=len(logs)):
        merged = [c for t, c in enumerate(path) if c != blank and (t == 0 or path[t - 1] != c)]
        sums[tuple(merged)] += np.exp(sum(logs[t, c] for t, c in enumerate(path)))
    return sorted(((p, labels) for labels, p in sums.items()), reverse=True)


@pytest.mark.parametrize("blank", [0, 2])
def test_beams_that_hold_all_sequences_are_exact(blank: int) -> None:
    rng = np.random.default_rng(blank)
    logits = rng.standard_normal((4, 3, 3)).astype(np.float32) * 2
    lengths = np.array([4, 2, 3], np.int32)
    found = jax.jit(
        lambda *o: ctc_beam_search_decoder(*o, beam_width=32, top_paths=3, blank_index=blank)
    )(logits, lengths)
    for n in range(3):
        wanted = all_sequences(logits[: lengths[n], n], blank)[:3]
        for k, (probability, labels) in enumerate(wanted):
            assert found.losses[n, k] == pytest.approx(-np.log(probability), rel=1e-4, abs=1e-5)
            assert tuple(found.labels[n, k, : found.lengths[n, k]].tolist()) == labels
            assert (found.labels[n, k, found.lengths[n, k] :] == blank).all()


def test_narrow_beams_are_those_of_the_definition() -> None:
    rng = np.random.default_rng(1)
    logs = jax.nn.log_softmax(rng.standard_normal((12, 2, 5)).astype(np.float32) * 3, -1)

    def decode(x: Any) -> Any:
        return ctc_beam_search_decoder_with_log_probs(x, beam_width=4, top_paths=2)

    with jax.default_device(CPU):
        wanted = jax.jit(decode)(logs)
    found = jax.jit(decode)(logs)
    np.testing.assert_allclose(found.losses, wanted.losses, rtol=1e-5)
    np.testing.assert_array_equal(found.lengths, wanted.lengths)
    np.testing.assert_array_equal(found.labels, wanted.labels)


def _decode(x: Any, lengths: Any) -> Any:
    return ctc_beam_search_decoder_with_log_probs(
        x, lengths, beam_width=7, top_paths=5, blank_index=1
    )


DECODE = jax.jit(_decode)  # compiled once for each platform


@pytest.mark.parametrize("kind", ["random", "ties", "uniform", "impossible", "positive"])
def test_paths_are_those_of_the_definition(kind: str) -> None:
    rng = np.random.default_rng(3)
    logs = np.array(jax.nn.log_softmax(rng.standard_normal((9, 6, 4)).astype(np.float32) * 3, -1))
    if kind == "ties":
        logs = np.round(logs)
    elif kind == "uniform":
        logs[:] = -1
    elif kind == "impossible":
        logs[rng.random(logs.shape) < 0.5] = -np.inf
    elif kind == "positive":
        logs += 2
    lengths = np.array([9, 0, 1, 2, 8, 5], np.int32)
    with jax.default_device(CPU):
        wanted = DECODE(jax.device_put(logs, CPU), lengths)
    found = DECODE(logs, lengths)
    np.testing.assert_allclose(found.losses, wanted.losses, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(found.lengths, wanted.lengths)
    np.testing.assert_array_equal(found.labels, wanted.labels)


def test_nan_stays_in_its_sequence() -> None:
    logs = np.full((9, 6, 4), -1.0, np.float32)
    lengths = np.full(6, 9, np.int32)
    wanted = DECODE(logs, lengths)
    logs[4, 2, 3] = np.nan
    found = DECODE(logs, lengths)
    others = np.array([0, 1, 3, 4, 5])
    np.testing.assert_array_equal(found.losses[others], wanted.losses[others])
    np.testing.assert_array_equal(found.labels[others], wanted.labels[others])
    assert np.isinf(found.losses[2, 0])  # the same as the definition: no number is above


def test_sequences_that_do_not_exist_have_infinite_losses() -> None:
    found = ctc_beam_search_decoder(np.zeros((1, 1, 2), np.float32), beam_width=4, top_paths=3)
    assert np.isfinite(found.losses[0, :2]).all()
    assert np.isinf(found.losses[0, 2])
    empty = ctc_beam_search_decoder(np.zeros((0, 1, 2), np.float32), beam_width=2, top_paths=2)
    np.testing.assert_array_equal(empty.losses, [[0, np.inf]])


def test_bad_input_is_named() -> None:
    logits = np.zeros((2, 1, 3), np.float32)
    with pytest.raises(ValueError, match="top_paths=5 and beam_width=4"):
        ctc_beam_search_decoder(logits, beam_width=4, top_paths=5)
    with pytest.raises(ValueError, match="needs a blank_index among the 3 classes; got 3"):
        ctc_beam_search_decoder(logits, blank_index=3)
