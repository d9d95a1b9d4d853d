"""Samplers against probabilities by formula, and against counts over many draws."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu

ops = ipu.ops
UNIGRAMS = (5.0, 0.0, 1.0, 2.0)
LEARNED = np.array([1, 4, 2, 1, 8], np.float32)


def log_uniform(count: int) -> np.ndarray:
    c = np.arange(count)
    return (np.log(c + 2) - np.log(c + 1)) / np.log(count + 1)


def fixed(distortion: float) -> np.ndarray:
    weights = np.array([0, 0, *(u**distortion if u else 0 for u in UNIGRAMS)])
    return weights / weights.sum()


#: (key, true classes, how many, unique) -> Candidates; probabilities of the classes
SAMPLERS = {
    "log_uniform": (
        lambda *a: ops.log_uniform_candidate_sampler(*a, 6),
        log_uniform(6),
    ),
    "uniform": (lambda *a: ops.uniform_candidate_sampler(*a, 6), np.full(6, 1 / 6)),
    "fixed": (
        lambda *a: ops.fixed_unigram_candidate_sampler(*a, UNIGRAMS, 0.5, 2),
        fixed(0.5),
    ),
    "learned": (
        lambda *a: ops.learned_unigram_candidate_sampler(a[0], LEARNED, *a[1:])[0],
        LEARNED / LEARNED.sum(),
    ),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_frequencies(name: str):
    sampler, p = SAMPLERS[name]
    count = 20000
    classes = np.arange(len(p))
    found = jax.jit(lambda key: sampler(key, classes, count, False))(jax.random.key(1))
    assert found.sampled.dtype == np.int32
    seen = np.bincount(found.sampled, minlength=len(p))
    assert len(seen) == len(p)
    assert (abs(seen - count * p) <= 5 * np.sqrt(count * p * (1 - p))).all(), (seen, count * p)
    np.testing.assert_allclose(found.true_expected_count, count * p, rtol=1e-5)
    np.testing.assert_allclose(found.sampled_expected_count, (count * p)[found.sampled], rtol=1e-5)


@pytest.mark.parametrize("name", SAMPLERS)
def test_unique_samples(name: str):
    """Inclusion frequencies are those of drawing until enough classes are different."""
    sampler, p = SAMPLERS[name]
    classes, num_sampled, num_keys = np.arange(len(p)), 3, 2000
    keys = jax.random.split(jax.random.key(2), num_keys)
    with jax.default_device(jax.devices("cpu")[0]):
        found = jax.jit(jax.vmap(lambda key: sampler(key, classes, num_sampled, True)))(keys)
    assert all(len(set(row)) == num_sampled for row in found.sampled.tolist())
    seen = np.bincount(np.ravel(found.sampled), minlength=len(p)) / num_keys
    want = _inclusion(p, num_sampled)
    bound = 5 * np.sqrt(np.maximum(want * (1 - want), 0) / num_keys)
    assert (abs(seen - want) <= bound + 1e-9).all()
    # The expected counts belong to some whole number of draws, of at least num_sampled.
    rarest = int(np.argmin(np.where(p == 0, 1, p)))
    counts = np.asarray(found.true_expected_count, np.float64)[:, rarest]
    more = ~np.isclose(counts, num_sampled * p[rarest], rtol=1e-5)
    assert more.mean() > 0.1
    tries = np.log1p(-counts[more]) / np.log1p(-p[rarest])
    np.testing.assert_allclose(tries, np.round(tries), atol=2e-2)
    assert (np.round(tries) > num_sampled).all()


def _inclusion(p: np.ndarray, num_sampled: int) -> np.ndarray:
    """How likely each class is among the first num_sampled different ones, by enumeration."""
    total = np.zeros(len(p))

    def walk(chosen: tuple[int, ...], probability: float) -> None:
        if len(chosen) == num_sampled:
            total[list(chosen)] += probability
            return
        rest = 1 - p[list(chosen)].sum()
        for c in range(len(p)):
            if c not in chosen and p[c]:
                walk((*chosen, c), probability * p[c] / rest)

    walk((), 1.0)
    return total


def test_on_the_ipu_as_on_the_cpu():
    sampler, _ = SAMPLERS["log_uniform"]
    sample = jax.jit(lambda key: sampler(key, np.array([[0, 1]]), 5, True))
    ends = [
        sample(jax.device_put(jax.random.key(7), jax.devices(platform)[0]))
        for platform in ("ipu", "cpu")
    ]
    np.testing.assert_array_equal(ends[0].sampled, ends[1].sampled)
    np.testing.assert_allclose(ends[0].true_expected_count, ends[1].true_expected_count, rtol=1e-5)


def test_learned_counts():
    classes = jnp.array([[1, 1], [4, 0]])
    _, counts = ops.learned_unigram_candidate_sampler(0, LEARNED, classes, 2, False)
    assert counts.tolist() == [2, 6, 2, 1, 9]


def test_all_classes():
    found = ops.uniform_candidate_sampler(3, jnp.array([0]), 4, True, 4)
    assert sorted(found.sampled.tolist()) == [0, 1, 2, 3]
    one = ops.log_uniform_candidate_sampler(3, jnp.array([0]), 1, True, 1)
    assert (one.sampled.tolist(), one.true_expected_count.tolist()) == ([0], [1.0])


REFUSED = [
    (lambda: ops.uniform_candidate_sampler(0, [1.0], 2, True, 4), "true_classes .*got float32"),
    (lambda: ops.uniform_candidate_sampler(0, [1], 0, True, 4), "num_sampled to be .*got 0"),
    (lambda: ops.uniform_candidate_sampler(0, [1], 2, True, 0), "number of classes to be .*got 0"),
    (lambda: ops.log_uniform_candidate_sampler(0, [1], 5, True, 4), "got 4 and num_sampled = 5"),
    (lambda: ops.fixed_unigram_candidate_sampler(0, [1], 3, True, [1, 0, 2]), "got 2 and num_samp"),
    (lambda: ops.fixed_unigram_candidate_sampler(0, [1], 1, True, [1, -1]), "not negative"),
    (lambda: ops.fixed_unigram_candidate_sampler(0, [1], 1, True, [0, 0]), "unigram above 0"),
    (lambda: ops.learned_unigram_candidate_sampler(0, [1], [1], 1, True), "counts of float32.*int"),
]


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_refused(call, text: str):
    with pytest.raises(ipu.ConfigError, match=text):
        call()
