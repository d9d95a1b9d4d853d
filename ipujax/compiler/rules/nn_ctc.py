"""CTC losses and decoding: popnn's, planned for the shapes of the op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ipujax.compiler.ir import Op
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.custom_call import parameters_of
from ipujax.compiler.rules.registry import custom_call_rule


def _arguments(builder: Builder, op: Op) -> tuple[tuple[Any, ...], Any, ipu.DebugContext]:
    """Of a loss: graph to blank, the plan, and the context."""
    data, *integers = builder.operands(op)
    labels, lengths, counts = (each.reinterpret(ipu.poplar.UNSIGNED_INT) for each in integers)
    steps, batch, classes = data.shape
    type_ = data.elementType()
    sizes = (batch, steps, labels.shape[1], classes)
    plan = ipu.popnn.ctc.plan(builder.graph, type_, type_, *sizes)
    given = (builder.graph, type_, data, labels, lengths, counts, builder.program)
    return (*given, parameters_of(op)["blank"]), plan, builder.debug(op)


@custom_call_rule("ipu_ctc_loss")
def ctc_loss(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """Losses of logits or of log-probabilities."""
    given, plan, debug = _arguments(builder, op)
    losses = ipu.popx.ctcLoss(*given, plan, parameters_of(op)["logits"], debug)
    return builder.round_bfloat16(op, [losses])


@custom_call_rule("ipu_ctc_loss_trained")
def ctc_loss_trained(builder: Builder, op: Op) -> Sequence[ipu.Tensor]:
    """The same, and gradients."""
    given, plan, debug = _arguments(builder, op)
    if parameters_of(op)["logits"]:
        made = ipu.popnn.ctc.calcLossAndGradientLogits(*given, plan, debug)
    else:
        calculate = ipu.popnn.ctc.calcLossAndGradientLogProbabilities
        made = calculate(*given, plan, debug, {"includeSoftmaxGradient": "false"})
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
