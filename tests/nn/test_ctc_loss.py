"""ipu.nn.ctc_loss against optax, all alignments one by one, and its definition on the CPU."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import ipujax as ipu
from ipujax.nn import ctc_loss, ctc_loss_with_log_probs

CPU = jax.devices("cpu")[0]


def problem(steps: int, batch: int, classes: int, most: int, seed: int = 0) -> Any:
    """Logits, labels (no blanks, 0), data lengths and label lengths."""
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal((steps, batch, classes)).astype(np.float32)
    labels = rng.integers(1, classes, (batch, most)).astype(np.int32)
    lengths = rng.integers(max(1, steps // 2), steps + 1, batch).astype(np.int32)
    counts = rng.integers(0, most + 1, batch).astype(np.int32)
    return logits, labels, lengths, counts


def by_enumeration(logits: Any, labels: list[int], blank: int) -> float:
    """-log of the sum over all paths that collapse to the labels."""
    logs = np.asarray(jax.nn.log_softmax(logits, -1), np.float64)
    total = 0.0
    for path in itertools.product(range(logs.shape[1]), repeat=len(logs)):
        merged = [c for t, c in enumerate(path) if c != blank and (t == 0 or path[t - 1] != c)]
        if merged == labels:
            total += np.exp(sum(logs[t, c] for t, c in enumerate(path)))
    return float(-np.log(total)) if total else float("inf")


def by_optax(logits: Any, labels: Any, lengths: Any, counts: Any) -> Any:
    times, places = np.arange(logits.shape[0]), np.arange(labels.shape[1])
    return optax.ctc_loss(
        jnp.moveaxis(jnp.asarray(logits), 0, 1),
        jnp.float32(times >= lengths[:, None]),
        labels,
        jnp.float32(places >= counts[:, None]),
    )


@pytest.mark.parametrize("seed", range(3))
def test_losses_sum_over_all_alignments(seed: int) -> None:
    logits, labels, lengths, counts = problem(4, 4, 3, 2, seed)
    blank = seed
    labels = np.where(labels == blank, (blank + 1) % 3, labels)
    found = jax.jit(lambda *o: ctc_loss(*o, blank_index=blank))(logits, labels, lengths, counts)
    for n in range(4):
        wanted = by_enumeration(logits[: lengths[n], n], list(labels[n, : counts[n]]), blank)
        assert found[n] == pytest.approx(wanted, rel=1e-5)


def test_losses_and_gradients_are_those_of_optax() -> None:
    operands = problem(20, 5, 8, 6)
    with jax.default_device(CPU):
        wanted = jax.value_and_grad(lambda x: by_optax(x, *operands[1:]).sum())(operands[0])
    found = jax.jit(jax.value_and_grad(lambda x: ctc_loss(x, *operands[1:]).sum()))(operands[0])
    np.testing.assert_allclose(found[0], wanted[0], rtol=2e-5)
    np.testing.assert_allclose(found[1], wanted[1], atol=2e-5)


def in_doubles(logs: Any, labels: list[int], blank: int) -> tuple[float, Any]:
    """The loss and its gradient by both recursions, in logarithms and float64."""
    with np.errstate(divide="ignore", invalid="ignore"):
        states = [blank]
        for label in labels:
            states += [label, blank]
        steps, size = len(logs), len(states)

        def sums(logs: Any, states: list[int]) -> Any:
            table = np.full((steps, size), -np.inf)
            for t, s in itertools.product(range(steps), range(size)):
                before = [table[t - 1, s]] if t else [0.0 if s < 2 else -np.inf]
                if t and s > 0:
                    before.append(table[t - 1, s - 1])
                if t and s > 1 and states[s] not in (blank, states[s - 2]):
                    before.append(table[t - 1, s - 2])
                table[t, s] = np.logaddexp.reduce(before) + logs[t, states[s]]
            return table

        first, last = sums(logs, states), sums(logs[::-1], states[::-1])[::-1, ::-1]
        total = np.logaddexp.reduce(first[-1, max(size - 2, 0) :])
        gradient = np.zeros_like(logs)
        for s, c in enumerate(states):
            gradient[:, c] -= np.exp(first[:, s] + last[:, s] - logs[:, c] - total)
    return -float(total), gradient


@pytest.mark.parametrize(("scale", "near"), [(1, 2e-6), (10, 2e-6), (30, 1e-4), (400, 1e-2)])
def test_long_sequences_of_any_range_have_exact_gradients(scale: float, near: float) -> None:
    """Probabilities from about 1 to far below doubles: there sums of logarithms up to 3e4."""
    logits, labels, _, _ = problem(60, 4, 6, 20)
    counts = np.array([20, 0, 1, 13], np.int32)
    lengths = np.array([60, 60, 1, 40], np.int32)
    logs = np.asarray(jax.nn.log_softmax(logits * scale, -1))

    def loss(x: Any) -> Any:
        return ctc_loss_with_log_probs(x, labels, lengths, counts)

    losses, gradient = jax.jit(
        jax.value_and_grad(lambda x: (lambda y: (y.sum(), y))(loss(x)), has_aux=True)
    )(logs)
    np.testing.assert_allclose(jax.jit(loss)(logs), losses[1], rtol=2e-7)  # no gradient is made
    for n in range(4):
        wanted = in_doubles(
            logs[: lengths[n], n].astype(np.float64), list(labels[n, : counts[n]]), 0
        )
        assert losses[1][n] == pytest.approx(wanted[0], rel=2e-6)
        np.testing.assert_allclose(gradient[: lengths[n], n], wanted[1], atol=near)
        assert not gradient[lengths[n] :, n].any()


def test_without_a_gradient_only_the_forward_recursion_runs() -> None:
    logits, *integers = problem(32, 4, 8, 6)

    def loss(x: Any) -> Any:
        return ctc_loss(x, *integers)

    def cycles(function: Any) -> float:
        return float(jax.jit(function).lower(logits).compile().cost_analysis()["cycles"])

    assert "ctc_loss_trained" not in str(jax.make_jaxpr(loss)(logits))
    with_gradient = jax.value_and_grad(lambda x: loss(x).sum())
    assert str(jax.make_jaxpr(with_gradient)(logits)).count("ipu_ctc_loss") == 1
    assert cycles(loss) < 0.55 * cycles(with_gradient)


def test_log_probabilities_have_their_own_gradient() -> None:
    logits, *integers = problem(6, 3, 4, 2)
    logs = jax.nn.log_softmax(logits, -1)

    def loss(logs: Any) -> Any:
        return (ctc_loss_with_log_probs(logs, *integers) ** 2).sum()

    with jax.default_device(CPU):
        wanted = jax.jit(jax.grad(loss))(logs)
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(logs), wanted, atol=2e-5, rtol=2e-5)


def test_second_derivatives_are_those_of_the_definition() -> None:
    logits, *integers = problem(4, 2, 3, 1)

    def twice(x: Any) -> Any:
        slope = jax.grad(lambda x: (ctc_loss(x, *integers) ** 2).sum())
        return jax.grad(lambda x: (slope(x) ** 2).sum())(x)

    with jax.default_device(CPU):
        wanted = jax.jit(twice)(logits)
    np.testing.assert_allclose(jax.jit(twice)(logits), wanted, atol=1e-4, rtol=1e-4)


def test_impossible_labels_and_empty_data() -> None:
    logits = np.zeros((2, 4, 3), np.float32)
    labels = np.array([[1, 1], [1, 2], [1, 2], [1, 2]])
    lengths, counts = np.array([2, 1, 0, 0]), np.array([2, 2, 0, 1])

    def loss(x: Any) -> Any:
        found = ctc_loss(x, labels, lengths, counts)
        return jnp.where(jnp.isinf(found), 0, found).sum(), found

    gradient, found = jax.jit(jax.grad(loss, has_aux=True))(logits)
    np.testing.assert_array_equal(found, [np.inf, np.inf, 0, np.inf])
    np.testing.assert_array_equal(gradient, np.zeros_like(logits))
    empty = ctc_loss(np.zeros((0, 2, 3), np.float32), labels[:2], None, np.array([0, 1]))
    np.testing.assert_array_equal(empty, [0, np.inf])


def test_logits_that_are_not_finite_concern_their_sequence_alone() -> None:
    logits, labels, *_ = problem(6, 4, 5, 2)
    labels[:] = [[1, 2]] * 4
    logits[2, 1, 3] = np.nan
    logits[:, 2, 4] = -np.inf  # a class that no alignment has
    logits[:, 3, 1] = -np.inf  # a label
    losses, gradient = jax.jit(jax.vmap(jax.value_and_grad(lambda x, y: ctc_loss(x, y).sum())))(
        np.moveaxis(logits, 1, 0)[:, :, None], labels[:, None]
    )
    wanted = [by_enumeration(logits[:, n], [1, 2], 0) for n in (0, 2)]
    np.testing.assert_allclose([losses[0], losses[2]], wanted, rtol=2e-6)
    np.testing.assert_array_equal(losses[np.array([1, 3])], [np.nan, np.inf])
    assert np.isnan(gradient[1]).all()
    assert np.isfinite(gradient[np.array([0, 2])]).all()
    assert not gradient[2, :, 0, 4].any()


@pytest.mark.parametrize("wrong", [np.nan, np.inf], ids=str)
@pytest.mark.parametrize("device", [jax.devices("ipu")[0], CPU], ids=["ipu", "cpu"])
def test_what_is_not_a_number_is_not_an_impossible_alignment(wrong: float, device: Any) -> None:
    """Behind the end of a sequence it counts for nothing."""
    logits, labels, *_ = problem(6, 2, 5, 2)
    lengths, counts = np.array([4, 6]), np.array([2, 1])
    clean = np.array(logits)
    logits[4:, 0] = wrong
    logits[3, 1, 2] = wrong
    with jax.default_device(device):

        def loss(x: Any) -> Any:
            found = ctc_loss(x, labels, lengths, counts)
            return found.sum(), found

        run = jax.jit(jax.grad(loss, has_aux=True))
        (gradient, losses), (expected, finite) = run(logits), run(clean)
    np.testing.assert_allclose(losses, [finite[0], np.nan], rtol=2e-6)
    np.testing.assert_allclose(gradient[:, 0], expected[:, 0], atol=2e-6)
    assert np.isnan(gradient[:, 1]).all()


def test_all_blank() -> None:
    logits = np.random.default_rng(0).standard_normal((5, 1, 4)).astype(np.float32)
    found = ctc_loss(logits, np.zeros((1, 0), np.int32), blank_index=-1)
    assert found[0] == pytest.approx(
        -float(jax.nn.log_softmax(logits, -1)[:, 0, 3].sum()), rel=1e-5
    )


def test_vmap_is_one_larger_batch() -> None:
    logits, *integers = problem(5, 2, 4, 2)
    many = jnp.stack([logits, -logits])
    batched = jax.vmap(lambda x: ctc_loss(x, *integers))
    wanted = jnp.stack([ctc_loss(x, *integers) for x in many])
    np.testing.assert_allclose(jax.jit(batched)(many), wanted, rtol=1e-6)
    assert "scan" not in str(jax.make_jaxpr(batched)(many))


@pytest.mark.parametrize("most", [0, 2])  # labels that all share are repeated, as a view
def test_vmap_with_labels_that_all_share(most: int) -> None:
    logits, labels, *_ = problem(3, 2, 4, most)
    many = jnp.stack([logits, -logits, logits / 2])
    found = jax.jit(jax.vmap(ctc_loss, (0, None)))(many, labels)
    wanted = [[by_enumeration(x[:, n], labels[n].tolist(), 0) for n in range(2)] for x in many]
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((2, 3)), [[1]]), r"needs logits \[time, batch, classes\]"),
        ((np.zeros((2, 1, 3)), [[0]]), "and not the blank 0; got 0"),
        ((np.zeros((2, 1, 3)), [[3]]), "classes from 0 to 2"),
        ((np.zeros((2, 1, 3)), [[1]], [3]), "needs data_lengths from 0 to 2; got 3"),
        ((np.zeros((2, 1, 3)), [[1.0]]), r"needs labels \[1, any\] of integers"),
    ],
)
def test_bad_input_is_named(arguments: Any, message: str) -> None:
    arguments = (np.float32(arguments[0]), *map(np.array, arguments[1:]))
    with pytest.raises(ValueError, match=message):
        ctc_loss(*arguments)


def test_traced_labels_that_are_blanks_have_an_infinite_loss() -> None:
    found = jax.jit(ctc_loss)(np.zeros((3, 2, 3), np.float32), np.array([[0], [1]]))
    assert np.isinf(found[0])
    assert np.isfinite(found[1])


@pytest.mark.parametrize("name", ["ctc_loss", "ctc_loss_with_log_probs"])
def test_out_dtype(name: str):
    loss = getattr(ipu.nn, name)
    logits = np.random.default_rng(2).normal(size=(40, 2, 5)).astype(np.float16)
    labels = np.array([[1, 2, 3], [4, 4, 1]])
    made = loss(logits, labels, out_dtype="float32")
    np.testing.assert_array_equal(made, loss(logits.astype(np.float32), labels))
    assert made.dtype == jnp.float32
    assert (made != loss(logits, labels)).any()
    gradient = jax.grad(lambda x: loss(x, labels, out_dtype=jnp.float32).sum())(jnp.asarray(logits))
    assert gradient.dtype == jnp.float16
    for data, dtype in ((logits.astype(np.float32), "float16"), (logits, "int32"), (logits, "x")):
        with pytest.raises(ipu.ConfigError, match="needs out_dtype to be float32 or that of the"):
            loss(data, labels, out_dtype=dtype)
