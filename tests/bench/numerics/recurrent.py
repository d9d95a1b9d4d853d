"""Recurrent layers and CTC of ipu.nn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import ipujax as ipu
from tests.bench.numerics.program import Program, both, forward
from tests.bench.workload import normal

#: Steps, sequences, input channels and units of a layer.
TIME, BATCH, IN, OUT = 128, 16, 64, 128
#: Steps, sequences, classes and labels of speech.
STEPS, CLASSES, LABELS = 128, 32, 24
_LSTM_BOUND, _CTC_BOUND, _BEAM_BOUND = 0.5, 0.3, 0.5


def _layer(units: int) -> list[Any]:
    """x and the weights, which keep states at their size."""
    return [
        normal(TIME, BATCH, IN),
        normal(units, IN, OUT, seed=1) / np.float32(IN**0.5),
        normal(units, OUT, OUT, seed=2) / np.float32(OUT**0.5),
        np.zeros((units, OUT), np.float32),
    ]


def _lengths(most: int) -> Any:
    return np.random.default_rng(3).integers(most // 2, most + 1, BATCH).astype(np.int32)


def _layers() -> Iterator[Program]:
    def lstm(x: Any, *weights: Any) -> Any:
        return ipu.nn.lstm(x, ipu.nn.LSTMWeights(*weights))[0]

    def gru(x: Any, *weights: Any) -> Any:
        return ipu.nn.gru(x, ipu.nn.GRUWeights(*weights))[0]

    def dynamic(x: Any, lengths: Any, *weights: Any) -> Any:
        return ipu.nn.dynamic_gru(x, lengths, ipu.nn.GRUWeights(*weights))[0]

    def augru(x: Any, attention: Any, *weights: Any) -> Any:
        return ipu.nn.augru(x, attention, ipu.nn.GRUWeights(*weights))[0]

    def with_second(second: Any) -> Any:
        def arguments() -> list[Any]:
            x, *weights = _layer(3)
            return [x, second, *weights]

        return arguments

    attention = np.random.default_rng(4).random((BATCH, TIME), np.float32)
    yield from both("lstm", lstm, lambda: _layer(4), (0, 1, 2, 3), _LSTM_BOUND)
    yield from both("gru", gru, lambda: _layer(3), (0, 1, 2, 3))
    yield from both("dynamic_gru", dynamic, with_second(_lengths(TIME)), (0, 2, 3, 4))
    yield from both("augru", augru, with_second(attention), (0, 1, 2, 3, 4))


def _ctc() -> Iterator[Program]:
    def arguments() -> list[Any]:
        labels = np.random.default_rng(5).integers(1, CLASSES, (BATCH, LABELS)).astype(np.int32)
        return [normal(STEPS, BATCH, CLASSES), labels, _lengths(STEPS)]

    def beams(logits: Any, lengths: Any) -> Any:
        return ipu.nn.ctc_beam_search_decoder(logits, lengths, beam_width=16)

    def of_log_probs(logits: Any, labels: Any, lengths: Any) -> Any:
        return ipu.nn.ctc_loss_with_log_probs(ipu.nn.log_softmax(logits), labels, lengths)

    yield from both("ctc_loss", ipu.nn.ctc_loss, arguments, bound=_CTC_BOUND)
    yield from both("ctc_loss_with_log_probs", of_log_probs, arguments, bound=_CTC_BOUND)
    yield from forward(
        "ctc_beam_search_decoder", beams, lambda: arguments()[::2], bound=_BEAM_BOUND
    )


def programs() -> Iterator[Program]:
    yield from _layers()
    yield from _ctc()
