"""CTC losses and decoding: popnn's, planned for the shapes of the op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

from ipujax.compiler.ir import Op
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.custom_call import parameters_of
from ipujax.compiler.rules.registry import custom_call_rule

#: Arguments of a loss: graph, type, data, labels, two lengths, program, blank and plan.
_Arguments: TypeAlias = (
    "tuple[ipu.Graph, ipu.Type, ipu.Tensor, ipu.Tensor, ipu.Tensor, ipu.Tensor, ipu.Sequence, int, "
    "Any]"
)


def _arguments(builder: Builder, op: Op) -> _Arguments:
    data, *integers = builder.operands(op)
    labels, lengths, counts = (each.reinterpret(ipu.poplar.UNSIGNED_INT) for each in integers)
    steps, batch, classes = data.shape
    type_ = data.elementType()
    sizes = (batch, steps, labels.shape[1], classes)
    plan = ipu.popnn.ctc.plan(builder.graph, type_, type_, *sizes)
    blank = parameters_of(op)["blank"]
    return builder.graph, type_, data, labels, lengths, counts, builder.program, blank, plan


@custom_call_rule("ipu_ctc_loss")
def ctc_loss(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Losses of logits or of log-probabilities."""
    logits, debug = parameters_of(op)["logits"], builder.debug(op)
    losses = ipu.popx.ctcLoss(*_arguments(builder, op), logits, debug)
    return builder.round_bfloat16(op, [losses])


@custom_call_rule("ipu_ctc_loss_trained")
def ctc_loss_trained(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """The same, and gradients."""
    given, debug = _arguments(builder, op), builder.debug(op)
    if parameters_of(op)["logits"]:
        made = ipu.popnn.ctc.calcLossAndGradientLogits(*given, debug)
    else:
        options = {"includeSoftmaxGradient": "false"}
        calculate = ipu.popnn.ctc.calcLossAndGradientLogProbabilities
        made = calculate(*given, debug, options)
    return builder.round_bfloat16(op, list(made))


@custom_call_rule("ipu_ctc_beam_search_decoder")
def ctc_beam_search_decoder(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """-log p of the paths, their lengths and labels."""
    config, infer = parameters_of(op), ipu.popnn.ctc_infer
    data, lengths = builder.operands(op)
    steps, batch, classes = data.shape
    width = config["width"]
    plan = infer.plan(builder.graph, data.elementType(), batch, steps, classes, width)
    decode = (
        infer.beamSearchDecoderLogits
        if config["logits"]
        else infer.beamSearchDecoderLogProbabilities
    )
    losses, counts, labels = decode(
        builder.graph,
        data,
        lengths.reinterpret(ipu.poplar.UNSIGNED_INT),
        builder.program,
        config["blank"],
        width,
        config["paths"],
        plan,
        builder.debug(op),
    )
    integers = [each.reinterpret(ipu.poplar.INT) for each in (counts, labels)]
    return builder.round_bfloat16(op, [losses, *integers])
