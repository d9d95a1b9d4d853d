"""Recurrent layers: popnn's loops, with weights laid out as popnn wants them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ipujax.compiler.ir import Op
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.custom_call import parameters_of
from ipujax.compiler.rules.registry import custom_call_rule

#: Operands of an LSTM before the lengths: x, three weights, two states; a gradient has four more.
_LSTM_OPERANDS = 6
_LSTM_GRADIENT_OPERANDS = 10

_GRU_OPERANDS = 5
_GRU_GRADIENT_OPERANDS = 8
#: popnn's numbers of the units forget, input, output and candidate.
_LSTM_UNITS = (0, 1, 3, 2)


def _cell_order(places: Sequence[int], units: Sequence[int]) -> list[int]:
    """The units in the order of their places."""
    return [unit for _, unit in sorted(zip(places, units, strict=True))]


def _activation(name: str) -> Any:
    return ipu.popnn.NonLinearityType["SOFTMAX_STABLE" if name == "softmax" else name.upper()]


def _options(builder: Builder, op: Op, config: dict[str, Any]) -> dict[str, str]:
    """Options of the layer and of its matrix products, by popnn's names."""
    options = builder.product_options(op)
    partials = config["partials"] or options["partialsType"]
    memory = config["memory"] or options["availableMemoryProportion"]
    return {
        "partialsType": partials,
        "availableMemoryProportion": str(memory),
        "preCalcWeights": "true" if config["ahead"] else "false",
        "inferenceOnly": "true" if config["inference"] else "false",
    }


def _params(
    kind: Any, x: ipu.Tensor, size: int, lengths: Sequence[ipu.Tensor], config: dict[str, Any]
) -> Any:
    """popnn's description of a layer of `size` outputs."""
    steps, batch, inputs = x.shape
    limits = [each.reshape([batch]) for each in lengths]
    return kind(
        x.elementType(),
        batch,
        steps,
        *limits,
        [inputs, size],
        _activation(config["activation"]),
        _activation(config["gate"]),
    )


def _laid_out(
    builder: Builder, module: Any, params: Any, weights: Sequence[ipu.Tensor], *rest: Any
) -> Any:
    """Copies the weights to where the layer wants them: once, not in every step."""
    debug, options = rest
    made = module.createWeights(builder.graph, params, debug, options, builder.plans)
    for source, target in zip(
        weights, (made.inputWeights, made.outputWeights, made.biases), strict=True
    ):
        builder.copy(source, target, debug)
    return made


class _Lstm:
    """One layer as popnn sees it."""

    def __init__(self, builder: Builder, op: Op, num_operands: int):
        config = parameters_of(op)
        operands = builder.operands(op)
        x, *weights = operands[:4]
        self.builder, self.debug = builder, builder.debug(op)
        self.options = _options(builder, op, config)
        lstm = ipu.popnn.lstm
        size = weights[2].shape[-1]
        self.params = _params(lstm.LstmParams, x, size, operands[num_operands:], config)
        self.params.setCellOrder(_cell_order(config["at"], _LSTM_UNITS))
        order = self.debug, self.options
        self.weights = _laid_out(builder, lstm, self.params, weights, *order)
        self.state = lstm.LstmState(*operands[4:6])
        self.x, self.rest = x, operands[6:num_operands]

    def forward(self, keep: bool) -> list[ipu.Tensor]:
        made: list[ipu.Tensor] = ipu.popnn.lstm.lstmFwd(
            self.builder.graph,
            self.params,
            self.state,
            self.x,
            self.weights,
            keep,
            self.builder.program,
            self.debug,
            self.options,
            self.builder.plans,
        )
        return made


@custom_call_rule("ipu_lstm")
def lstm(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Outputs and the last cell state."""
    return builder.round_bfloat16(op, _Lstm(builder, op, _LSTM_OPERANDS).forward(False))


@custom_call_rule("ipu_lstm_trained")
def lstm_trained(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """The same, and what the gradient needs."""
    return builder.round_bfloat16(op, _Lstm(builder, op, _LSTM_OPERANDS).forward(True))


@custom_call_rule("ipu_lstm_gradient")
def lstm_gradient(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Gradients of the input, weights and states."""
    layer = _Lstm(builder, op, _LSTM_GRADIENT_OPERANDS)
    kept, outputs, output_gradient, cell_gradient = layer.rest
    made = ipu.popnn.lstm.lstmBwdWithWU(
        builder.graph,
        layer.params,
        builder.program,
        layer.state,
        kept,
        layer.weights,
        layer.x,
        outputs,
        output_gradient,
        cell_gradient,
        layer.debug,
        layer.options,
        builder.plans,
    )
    return builder.round_bfloat16(op, made)


class _Gru:
    """One layer as popnn sees it, with attention or without."""

    def __init__(self, builder: Builder, op: Op, num_operands: int):
        config = parameters_of(op)
        operands = builder.operands(op)
        x, *weights = operands[:4]
        rest = operands[num_operands:]
        self.builder, self.debug = builder, builder.debug(op)
        self.options = _options(builder, op, config)
        self.attention = rest.pop(0) if config["attends"] else None
        gru = ipu.popnn.gru
        self.params = _params(gru.GruParams, x, weights[2].shape[-1], rest, config)
        self.params.setCellOrder(_cell_order(config["at"], (0, 1, 2)))
        self.params.resetAfter = config["after"]
        self.weights = _laid_out(builder, gru, self.params, weights, self.debug, self.options)
        self.state = operands[4]
        self.x, self.rest = x, operands[5:num_operands]

    def forward(self, keep: bool) -> list[ipu.Tensor]:
        made: list[ipu.Tensor] = ipu.popnn.gru.gruFwd(
            self.builder.graph,
            self.params,
            self.state,
            self.x,
            self.weights,
            keep,
            self.attention,
            self.builder.program,
            self.debug,
            self.options,
            self.builder.plans,
        )
        return made


@custom_call_rule("ipu_gru")
def gru(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Outputs."""
    return builder.round_bfloat16(op, _Gru(builder, op, _GRU_OPERANDS).forward(False))


@custom_call_rule("ipu_gru_trained")
def gru_trained(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """The same, and what the gradient needs."""
    return builder.round_bfloat16(op, _Gru(builder, op, _GRU_OPERANDS).forward(True))


@custom_call_rule("ipu_gru_gradient")
def gru_gradient(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Gradients of the input, weights, state and attention."""
    layer = _Gru(builder, op, _GRU_GRADIENT_OPERANDS)
    kept, outputs, output_gradient = layer.rest
    made = ipu.popnn.gru.gruBwdWithWU(
        builder.graph,
        layer.params,
        builder.program,
        layer.state,
        kept,
        layer.weights,
        layer.x,
        outputs,
        output_gradient,
        layer.attention,
        layer.debug,
        layer.options,
        builder.plans,
    )
    return builder.round_bfloat16(op, made)
