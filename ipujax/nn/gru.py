"""gru, dynamic_gru and augru: layers of GRU cells over time, as in popnn."""

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

_UNITS = ("reset", "update", "candidate")


class GRUWeights(NamedTuple):
    """Parameters of a layer, of one dtype, with the units in the cell order."""

    input_weights: jax.Array  #: [3, in, out]
    output_weights: jax.Array  #: [3, out, out]
    biases: jax.Array  #: [3, out]; with reset_after [3, 2 (of input, of output), out]


def gru(
    x: jax.Array,
    weights: GRUWeights,
    state: jax.Array | None = None,
    *,
    activation: Activation = "tanh",
    recurrent_activation: Activation = "sigmoid",
    reset_after: bool = False,
    cell_order: Sequence[str] = _UNITS,
    partials: Partials | None = None,
    available_memory_proportion: float | None = None,
    precompute_inputs: bool = True,
    recompute: bool = False,
    inference_only: bool = False,
) -> tuple[jax.Array, jax.Array]:
    """Runs a GRU layer over all steps; on IPUs in one loop, with the weights in its layout.

    r, u = recurrent_activation(x W + h U + b), each with weights of its own,
    c = activation(x W + (r h) U + b), and h' = u h + (1 - u) c.

    Args:
        x: [time, batch, in] of float32, float16 or bfloat16.
        weights: `GRUWeights`, of x's dtype.
        state: the output before the first step, [batch, out]; zeros by default.
        activation: of the candidate: "tanh", "sigmoid", "hard_sigmoid", "relu", or "softmax"
            over its outputs.
        recurrent_activation: of the gates, one of the same.
        reset_after: c = activation(x W + b + r (h U + b')) instead, with two biases.
        cell_order: the units' order in the weights, "reset", "update" and "candidate".
        partials: type in which products are accumulated, "float" or "half"; by default the
            compiler's `partials_type`.
        available_memory_proportion: of tile memory for the products; by default that of the
            compiler.
        precompute_inputs: multiply the inputs of all steps by their weights in one product before
            the loop: faster, but the results need memory.
        recompute: whether the gradient runs the layer again instead of keeping what it needs.
        inference_only: keep nothing; the layer cannot be differentiated.

    Returns:
        The outputs [time, batch, out], and the last one [batch, out].

    Raises:
        ConfigError: a wrong shape, dtype or option, or a gradient of an inference-only layer.

    Source: popnn/Gru.hpp; TensorFlow's `PopnnGRU` for Graphcore IPUs.

    Example:
        >>> import jax.numpy as jnp
        >>> weights = GRUWeights(jnp.ones((3, 4, 2)), jnp.ones((3, 2, 2)), jnp.zeros((3, 2)))
        >>> outputs, last = gru(jnp.ones((5, 1, 4)), weights)
        >>> outputs.shape, last.shape
        ((5, 1, 2), (1, 2))
    """
    options = _Options(
        "ipu.nn.gru", activation, recurrent_activation, reset_after, cell_order, partials,
        available_memory_proportion, precompute_inputs, recompute, inference_only,
    )  # fmt: skip
    return _layer(options, x, weights, state, None, None)


