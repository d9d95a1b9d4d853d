"""ipu.nn.gru, dynamic_gru and augru against their definition on the CPU and cells in NumPy."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from ipujax.nn import GRUWeights, augru, dynamic_gru, gru

CPU = jax.devices("cpu")[0]
LENGTHS = np.array([0, 5, 2])


def layer(after: bool = False, steps: int = 5, size: int = 6) -> tuple[Any, GRUWeights, Any, Any]:
    """x, weights, state and attention."""
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32)

    weights = GRUWeights(
        normal(3, 4, size) / 2, normal(3, size, size) / 2, normal(3, *[2] * after, size) / 2
    )
    attention = rng.uniform(0, 1, (3, steps)).astype(np.float32)
    return normal(steps, 3, 4), weights, normal(3, size), attention


def in_numpy(x: Any, weights: Any, state: Any, attention: Any, lengths: Any, after: bool) -> Any:
    """Cell by cell, in double."""
    w, u, b = (np.float64(each) for each in weights)
    h = np.float64(state)
    outputs = np.zeros((*x.shape[:2], h.shape[-1]))
    for t, n in np.ndindex(*x.shape[:2]):
        if t >= lengths[n]:
            continue
        first = b[:, 0] if after else b
        second = b[:, 1] if after else 0 * b
        reset, update = (
            1 / (1 + np.exp(-(x[t, n] @ w[k] + h[n] @ u[k] + first[k] + second[k]))) for k in (0, 1)
        )
        inner = reset * (h[n] @ u[2] + second[2]) if after else (reset * h[n]) @ u[2]
        candidate = np.tanh(x[t, n] @ w[2] + first[2] + inner)
        share = update * (1 - attention[n, t])
        h[n] = outputs[t, n] = share * h[n] + (1 - share) * candidate
    return outputs, h


def assert_close(found: Any, wanted: Any, tolerance: float = 2e-6) -> None:
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        b = np.asarray(b)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max(initial=1))


@pytest.mark.parametrize("after", [False, True])
def test_sequences_on_several_threads_are_those_of_the_definition(after: bool) -> None:
    """Layers so large that each thread runs some sequences."""
    x, weights, state, attention = layer(after, 40, 64)
    x, state, attention = np.tile(x, (1, 6, 1)), np.tile(state, (6, 1)), np.tile(attention, (6, 1))
    weights = GRUWeights(*(each / 4 for each in weights))
    lengths = np.minimum(np.arange(18) * 2, 40)

    def both(*operands: Any) -> Any:
        def loss(x: Any, weights: Any, state: Any, attention: Any, lengths: Any) -> Any:
            outputs, last = augru(x, attention, weights, state, lengths=lengths, reset_after=after)
            return (outputs**2).sum() + last.sum()

        return [jax.grad(loss, (0, 1, 2, 3))(*operands, each) for each in (None, lengths)]

    operands = x, weights, state, attention
    with jax.default_device(CPU):
        wanted = jax.jit(both)(*operands)
    assert_close(jax.jit(both)(*operands), wanted, 1e-5)


@pytest.mark.parametrize("after", [False, True])
def test_outputs_are_those_of_cells(after: bool) -> None:
    x, weights, state, attention = layer(after)
    none, full = 0 * attention, [5] * 3

    def all_layers(*operands: Any) -> Any:
        options = {"reset_after": after}
        return (
            gru(*operands, **options),
            dynamic_gru(operands[0], LENGTHS, *operands[1:], **options),
            augru(operands[0], attention, *operands[1:], lengths=LENGTHS, **options),
        )

    found = jax.jit(all_layers)(x, weights, state)
    assert_close(found[0], in_numpy(x, weights, state, none, full, after))
    assert_close(found[1], in_numpy(x, weights, state, none, LENGTHS, after))
    assert_close(found[2], in_numpy(x, weights, state, attention, LENGTHS, after))


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    "options",
    [{}, {"recompute": True}, {"activation": "softmax", "recurrent_activation": "softmax"}],
    ids=["plain", "recompute", "softmax"],
)
def test_gradients_are_those_of_the_definition(after: bool, options: Any) -> None:
    options = {"reset_after": after, **options}
    operands = layer(after)

    def loss(x: Any, weights: Any, state: Any, attention: Any) -> Any:
        plain = gru(x, weights, state, **options)
        attended = augru(x, attention, weights, state, lengths=LENGTHS, **options)
        return sum((y**2).sum() for y in (*plain, *attended))

    gradients = jax.grad(loss, (0, 1, 2, 3))
    with jax.default_device(CPU):
        wanted = jax.jit(gradients)(*operands)
    assert_close(jax.jit(gradients)(*operands), wanted, 5e-6)


def test_second_derivatives_are_those_of_the_definition() -> None:
    x, weights, state, _ = layer(steps=3, size=2)

    def twice(x: Any) -> Any:
        slope = jax.grad(lambda x: (dynamic_gru(x, [1, 3, 2], weights, state)[0] ** 3).sum())
        return jax.grad(lambda x: (slope(x) ** 2).sum())(x)

    both = jax.jit(twice)
    with jax.default_device(CPU):
        wanted = both(x)
    assert_close(both(x), wanted, 1e-5)


def test_inputs_weighted_ahead_cost_fewer_cycles_than_a_scan() -> None:
    x, weights, state, _ = layer(steps=32, size=64)

    def plain(x: Any, w: Any, u: Any, b: Any, h: Any) -> Any:
        def cell(h: Any, x: Any) -> Any:
            gates = jax.nn.sigmoid(jnp.einsum("bi,kio->kbo", x, w[:2]) + h @ u[:2] + b[:2, None])
            candidate = jnp.tanh(x @ w[2] + (gates[0] * h) @ u[2] + b[2])
            following = gates[1] * h + (1 - gates[1]) * candidate
            return following, following

        return jax.lax.scan(cell, h, x)[1]

    def cycles(function: Any, *operands: Any) -> float:
        return float(jax.jit(function).lower(*operands).compile().cost_analysis()["cycles"])

    found = [
        cycles(lambda *o, a=ahead: gru(*o, precompute_inputs=a)[0], x, weights, state)
        for ahead in (True, False)
    ]
    assert found[0] < 0.9 * found[1]
    assert found[0] < 0.6 * cycles(plain, x, *weights, state)


def test_vmap_is_one_larger_batch() -> None:
    x, weights, _, attention = layer()
    many, attended = jnp.stack([x, 2 * x]), jnp.stack([attention, attention / 2])
    batched = jax.vmap(lambda x, a: augru(x, a, weights)[0])
    found = jax.jit(batched)(many, attended)
    one_by_one = [augru(m, a, weights)[0] for m, a in zip(many, attended, strict=True)]
    assert_close(found, jnp.stack(one_by_one))
    assert str(jax.make_jaxpr(batched)(many, attended)).count("ipu_gru") == 1


def test_bad_input_is_named() -> None:
    x, weights, _, attention = layer()
    with pytest.raises(ValueError, match=r"\[ipu.nn.gru\] needs biases \[3, 2, 6\]"):
        gru(x, weights, reset_after=True)
    with pytest.raises(ValueError, match=r"\[ipu.nn.augru\] needs attention \[3, 5\]"):
        augru(x, attention.T, weights)
    with pytest.raises(ValueError, match="inference_only=True"):
        jax.grad(lambda x: gru(x, weights, inference_only=True)[0].sum())(x)
