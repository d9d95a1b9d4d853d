"""ipu.nn.lstm against its definition on the CPU and a loop over cells in NumPy."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from ipujax.nn import LSTMState, LSTMWeights, lstm

CPU = jax.devices("cpu")[0]
UNITS = ("forget", "input", "candidate", "output")


def layer(
    steps: int = 5, batch: int = 3, inputs: int = 4, size: int = 6, dtype: Any = np.float32
) -> tuple[Any, LSTMWeights, LSTMState]:
    rng = np.random.default_rng(0)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(dtype)

    weights = LSTMWeights(
        normal(4, inputs, size) / 2, normal(4, size, size) / 2, normal(4, size) / 2
    )
    return (
        normal(steps, batch, inputs),
        weights,
        LSTMState(normal(batch, size), normal(batch, size)),
    )


def on_cpu(function: Any, *operands: Any) -> Any:
    with jax.default_device(CPU):
        return jax.jit(function)(*operands)


def assert_close(found: Any, wanted: Any, tolerance: float = 2e-6) -> None:
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * np.abs(b).max(initial=1))


def in_numpy(x: Any, weights: LSTMWeights, state: LSTMState, lengths: Any) -> tuple[Any, Any, Any]:
    """Cell by cell, in double."""
    h, c = (np.array(each, np.float64) for each in state)
    outputs = np.zeros((*x.shape[:2], h.shape[-1]))
    for t in range(x.shape[0]):
        for n in range(x.shape[1]):
            if t >= lengths[n]:
                continue
            sums = [
                x[t, n] @ np.float64(w) + h[n] @ np.float64(u) + b
                for w, u, b in zip(*weights, strict=True)
            ]
            f, i, o = (
                1 / (1 + np.exp(-sums[UNITS.index(u)])) for u in ("forget", "input", "output")
            )
            c[n] = f * c[n] + i * np.tanh(sums[UNITS.index("candidate")])
            h[n] = outputs[t, n] = o * np.tanh(c[n])
    return outputs, h, c


@pytest.mark.parametrize("lengths", [None, (0, 5, 2)])
def test_outputs_and_states_are_those_of_cells(lengths: Any) -> None:
    x, weights, state = layer()
    given = None if lengths is None else jnp.array(lengths)
    outputs, last = jax.jit(lambda *o: lstm(*o, lengths=given))(x, weights, state)
    wanted = in_numpy(x, weights, state, lengths or (5, 5, 5))
    assert_close((outputs, last.output, last.cell), wanted)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"lengths": [1, 5, 3]},
        {"recompute": True, "precompute_inputs": False},
        {"activation": "relu", "recurrent_activation": "hard_sigmoid"},
        {"activation": "softmax"},
        {"activation": "softmax", "recurrent_activation": "softmax", "lengths": [1, 5, 3]},
        {"recurrent_activation": "softmax", "precompute_inputs": False},
        {"cell_order": ("output", "input", "forget", "candidate")},
    ],
    ids=lambda options: ",".join(options) or "plain",
)
def test_gradients_are_those_of_the_definition(options: Any) -> None:
    operands = layer()
    options = {k: jnp.array(v) if k == "lengths" else v for k, v in options.items()}

    def loss(*operands: Any) -> Any:
        outputs, last = lstm(*operands, **options)
        return (outputs**2).sum() + last.output.sum() + (last.cell**3).sum()

    gradients = jax.value_and_grad(loss, (0, 1, 2))
    assert_close(jax.jit(gradients)(*operands), on_cpu(gradients, *operands), 5e-6)


def test_second_derivatives_and_forward_mode_are_those_of_the_definition() -> None:
    x, weights, state = layer(3, 2, 2, 2)

    def loss(x: Any) -> Any:
        outputs, last = lstm(x, weights, state)
        return (outputs**3).sum() + (last.cell**2).sum()

    both = jax.grad(lambda x: (jax.grad(loss)(x) ** 2).sum())
    assert_close(jax.jit(both)(x), on_cpu(both, x), 1e-5)

    def tangent(x: Any) -> Any:
        return jax.jvp(loss, (x,), (jnp.ones_like(x),))[1]

    assert_close(jax.jit(tangent)(x), on_cpu(tangent, x), 1e-5)


def test_vmap_is_one_larger_batch() -> None:
    x, weights, _ = layer()
    many = jnp.stack([x, 2 * x])
    batched = jax.jit(jax.vmap(lambda x: lstm(x, weights)))
    one_by_one = [lstm(each, weights) for each in many]
    assert_close(batched(many), jax.tree.map(lambda *y: jnp.stack(y), *one_by_one))
    text = str(jax.make_jaxpr(batched)(many))
    assert text.count("ipu_lstm") == 1
    assert "scan" not in text
    stacked = jax.tree.map(lambda w: jnp.stack([w, w]), weights)
    per_example = jax.vmap(lambda x, w: lstm(x, w)[0])
    assert_close(jax.jit(per_example)(many, stacked), on_cpu(per_example, many, stacked))


def test_halves_are_rounded_after_each_operation() -> None:
    operands = layer(dtype=np.float16)
    outputs, last = jax.jit(lstm)(*operands)
    assert outputs.dtype == last.cell.dtype == jnp.float16
    wanted = in_numpy(*operands, (5, 5, 5))
    assert_close((outputs, last.output, last.cell), wanted, 8e-3)


def test_empty_layers_and_single_steps() -> None:
    for steps in (0, 1):
        x, weights, state = layer(steps)
        outputs, last = lstm(x, weights, state)
        wanted = in_numpy(x, weights, state, [steps] * 3)
        assert_close((outputs, last.output, last.cell), wanted)


def test_sequences_on_several_threads_are_those_of_the_definition() -> None:
    """Layers so large that each thread runs some sequences."""
    x, weights, state = layer(24, 18, 8, 64)
    lengths = jnp.minimum(jnp.arange(18) * 3 // 2, 24)

    def both(*operands: Any) -> Any:
        def loss(x: Any, weights: Any, state: Any, lengths: Any) -> Any:
            outputs, last = lstm(x, weights, state, lengths=lengths)
            return (outputs**2).sum() + last.cell.sum()

        whole = jax.grad(loss, (0, 1, 2))(*operands, None)
        return whole, jax.grad(loss, (0, 1, 2))(*operands, lengths)

    weights = LSTMWeights(*(each / 4 for each in weights))
    found = jax.jit(both)(x, weights, state)
    assert_close(found, on_cpu(both, x, weights, state), 1e-5)


def test_one_loop_costs_fewer_cycles_than_a_scan() -> None:
    def plain(x: Any, w: Any, u: Any, b: Any, h: Any) -> Any:
        def cell(state: Any, step: Any) -> Any:
            hidden, memory = state
            f, i, g, o = jnp.split(step @ w + hidden @ u + b, 4, -1)
            memory = jax.nn.sigmoid(f) * memory + jax.nn.sigmoid(i) * jnp.tanh(g)
            hidden = jax.nn.sigmoid(o) * jnp.tanh(memory)
            return (hidden, memory), hidden

        return jax.lax.scan(cell, (h, h), x)[1]

    x, weights, state = layer(32, 16, 64, 64)
    w, u = (np.moveaxis(each, 0, 1).reshape(64, 256) for each in weights[:2])
    fused = (lambda *o: lstm(*o)[0]), (x, weights, state)
    scan = plain, (x, w, u, weights.biases.reshape(-1), state.output)

    def cycles(function: Any, operands: Any) -> float:
        return float(jax.jit(function).lower(*operands).compile().cost_analysis()["cycles"])

    def gradient(function: Any) -> Any:
        return jax.grad(lambda *o: (function(*o) ** 2).sum(), (0, 1))

    assert cycles(*fused) < 0.45 * cycles(*scan)
    trained = [cycles(gradient(function), operands) for function, operands in (fused, scan)]
    assert trained[0] < 0.35 * trained[1], trained


def test_a_layer_costs_at_most_half_of_its_definition() -> None:
    """A scan whose inputs are weighed ahead, so that a step has one product too."""
    x, weights, state = layer(128, 16, 64, 128)

    def plain(x: Any, w: Any, u: Any, b: Any, h: Any, c: Any) -> Any:
        def cell(state: Any, given: Any) -> Any:
            h, c = state
            f, i, o, g = jnp.split(given + h @ u, 4, -1)
            gates = jax.nn.sigmoid(jnp.stack([f, i, o]))
            c = gates[0] * c + gates[1] * jnp.tanh(g)
            h = gates[2] * jnp.tanh(c)
            return (h, c), h

        return jax.lax.scan(cell, (h, c), x @ w + b)[1]

    w, u = (np.moveaxis(each, 0, 1).reshape(each.shape[1], -1) for each in weights[:2])
    scan = jax.jit(plain).lower(x, w, u, weights.biases.reshape(-1), *state)
    ours = jax.jit(lambda *operands: lstm(*operands)[0]).lower(x, weights, state)
    cycles, plain_cycles = (each.compile().cost_analysis()["cycles"] for each in (ours, scan))
    assert cycles <= 0.5 * plain_cycles, (cycles, plain_cycles)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"activation": "sin"},
            "needs activation of hard_sigmoid, relu, sigmoid, softmax, tanh; got 'sin'",
        ),
        ({"partials": "double"}, "needs partials of float, half; got 'double'"),
        ({"cell_order": ("input",)}, "needs a cell_order with each of"),
        ({"lengths": jnp.ones(2)}, r"needs lengths \[3\] of integers"),
        ({"available_memory_proportion": 0}, "needs an available_memory_proportion above 0"),
        ({"state": LSTMState(jnp.ones((3, 5)), jnp.ones((3, 6)))}, r"needs state.output \[3, 6\]"),
        ({"x": jnp.ones((5, 4))}, r"needs x \[time, batch, in\]"),
    ],
)
def test_bad_input_is_named(change: Any, message: str) -> None:
    x, weights, state = layer()
    arguments = {"x": x, "weights": weights, "state": state, **change}
    with pytest.raises(ValueError, match=message):
        lstm(**arguments)


def test_inference_only_layers_have_no_gradient() -> None:
    x, weights, _ = layer()
    with pytest.raises(ValueError, match="inference_only=True"):
        jax.grad(lambda x: ipu.nn.lstm(x, weights, inference_only=True)[0].sum())(x)