def dynamic_gru(
    x: jax.Array,
    lengths: jax.Array,
    weights: GRUWeights,
    state: jax.Array | None = None,
    *,
    activation: Activation = "tanh",
    recurrent_activation: Activation = "sigmoid",
    reset_after: bool = False,
    cell_order: Sequence[str] = _UNITS,
    partials: Partials | None = None,
    available_memory_proportion: float | None = None,
    precompute_inputs: bool = True,
    recompute: bool = False,
    inference_only: bool = False,
) -> tuple[jax.Array, jax.Array]:
    """`gru` over sequences of different lengths.

    After its end a sequence keeps its state, and its outputs are zero.

    Args:
        lengths: number of steps of each sequence, integers [batch] from 0 to time. Lengths known
            only at run time are clipped to this range.
        x, weights, state, activation, recurrent_activation, reset_after, cell_order, partials,
            available_memory_proportion, precompute_inputs, recompute, inference_only: as `gru`.

    Returns:
        The outputs [time, batch, out], and the last one of each sequence [batch, out].

    Raises:
        ConfigError: as `gru`; or lengths of a wrong shape or dtype.

    Source: popnn/Gru.hpp; TensorFlow's `PopnnDynamicGRU` for Graphcore IPUs.

    Example:
        >>> import jax.numpy as jnp
        >>> weights = GRUWeights(jnp.ones((3, 4, 2)), jnp.ones((3, 2, 2)), jnp.zeros((3, 2)))
        >>> outputs, last = dynamic_gru(jnp.ones((5, 1, 4)), jnp.array([2]), weights)
        >>> bool((outputs[2:] == 0).all()), bool((last == outputs[1]).all())
        (True, True)
    """
    options = _Options(
        "ipu.nn.dynamic_gru", activation, recurrent_activation, reset_after, cell_order,
        partials, available_memory_proportion, precompute_inputs, recompute, inference_only,
    )  # fmt: skip
    return _layer(options, x, weights, state, lengths, None)


def augru(
    x: jax.Array,
    attention: jax.Array,
    weights: GRUWeights,
    state: jax.Array | None = None,
    *,
    lengths: jax.Array | None = None,
    activation: Activation = "tanh",
    recurrent_activation: Activation = "sigmoid",
    reset_after: bool = False,
    cell_order: Sequence[str] = _UNITS,
    partials: Partials | None = None,
    available_memory_proportion: float | None = None,
    precompute_inputs: bool = True,
    recompute: bool = False,
    inference_only: bool = False,
) -> tuple[jax.Array, jax.Array]:
    """A GRU with an attentional update gate: u (1 - attention) replaces u.

    Args:
        attention: of each step, [batch, time] of x's dtype.
        lengths: number of steps of each sequence, as for `dynamic_gru`; all by default.
        x, weights, state, activation, recurrent_activation, reset_after, cell_order, partials,
            available_memory_proportion, precompute_inputs, recompute, inference_only: as `gru`.

    Returns:
        The outputs [time, batch, out], and the last one of each sequence [batch, out].

    Raises:
        ConfigError: as `gru`; or attention or lengths of a wrong shape or dtype.

    Source: popnn/Gru.hpp; TensorFlow's `PopnnAUGRU` for Graphcore IPUs; Zhou et al., Deep Interest
    Evolution Network (2019).

    Example:
        >>> import jax.numpy as jnp
        >>> weights = GRUWeights(jnp.ones((3, 4, 2)), jnp.ones((3, 2, 2)), jnp.zeros((3, 2)))
        >>> outputs, _ = augru(jnp.ones((5, 1, 4)), jnp.ones((1, 5)), weights)
        >>> outputs.shape
        (5, 1, 2)
    """
    options = _Options(
        "ipu.nn.augru", activation, recurrent_activation, reset_after, cell_order, partials,
        available_memory_proportion, precompute_inputs, recompute, inference_only,
    )  # fmt: skip
    return _layer(options, x, weights, state, lengths, attention)


class _Options(NamedTuple):
    where: str
    activation: str
    gate: str
    after: bool
    order: Sequence[str]
    partials: str | None
    memory: float | None
    ahead: bool
    recompute: bool
    inference: bool


