"""Sampled losses against loops over examples in NumPy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu

ops = ipu.ops
BATCH, DIM, CLASSES, TRUE, SAMPLED = 5, 4, 11, 2, 6
RNG = np.random.default_rng(0)
WEIGHTS = RNG.normal(size=(CLASSES, DIM)).astype(np.float32)
BIASES = RNG.normal(size=CLASSES).astype(np.float32)
INPUTS = RNG.normal(size=(BATCH, DIM)).astype(np.float32)
LABELS = RNG.integers(0, CLASSES, (BATCH, TRUE))
FOUND = ops.Candidates(
    RNG.permutation(CLASSES)[:SAMPLED].astype(np.int32),
    RNG.uniform(0.2, 1, (BATCH, TRUE)).astype(np.float32),
    RNG.uniform(0.2, 1, SAMPLED).astype(np.float32),
)


def expected(name: str, remove_hits: bool, weights: np.ndarray = WEIGHTS) -> np.ndarray:
    losses = []
    for b in range(BATCH):
        true = [
            INPUTS[b] @ weights[c] + BIASES[c] - np.log(FOUND.true_expected_count[b, t])
            for t, c in enumerate(LABELS[b])
        ]
        sampled = [
            INPUTS[b] @ weights[c] + BIASES[c] - np.log(FOUND.sampled_expected_count[s])
            for s, c in enumerate(FOUND.sampled)
            if not (remove_hits and c in LABELS[b])
        ]
        if name == "nce_loss":
            true_loss = sum(np.log1p(np.exp(x)) - x / TRUE for x in true)
            losses.append(true_loss + sum(np.log1p(np.exp(x)) for x in sampled))
        else:
            everything = np.array(true + sampled)
            losses.append(np.log(np.exp(everything).sum()) - np.mean(true))
    return np.array(losses)


@pytest.mark.parametrize("platform", ["ipu", "cpu"])
@pytest.mark.parametrize("remove_hits", [False, True])
@pytest.mark.parametrize("name", ["nce_loss", "sampled_softmax_loss"])
def test_losses(platform: str, name: str, remove_hits: bool):
    assert np.isin(LABELS, FOUND.sampled).any()

    def run(weights, inputs):
        return getattr(ops, name)(
            weights,
            BIASES,
            LABELS,
            inputs,
            SAMPLED,
            CLASSES,
            TRUE,
            FOUND,
            remove_accidental_hits=remove_hits,
        )

    operands = jax.device_put((WEIGHTS, INPUTS), jax.devices(platform)[0])
    np.testing.assert_allclose(jax.jit(run)(*operands), expected(name, remove_hits), rtol=2e-5)


@pytest.mark.parametrize("name", ["nce_loss", "sampled_softmax_loss"])
def test_gradient_by_differences(name: str):
    def total(weights):
        loss = getattr(ops, name)
        return jnp.sum(loss(weights, BIASES, LABELS, INPUTS, SAMPLED, CLASSES, TRUE, FOUND))

    grad = np.asarray(jax.jit(jax.grad(total))(WEIGHTS))
    direction = RNG.normal(size=WEIGHTS.shape)
    remove = name == "sampled_softmax_loss"
    up, down = (
        expected(name, remove, WEIGHTS.astype(np.float64) + step * direction).sum()
        for step in (1e-5, -1e-5)
    )
    np.testing.assert_allclose((grad * direction).sum(), (up - down) / 2e-5, rtol=1e-4)


def test_tables_in_parts_and_seeds():
    parts = [WEIGHTS[:4], WEIGHTS[4:]]
    arguments = (BIASES, LABELS, INPUTS, SAMPLED, CLASSES, TRUE)
    whole = ops.nce_loss(WEIGHTS, *arguments, seed=3)
    np.testing.assert_array_equal(ops.nce_loss(parts, *arguments, seed=3), whole)
    assert (np.asarray(ops.nce_loss(WEIGHTS, *arguments, seed=4)) != whole).any()
    found = ops.log_uniform_candidate_sampler(3, LABELS, SAMPLED, True, CLASSES)
    np.testing.assert_array_equal(ops.nce_loss(WEIGHTS, *arguments, found), whole)


@pytest.mark.parametrize("name", ["nce_loss", "sampled_softmax_loss"])
def test_without_a_seed_each_run_draws_others(name: str):
    loss = jax.jit(getattr(ops, name), static_argnums=(4, 5, 6))
    arguments = (WEIGHTS, BIASES, LABELS, INPUTS, SAMPLED, CLASSES, TRUE)
    ipu.reset_seed(8)
    first = [np.asarray(loss(*arguments)) for _ in range(4)]
    assert any((each != first[0]).any() for each in first)
    ipu.reset_seed(8)
    np.testing.assert_array_equal(loss(*arguments), first[0])


def test_training_with_a_sampled_softmax():
    """The full softmax finds the classes after training with four of sixty-four sampled."""
    classes, dim = 64, 16
    x = jax.random.normal(jax.random.key(0), (classes, dim))
    labels = jnp.arange(classes)[:, None]

    def step(params, key):
        def loss(params):
            weights, biases = params
            found = ops.uniform_candidate_sampler(key, labels, 4, True, classes)
            losses = ops.sampled_softmax_loss(weights, biases, labels, x, 4, classes, 1, found)
            return jnp.mean(losses)

        grads = jax.grad(loss)(params)
        return jax.tree.map(lambda p, g: p - 8 * g, params, grads), None

    start = (jnp.zeros((classes, dim)), jnp.zeros(classes))
    keys = jax.random.split(jax.random.key(1), 150)
    (weights, biases), _ = jax.jit(lambda s, k: jax.lax.scan(step, s, k))(start, keys)
    found = jnp.argmax(x @ weights.T + biases, 1)
    assert (found == labels[:, 0]).mean() > 0.95


REFUSED = [
    (lambda w, b, y, x: ops.nce_loss(w, b, y, x, 3, CLASSES, TRUE, FOUND), "of 3 classes, with"),
    (lambda w, b, y, x: ops.nce_loss(w, b, y, x, 3, 12, TRUE, seed=0), r"got weights \[11, 4\]"),
    (lambda w, b, y, x: ops.nce_loss(w, b, y, x, 3, CLASSES, 1, seed=0), r"got labels \[5, 2\]"),
    (lambda w, b, y, x: ops.nce_loss(w, b, y, x.T, 3, CLASSES, TRUE, seed=0), r"got inputs \[4, 5"),
]


@pytest.mark.parametrize(("call", "text"), REFUSED)
def test_refused(call, text: str):
    with pytest.raises(ipu.ConfigError, match=text):
        call(WEIGHTS, BIASES, LABELS, INPUTS)
