"""Arguments that are not allowed: each error names the argument, what it needs and what it got."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from tests.refusals import Refusal, check_refused

nn = ipu.nn
NAN, INF = float("nan"), float("inf")
X = np.ones((4, 6), np.float32)
KEY = jax.random.key(0)
#: Logits of 2 steps, 3 sequences and 4 classes.
G = np.zeros((2, 3, 4), np.float32)


def layer(units: int, changed: dict[str, Any]) -> tuple[Any, Any]:
    shapes = {"x": (5, 2, 3), "w": (units, 3, 2), "u": (units, 2, 2), "b": (units, 2)}
    arrays = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
    arrays |= {name: changed.pop(name) for name in shapes if name in changed}
    kind = nn.LSTMWeights if units == 4 else nn.GRUWeights
    return arrays["x"], kind(arrays["w"], arrays["u"], arrays["b"])


def lstm(**changed: Any) -> Any:
    return nn.lstm(*layer(4, changed), **changed)


def gru(name: str = "gru", *more: Any, **changed: Any) -> Any:
    x, weights = layer(3, changed)
    return getattr(nn, name)(x, *more, weights, **changed)


#: name -> (a call, what the error says that is needed, what it got)
REFUSED: dict[str, Refusal] = {
    "leaky-nan": (lambda: nn.leaky_relu(X, NAN), "needs a finite alpha", "alpha=nan"),
    "elu-inf": (lambda: nn.elu(X, INF), "needs a finite alpha", "alpha=inf"),
    "relu-int": (lambda: nn.relu(np.ones(2, int)), "needs x of a float dtype", "int32"),
    "gelu-complex": (lambda: nn.gelu(np.ones(2, complex)), "needs x of a float dtype", "complex64"),
    "softmax-rank0": (
        lambda: nn.softmax(np.float32(1)),
        "needs an axis of x, which has",
        "axis=-1",
    ),
    "softmax-axis": (lambda: nn.softmax(X, axis=2), "needs an axis of x, which has", "axis=2"),
    "softmax-kind": (lambda: nn.softmax(X, kind="x"), "needs kind to be one of plain,", "'x'"),
    "ln-eps-nan": (
        lambda: nn.layer_norm(X, epsilon=NAN),
        "needs a finite epsilon above 0",
        "epsilon=nan",
    ),
    "ln-eps-inf": (
        lambda: nn.layer_norm(X, epsilon=INF),
        "needs a finite epsilon above 0",
        "epsilon=inf",
    ),
    "ln-axis-dup": (
        lambda: nn.layer_norm(X, axis=(0, 0)),
        "needs one or more different dimensions of",
        "axis=(0, 0)",
    ),
    "ln-gamma": (lambda: nn.layer_norm(X, np.ones(5)), "needs gamma of shape (6,)", "(5,)"),
    "ln-axis-float": (
        lambda: nn.layer_norm(X, axis=1.5),
        "needs axis to be the number of",
        "axis=1.5",
    ),
    "gn-groups-4": (
        lambda: nn.group_norm(X, groups=4),
        "needs groups that divide the 6 channels",
        "groups=4",
    ),
    "gn-groups-0": (
        lambda: nn.group_norm(X, groups=0),
        "needs groups that divide the 6 channels",
        "groups=0",
    ),
    "gn-groups-True": (
        lambda: nn.group_norm(X, groups=True),
        "needs groups that divide the 6 channels",
        "groups=True",
    ),
    "gn-groups-2.0": (
        lambda: nn.group_norm(X, groups=2.0),
        "needs groups that divide the 6 channels",
        "groups=2.0",
    ),
    "gn-rank1": (
        lambda: nn.group_norm(X[0]),
        "needs channels_axis to be a dimension of",
        "channels_axis=-1",
    ),
    "gn-rank0": (
        lambda: nn.group_norm(np.float32(1)),
        "needs channels_axis to be a dimension of",
        "channels_axis=-1",
    ),
    "in-axis0": (
        lambda: nn.instance_norm(X, channels_axis=0),
        "needs channels_axis to be a dimension of",
        "channels_axis=0",
    ),
    "gn-eps0": (lambda: nn.group_norm(X, epsilon=0), "needs a finite epsilon above 0", "epsilon=0"),
    "bn-momentum-nan": (
        lambda: nn.batch_norm(X, nn.batch_norm_init(6), momentum=NAN),
        "needs a finite epsilon above 0 and",
        "epsilon=0.001, momentum=nan",
    ),
    "bn-state": (
        lambda: nn.batch_norm(X, nn.batch_norm_init(5)),
        "needs state.mean of shape (6,)",
        "(5,)",
    ),
    "bn-state-None": (
        lambda: nn.batch_norm(X, None),
        "needs a BatchNormState as state",
        "NoneType",
    ),
    "bn-eps-inf": (
        lambda: nn.batch_norm(X, nn.batch_norm_init(6), epsilon=INF),
        "needs a finite epsilon above 0 and",
        "epsilon=inf, momentum=0.99",
    ),
    "bn-rank0": (
        lambda: nn.batch_norm(np.float32(1), nn.batch_norm_init(6)),
        "needs channels_axis to be a dimension of",
        "channels_axis=-1",
    ),
    "bn-group0": (
        lambda: nn.batch_norm(X, nn.batch_norm_init(6), replica_group_size=0),
        "needs a mapped axis",
        "none",
    ),
    "bn-init--1": (lambda: nn.batch_norm_init(-1), "needs channels to be a whole number", "-1"),
    "bn-init-1.5": (lambda: nn.batch_norm_init(1.5), "needs channels to be a whole number", "1.5"),
    "ce-scale0": (
        lambda: nn.cross_entropy(X, np.zeros(4, int), loss_scale=0),
        "needs a finite scalar loss_scale above 0",
        "0",
    ),
    "ce-labels-rank": (
        lambda: nn.cross_entropy(X, np.zeros((4, 1), int)),
        "needs integer labels of shape (4,)",
        "int32[4, 1]",
    ),
    "ce-labels-float": (
        lambda: nn.cross_entropy(X, np.zeros(4)),
        "needs integer labels of shape (4,)",
        "float32[4]",
    ),
    "ce-rank0": (
        lambda: nn.cross_entropy(np.float32(1), np.zeros((), int)),
        "needs logits [..., classes] of a float",
        "float32[]",
    ),
    "ce-scale-rank": (
        lambda: nn.cross_entropy(X, np.zeros(4, int), loss_scale=np.ones(4, np.float32)),
        "needs a finite scalar loss_scale above 0",
        "[1",
    ),
    "ce-scale-arr0": (
        lambda: nn.cross_entropy(X, np.zeros(4, int), loss_scale=np.float32(0)),
        "needs a finite scalar loss_scale above 0",
        "0.0",
    ),
    "ce-scale-jarr0": (
        lambda: nn.cross_entropy(X, np.zeros(4, int), loss_scale=jnp.float32(0)),
        "needs a finite scalar loss_scale above 0",
        "0.0",
    ),
    "ctc-rank": (
        lambda: nn.ctc_loss(X, np.zeros((2, 1), int)),
        "needs logits [time, batch, classes] of float32,",
        "float32 [4, 6]",
    ),
    "ctc-blank": (
        lambda: nn.ctc_loss(G, np.ones((3, 1), int), blank_index=4),
        "needs a blank_index among the 4 classes",
        "4",
    ),
    "ctc-label-blank": (
        lambda: nn.ctc_loss(G, np.zeros((3, 1), int)),
        "needs labels that are classes from 0",
        "0",
    ),
    "ctc-label-range": (
        lambda: nn.ctc_loss(G, np.full((3, 1), 4)),
        "needs labels that are classes from 0",
        "4",
    ),
    "ctc-lengths": (
        lambda: nn.ctc_loss(G, np.ones((3, 1), int), [3, 1, 1]),
        "needs data_lengths from 0 to 2",
        "3",
    ),
    "ctc-lengths-neg": (
        lambda: nn.ctc_loss(G, np.ones((3, 1), int), [-1, 1, 1]),
        "needs data_lengths from 0 to 2",
        "-1",
    ),
    "ctc-counts": (
        lambda: nn.ctc_loss(G, np.ones((3, 1), int), None, [2, 1, 1]),
        "needs label_lengths from 0 to 1",
        "2",
    ),
    "ctc-lengths-float": (
        lambda: nn.ctc_loss(G, np.ones((3, 1), int), [1.0, 1, 1]),
        "needs data_lengths [3] of integers",
        "float32 [3]",
    ),
    "ctc-batch": (
        lambda: nn.ctc_loss(G, np.ones((2, 1), int)),
        "needs labels [3, any] of integers",
        "int32 [2, 1]",
    ),
    "ctc-f64": (
        lambda: nn.ctc_loss(G.astype(int), np.ones((3, 1), int)),
        "needs logits [time, batch, classes] of float32,",
        "int32 [2, 3, 4]",
    ),
    "ctc-blank-float": (
        lambda: nn.ctc_loss(G, np.ones((3, 1), int), blank_index=0.5),
        "needs a blank_index among the 4 classes",
        "0.5",
    ),
    "beam-width0": (
        lambda: nn.ctc_beam_search_decoder(G, beam_width=0, top_paths=0),
        "needs 1 or more top_paths, and a",
        "top_paths=0 and beam_width=0",
    ),
    "beam-paths": (
        lambda: nn.ctc_beam_search_decoder(G, beam_width=2, top_paths=3),
        "needs 1 or more top_paths, and a",
        "top_paths=3 and beam_width=2",
    ),
    "beam-width-float": (
        lambda: nn.ctc_beam_search_decoder(G, beam_width=2.5, top_paths=1),
        "needs 1 or more top_paths, and a",
        "top_paths=1 and beam_width=2.5",
    ),
    "beam-lengths": (
        lambda: nn.ctc_beam_search_decoder(G, [9, 1, 1]),
        "needs data_lengths from 0 to 2",
        "9",
    ),
    "dropout-1": (lambda: nn.dropout(X, KEY, rate=1.0), "needs a rate from 0 up to,", "rate=1.0"),
    "dropout-nan": (lambda: nn.dropout(X, KEY, rate=NAN), "needs a rate from 0 up to,", "rate=nan"),
    "dropout-seed": (
        lambda: nn.dropout(X, np.zeros(3, np.uint32)),
        "needs seed to be a key",
        "uint32 [3]",
    ),
    "dropout-noise": (
        lambda: nn.dropout(X, KEY, noise_shape=(2, 6)),
        "needs a noise_shape of sizes that are",
        "noise_shape=(2, 6)",
    ),
    "lstm-x-rank": (lambda: lstm(x=X), "needs x [time, batch, in] of float32,", "float32 [4, 6]"),
    "lstm-w": (
        lambda: lstm(w=np.ones((3, 3, 2), np.float32)),
        "needs input_weights [4, 3, 2] of float32",
        "float32 [3, 3, 2]",
    ),
    "lstm-w-rank": (
        lambda: lstm(w=np.ones((3, 2), np.float32)),
        "needs input_weights [4, 3, 2] of float32",
        "float32 [3, 2]",
    ),
    "lstm-b-dtype": (
        lambda: lstm(b=np.zeros((4, 2), np.float16)),
        "needs biases [4, 2] of float32",
        "float16 [4, 2]",
    ),
    "lstm-act": (
        lambda: lstm(activation="gelu"),
        "needs activation of hard_sigmoid, relu, sigmoid, softmax, tanh",
        "'gelu'",
    ),
    "lstm-order": (
        lambda: lstm(cell_order=("forget",)),
        "needs a cell_order with each of forget,",
        "('forget',)",
    ),
    "lstm-order2": (
        lambda: lstm(cell_order=("forget", "input", "candidate", "out")),
        "needs a cell_order with each of forget,",
        "('forget', 'input', 'candidate', 'out')",
    ),
    "lstm-partials": (lambda: lstm(partials="double"), "needs partials of float, half", "'double'"),
    "lstm-amp-nan": (
        lambda: lstm(available_memory_proportion=NAN),
        "needs an available_memory_proportion above 0",
        "nan",
    ),
    "lstm-lengths": (
        lambda: lstm(lengths=[1, 2, 3]),
        "needs lengths [2] of integers, one for",
        "int32 [3]",
    ),
    "lstm-lengths-f": (
        lambda: lstm(lengths=[1.0, 2.0]),
        "needs lengths [2] of integers, one for",
        "float32 [2]",
    ),
    "lstm-lengths-beyond": (lambda: lstm(lengths=[5, 6]), "needs lengths from 0 to 5", "6"),
    "dyn-lengths-negative": (
        lambda: gru("dynamic_gru", np.array([5, -1])),
        "needs lengths from 0 to 5",
        "-1",
    ),
    "ln-gamma-complex": (
        lambda: nn.layer_norm(X, np.ones(6, complex)),
        "needs gamma of real numbers",
        "complex64",
    ),
    "bn-beta-bool": (
        lambda: nn.batch_norm(X, nn.batch_norm_init(6), None, np.ones(6, bool)),
        "needs beta of real numbers",
        "bool",
    ),
    "in-gamma": (
        lambda: nn.instance_norm(X[None], np.ones(5)),
        "needs gamma of shape (6,)",
        "(5,)",
    ),
    "ctc-labels-64": (
        lambda: nn.ctc_loss(G, np.full((3, 1), 2**32 + 1)),
        "needs labels of integers from -2147483648 to",
        "4294967297",
    ),
    "lstm-state": (
        lambda: lstm(
            state=nn.LSTMState(np.zeros((2, 3), np.float32), np.zeros((2, 2), np.float32))
        ),
        "needs state.output [2, 2] of float32",
        "float32 [2, 3]",
    ),
    "gru-after-bias": (
        lambda: gru(reset_after=True),
        "needs biases [3, 2, 2] of float32",
        "float32 [3, 2]",
    ),
    "augru-att": (
        lambda: gru("augru", np.ones((5, 2), np.float32)),
        "needs attention [2, 5] of float32",
        "float32 [5, 2]",
    ),
    "dyn-lengths": (
        lambda: gru("dynamic_gru", np.ones((2, 1), int)),
        "needs lengths [2] of integers, one for",
        "int32 [2, 1]",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    check_refused(REFUSED[name], ipu.IpuError)