def _layer(
    options: _Options, x: Any, weights: Any, state: Any, lengths: Any, attention: Any
) -> tuple[jax.Array, jax.Array]:
    where = options.where
    x = array(where, "x", x)
    weights = arrays(where, "weights", GRUWeights, weights)
    after = flag(where, "reset_after", options.after)
    recurrent.check_layer(where, x, weights, 3, (2,) if after else ())
    memory = recurrent.check_options(
        where, options.activation, options.gate, options.partials, options.memory
    )
    order = recurrent.check_order(where, options.order, _UNITS)
    steps, batch, _ = x.shape
    size = weights.biases.shape[-1]
    state = jnp.zeros((batch, size), x.dtype) if state is None else array(where, "state", state)
    recurrent.check_array(where, "state", state, (batch, size), x.dtype)
    rest = []
    if attention is not None:
        rest.append(array(where, "attention", attention))
        recurrent.check_array(where, "attention", rest[0], (batch, steps), x.dtype)
    limits = None if lengths is None else recurrent.check_lengths(where, lengths, steps, batch)
    if limits is not None:
        rest.append(limits)
    if steps == 0 or batch == 0 or size == 0:
        return jnp.zeros((steps, batch, size), x.dtype), state
    (outputs,) = _GRU(
        x,
        *weights,
        state,
        *rest,
        activation=options.activation,
        gate=options.gate,
        after=after,
        at=tuple(order.index(unit) for unit in _UNITS),
        partials=options.partials,
        memory=memory,
        ahead=flag(where, "precompute_inputs", options.ahead),
        recompute=flag(where, "recompute", options.recompute),
        inference=flag(where, "inference_only", options.inference),
        attends=attention is not None,
        limited=limits is not None,
    )
    return outputs, recurrent.last_output(outputs, state, limits)


# The definition ----------------------------------------------------------------------------------


def _kept(x: Any, w: Any, u: Any, b: Any, h: Any, *rest: Any, **options: Any) -> tuple[Any, Any]:
    """Outputs [T, B, O] and what is kept [T, 4 or 5, B, O]; rest: attention, lengths."""
    at, after = options["at"], options["after"]
    gate = recurrent.ACTIVATIONS[options["gate"]]
    activation = recurrent.ACTIVATIONS[options["activation"]]
    size = h.shape[-1]
    inner = recurrent.as_matrix(u, at)
    biases = b[jnp.array(at)]
    first = biases[:, 0] if after else biases
    second = biases[:, 1].reshape(-1) if after else jnp.zeros_like(first).reshape(-1)
    lengths = rest[-1:] if options["limited"] else ()
    x = recurrent.before_ends(x, lengths)
    weighted = recurrent.product(x, recurrent.as_matrix(w, at)) + first.reshape(-1)

    def step(h: Any, given: Any) -> tuple[Any, Any, Any]:
        given, attention = given
        to_gates, to_candidate = jnp.split(given, [2 * size], -1)
        sums = recurrent.product(h, inner[:, : 2 * size]) + second[: 2 * size]
        r, u = map(gate, jnp.split(to_gates + sums, 2, -1))
        product = recurrent.product(h if after else r * h, inner[:, 2 * size :])
        memory = product + second[2 * size :]
        c = activation(to_candidate + (r * memory if after else memory))
        share = u * (1 - attention[:, None])
        output = share * h + (1 - share) * c
        return output, output, jnp.stack([r, u, c, h, *([memory] if after else [])])

    steps, batch = x.shape[:2]
    attention = rest[0].T if options["attends"] else jnp.zeros((steps, batch), x.dtype)
    attention = recurrent.before_ends(attention, lengths)
    _, outputs, kept = recurrent.limited(step, h, (weighted, attention), lengths)
    return outputs, kept


def _plain(*operands: Any, **options: Any) -> tuple[Any]:
    return (_kept(*operands, **options)[0],)


def _plain_gradient(*values: Any, **options: Any) -> tuple[Any, ...]:
    """(x, w, u, b, h, kept, outputs, their gradients, attention, lengths) -> gradients."""
    operands, (_, _, to_outputs), rest = values[:5], values[5:8], values[8:]
    count = int(options["attends"])
    lengths = rest[count:]
    primals = (*operands, *rest[:count])
    made: tuple[Any, ...] = jax.vjp(lambda *y: _plain(*y, *lengths, **options), *primals)[1](
        (to_outputs,)
    )
    return made


