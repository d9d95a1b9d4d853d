"""lstm: a layer of LSTM cells over time, as in popnn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.interpreters import ad

from ipujax.api.arguments import array, arrays, flag
from ipujax.errors import ConfigError
from ipujax.nn import recurrent
from ipujax.ops.definition import Op
from ipujax.types import Activation, Partials

_UNITS = ("forget", "input", "output", "candidate")
_CELL_ORDER = ("forget", "input", "candidate", "output")


class LSTMWeights(NamedTuple):
    """Parameters of a layer, of one dtype, with the units in the cell order."""

    input_weights: jax.Array  #: [4, in, out]
    output_weights: jax.Array  #: [4, out, out]
    biases: jax.Array  #: [4, out]


class LSTMState(NamedTuple):
    """The state of a cell."""

    output: jax.Array  #: [batch, out]
    cell: jax.Array  #: [batch, out]


def lstm(
    x: jax.Array,
    weights: LSTMWeights,
    state: LSTMState | None = None,
    *,
    lengths: jax.Array | None = None,
    activation: Activation = "tanh",
    recurrent_activation: Activation = "sigmoid",
    cell_order: Sequence[str] = _CELL_ORDER,
    partials: Partials | None = None,
    available_memory_proportion: float | None = None,
    precompute_inputs: bool = True,
    recompute: bool = False,
    inference_only: bool = False,
) -> tuple[jax.Array, LSTMState]:
    """Runs an LSTM layer over all steps; on IPUs in one loop, with the weights in its layout.

    f, i, o = recurrent_activation(x W + h U + b) and g = activation(x W + h U + b), each with
    weights of its own; then c' = f c + i g and h' = o activation(c').

    Args:
        x: [time, batch, in] of float32, float16 or bfloat16.
        weights: `LSTMWeights`, of x's dtype.
        state: before the first step; zeros by default.
        lengths: number of steps of each sequence, integers [batch] from 0 to time. After its end a
            sequence keeps its state, and its outputs are zero. Lengths known only at run time are
            clipped to this range.
        activation: of the candidate and the cell state: "tanh", "sigmoid", "hard_sigmoid", "relu",
            or "softmax" over the outputs of each.
        recurrent_activation: of the gates, one of the same.
        cell_order: the units' order in the weights, "forget", "input", "candidate" and "output".
        partials: type in which products are accumulated, "float" or "half"; by default the
            compiler's `partials_type`.
        available_memory_proportion: of tile memory for the products; by default that of the
            compiler.
        precompute_inputs: multiply the inputs of all steps by their weights in one product before
            the loop: faster, but the results need memory.
        recompute: whether the gradient runs the layer again instead of keeping what it needs.
        inference_only: keep nothing; the layer cannot be differentiated.

    Returns:
        The outputs [time, batch, out], and the state after the last step.

    Raises:
        ConfigError: a wrong shape, dtype or option, or a gradient of an inference-only layer.

    Source: popnn/Lstm.hpp; TensorFlow's `PopnnLSTM` for Graphcore IPUs.

    Example:
        >>> import jax.numpy as jnp
        >>> weights = LSTMWeights(jnp.ones((4, 3, 2)), jnp.ones((4, 2, 2)), jnp.zeros((4, 2)))
        >>> outputs, state = lstm(jnp.ones((5, 1, 3)), weights)
        >>> outputs.shape, state.cell.shape
        ((5, 1, 2), (1, 2))
    """
    where = "ipu.nn.lstm"
    x = array(where, "x", x)
    weights = arrays(where, "weights", LSTMWeights, weights)
    recurrent.check_layer(where, x, weights, 4, ())
    memory = recurrent.check_options(
        where, activation, recurrent_activation, partials, available_memory_proportion
    )
    order = recurrent.check_order(where, cell_order, _CELL_ORDER)
    batch, size = x.shape[1], weights.biases.shape[-1]
    zeros = jnp.zeros((batch, size), x.dtype)
    given = LSTMState(zeros, zeros) if state is None else state
    state = arrays(where, "state", LSTMState, given)
    for name, part in zip(("state.output", "state.cell"), state, strict=True):
        recurrent.check_array(where, name, part, (batch, size), x.dtype)
    limits = [] if lengths is None else [recurrent.check_lengths(where, lengths, *x.shape[:2])]
    if x.shape[0] == 0 or batch == 0 or size == 0:
        return jnp.zeros((x.shape[0], batch, size), x.dtype), state
    outputs, cell = _LSTM(
        x,
        *weights,
        *state,
        *limits,
        activation=activation,
        gate=recurrent_activation,
        at=tuple(order.index(unit) for unit in _UNITS),
        partials=partials,
        memory=memory,
        ahead=flag(where, "precompute_inputs", precompute_inputs),
        recompute=flag(where, "recompute", recompute),
        inference=flag(where, "inference_only", inference_only),
        limited=bool(limits),
    )
    last = recurrent.last_output(outputs, state.output, limits[0] if limits else None)
    return outputs, LSTMState(last, cell)


# The definition ----------------------------------------------------------------------------------


def _kept(
    x: Any, w: Any, u: Any, b: Any, h: Any, c: Any, *lengths: Any, **options: Any
) -> tuple[Any, Any, Any]:
    """Outputs [T, B, O], the last cell state [B, O], and what is kept [T, 6, B, O]."""
    at = options["at"]
    gate = recurrent.ACTIVATIONS[options["gate"]]
    activation = recurrent.ACTIVATIONS[options["activation"]]
    inner = recurrent.as_matrix(u, at)
    x = recurrent.before_ends(x, lengths)
    weighted = recurrent.product(x, recurrent.as_matrix(w, at)) + b[jnp.array(at)].reshape(-1)

    def step(state: Any, given: Any) -> tuple[Any, Any, Any]:
        h, c = state
        f, i, o, g = jnp.split(given + recurrent.product(h, inner), 4, -1)
        f, i, o, g = gate(f), gate(i), gate(o), activation(g)
        cell = f * c + i * g
        tanh = activation(cell)
        output = o * tanh
        return (output, cell), output, jnp.stack([f, i, o, g, tanh, c])

    (_, cell), outputs, kept = recurrent.limited(step, (h, c), weighted, lengths)
    return outputs, cell, kept


def _plain(*operands: Any, **options: Any) -> tuple[Any, Any]:
    outputs, cell, _ = _kept(*operands, **options)
    return outputs, cell


def _plain_gradient(*values: Any, **options: Any) -> tuple[Any, ...]:
    """(x, w, u, b, h, c, kept, outputs, gradients of outputs and cell, lengths) -> gradients."""
    operands, (_, _, *cotangents), lengths = values[:6], values[6:10], values[10:]
    made: tuple[Any, ...] = jax.vjp(lambda *x: _plain(*x, *lengths, **options), *operands)[1](
        tuple(cotangents)
    )
    return made


# Primitives --------------------------------------------------------------------------------------


def _shapes(operands: str, results: str) -> Any:
    """Dimensions in einsum's letters; those of lengths, if there are any, follow the operands."""

    def dimensions(**options: Any) -> str:
        return f"{operands}{', b' if options['limited'] else ''} -> {results}"

    return dimensions


def _gradients(operands: Any, results: Any, cotangents: Any, **options: Any) -> Sequence[Any]:
    outputs, cell, kept = results
    to_outputs, to_cell = (
        jnp.zeros_like(y) if each is None else each
        for y, each in zip((outputs, cell), cotangents, strict=False)
    )
    first, lengths = operands[1:6], operands[6:]
    # popnn multiplies the inputs of all steps by gradients, which are zero after the ends.
    x = recurrent.before_ends(operands[0], lengths)
    made = _GRADIENT(x, *first, kept, outputs, to_outputs, to_cell, *lengths, **options)
    return [*made, *(None for _ in lengths)]


def _gradients_again(operands: Any, _: Any, cotangents: Any, **options: Any) -> Sequence[Any]:
    return _gradients(operands, _TRAINED(*operands, **options), cotangents, **options)


def _batched(op: str, operand_axes: Sequence[int | None], result_axes: Sequence[int]) -> Any:
    """vmap over sequences alone makes one larger batch; any other vmap maps the definition."""

    def batch(size: int, operands: Any, dims: Any, **options: Any) -> Any:
        axes = [*operand_axes, *[0] * (len(operands) - len(operand_axes))]
        folded = recurrent.fold_batch(size, operands, dims, axes)
        if folded is None:
            plain = _OPS[op].plain
            results = jax.vmap(lambda *x: plain(*x, **options), in_axes=tuple(dims))(*operands)
            return list(results), [0] * len(results)
        results = _OPS[op](*folded, **options)
        return recurrent.unfold_batch(size, results, result_axes), list(result_axes)

    return batch


_AXES = (1, None, None, None, 0, 0)
_LAYER = "TbI, QIO, QOO, QO, bO, bO"
_LSTM = Op(
    "lstm",
    _plain,
    multiple=True,
    dimensions=_shapes(_LAYER, "TbO, bO"),
    vjp=_gradients_again,
    batch=_batched("lstm", _AXES, (1, 0)),
)
_TRAINED = Op(
    "lstm_trained",
    _kept,
    multiple=True,
    dimensions=_shapes(_LAYER, "TbO, bO, TKbO"),
    vjp=_gradients,
    batch=_batched("lstm_trained", _AXES, (1, 0, 2)),
)
_GRADIENT = Op(
    "lstm_gradient",
    _plain_gradient,
    multiple=True,
    dimensions=_shapes(f"{_LAYER}, TKbO, TbO, TbO, bO", _LAYER),
)
_OPS = {op.name: op for op in (_LSTM, _TRAINED)}


def _jvp(primals: Any, tangents: Any, **options: Any) -> Any:
    """Keeps what a gradient needs, unless it is to be recomputed."""
    if options["inference"]:
        raise ConfigError(
            "[ipu.nn.lstm] needs a layer that is trained to differentiate it; got "
            "inference_only=True. Leave it out."
        )
    if options["recompute"]:
        return _recomputed(primals, tangents, **options)
    results, made = ad.primitive_jvps[_TRAINED.primitive](primals, tangents, **options)
    return results[:2], made[:2]


_recomputed = ad.primitive_jvps[_LSTM.primitive]
ad.primitive_jvps[_LSTM.primitive] = _jvp