# Primitives --------------------------------------------------------------------------------------


def _shapes(operands: str, results: str, gradient: bool = False) -> Any:
    """Dimensions in einsum's letters: attention and lengths follow the operands."""

    def dimensions(**options: Any) -> str:
        attention = ", bT" if options["attends"] else ""
        lengths = ", b" if options["limited"] else ""
        made = results + (attention if gradient else "")
        return f"{operands}{attention}{lengths} -> {made}"

    return dimensions


def _gradients(operands: Any, results: Any, cotangents: Any, **options: Any) -> Sequence[Any]:
    outputs, kept = results
    to_outputs = jnp.zeros_like(outputs) if cotangents[0] is None else cotangents[0]
    first, rest = operands[1:5], operands[5:]
    # popnn multiplies the inputs of all steps by gradients, which are zero after the ends.
    x = recurrent.before_ends(operands[0], rest[-1:] if options["limited"] else ())
    made = _GRADIENT(x, *first, kept, outputs, to_outputs, *rest, **options)
    return [*made, *[None] * int(options["limited"])]


def _gradients_again(operands: Any, _: Any, cotangents: Any, **options: Any) -> Sequence[Any]:
    return _gradients(operands, _TRAINED(*operands, **options), cotangents, **options)


def _batched(name: str, result_axes: Sequence[int]) -> Any:
    """vmap over sequences alone makes one larger batch; any other vmap maps the definition."""

    def batch(size: int, operands: Any, dims: Any, **options: Any) -> Any:
        axes = [1, None, None, None, 0, *[0] * (len(operands) - 5)]
        folded = recurrent.fold_batch(size, operands, dims, axes)
        if folded is None:
            plain = _OPS[name].plain
            results = jax.vmap(lambda *y: plain(*y, **options), in_axes=tuple(dims))(*operands)
            return list(results), [0] * len(results)
        results = _OPS[name](*folded, **options)
        return recurrent.unfold_batch(size, results, result_axes), list(result_axes)

    return batch


_LAYER = "TbI, QIO, QOO, QNO, bO"
_FLAT = "TbI, QIO, QOO, QO, bO"


def _layer_shapes(behind: str, results: str, gradient: bool = False) -> Any:
    def dimensions(**options: Any) -> str:
        layer = _LAYER if options["after"] else _FLAT
        made = layer if gradient else results
        text: str = _shapes(layer + behind, made, gradient)(**options)
        return text

    return dimensions


_GRU = Op(
    "gru",
    _plain,
    multiple=True,
    dimensions=_layer_shapes("", "TbO"),
    vjp=_gradients_again,
    batch=_batched("gru", (1,)),
)
_TRAINED = Op(
    "gru_trained",
    _kept,
    multiple=True,
    dimensions=_layer_shapes("", "TbO, TKbO"),
    vjp=_gradients,
    batch=_batched("gru_trained", (1, 2)),
)
_GRADIENT = Op(
    "gru_gradient",
    _plain_gradient,
    multiple=True,
    dimensions=_layer_shapes(", TKbO, TbO, TbO", "", gradient=True),
)
_OPS = {op.name: op for op in (_GRU, _TRAINED)}


def _jvp(primals: Any, tangents: Any, **options: Any) -> Any:
    """Keeps what a gradient needs, unless it is to be recomputed."""
    if options["inference"]:
        raise ConfigError(
            "[ipu.nn.gru] needs a layer that is trained to differentiate it; got "
            "inference_only=True. Leave it out."
        )
    if options["recompute"]:
        return _recomputed(primals, tangents, **options)
    results, made = ad.primitive_jvps[_TRAINED.primitive](primals, tangents, **options)
    return results[:1], made[:1]


_recomputed = ad.primitive_jvps[_GRU.primitive]
ad.primitive_jvps[_GRU.primitive] = _jvp
