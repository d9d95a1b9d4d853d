"""Operations of Graphcore's TensorFlow: sections 18.13 and 18.14 of its API."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import ipujax as ipu
from tests.features.entry import Entry, Example, Reason

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) ** 2
ROWS = np.repeat(np.arange(6.0, dtype=np.float32)[:, None], 6, 1)
ZEROS = np.zeros((6, 6), np.float32)
SCORES = np.array([0.0, 1.0, 2.0, 2.0, 3.0, -1.0], np.float32)
LEVELS = np.array([0.0, 1.0, 2.0], np.float32)
IMAGE = np.arange(12, dtype=np.uint8).reshape(2, 2, 1, 3)
OFFSETS, SCALES = np.float16([1, 2, 3]), np.float16([0.5, 1, 2])
#: Two steps of one sequence of two inputs and three units, and states of 1.
STEPS, STATE = np.ones((2, 1, 2), np.float32), np.ones((1, 3), np.float32)


def whitened(x: np.ndarray, axes: tuple[int, ...], epsilon: float = 1e-6) -> np.ndarray:
    centred = x - x.mean(axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + epsilon)


def strided_groups(x: np.ndarray, groups: int) -> np.ndarray:
    """Channel c in group c % groups."""
    y = np.empty_like(x)
    for group in range(groups):
        y[..., group::groups] = whitened(x[..., group::groups], (1, 2))
    return y


def gru_weights() -> Any:
    return ipu.nn.GRUWeights(jnp.zeros((3, 2, 3)), jnp.zeros((3, 3, 3)), jnp.zeros((3, 3)))


def lstm() -> Any:
    weights = ipu.nn.LSTMWeights(jnp.zeros((4, 2, 3)), jnp.zeros((4, 3, 3)), jnp.zeros((4, 3)))
    y, state = ipu.nn.lstm(STEPS, weights, ipu.nn.LSTMState(STATE, STATE))
    return y[:, 0, 0], state.cell[0, 0]


def dropped() -> Any:
    """The values that are left, and how many of 1000 are kept with one seed for both rows."""
    y = ipu.nn.dropout(jnp.ones((2, 1000)), np.uint32([1, 2]), rate=0.75, noise_shape=(1, 1000))
    return jnp.unique(y), jnp.all(y[0] == y[1]), jnp.abs(jnp.mean(y) - 1) < 0.2


def ctc() -> Any:
    """A label, and a blank or the label once more: 3 of the 9 alignments of two steps."""
    logits, labels = jnp.zeros((2, 1, 3)), jnp.array([[1]])
    return jnp.exp(-ipu.nn.ctc_loss(logits, labels))


def ctc_log_probs() -> Any:
    log_probs = jnp.full((2, 1, 3), -jnp.log(3.0))
    return jnp.exp(-ipu.nn.ctc_loss_with_log_probs(log_probs, jnp.array([[1]])))


def decoded() -> Any:
    logits = jnp.log(jnp.array([[[0.7, 0.1, 0.2]], [[0.1, 0.1, 0.8]], [[0.1, 0.8, 0.1]]]))
    paths = ipu.nn.ctc_beam_search_decoder(logits, beam_width=4)
    return paths.labels[0, 0, :2]


def sampled(loss: Any) -> Any:
    """Scores of 0 and all 8 classes drawn, so that nothing depends on what is drawn."""
    labels, inputs = jnp.array([[1], [0]]), jnp.ones((2, 2))
    return loss(jnp.zeros((8, 2)), jnp.zeros(8), labels, inputs, 7, 8, seed=0).shape


def convolutions() -> Any:
    x, kernel = jnp.ones((1, 2, 4, 4)), jnp.ones((3, 2, 3, 3))
    two = ipu.ops.multi_conv(
        [ipu.ops.Conv(x, kernel), ipu.ops.Conv(x, kernel, padding="SAME")],
        {"perConvReservedTiles": 50},
    )
    return two[0][0, 0], two[1][0, 0, 0]


def host_embedding() -> Any:
    """Row 7 is looked up twice; its gradient is 2 for each, and the rate is 0.1."""
    table = ipu.HostEmbedding(np.ones((10, 2), np.float32), ipu.HostEmbeddingSGD(0.1))

    @jax.jit
    def step(token: Any, ids: Any) -> Any:
        count = jax.grad(lambda token: jnp.sum(table.lookup(token, ids) ** 2))(token)
        return token + count

    return table.read(step(table.token(), jnp.array([7, 7])), 7, 9)


def outlined() -> Any:
    square = ipu.outlined(lambda x: x * x)
    return jax.jit(lambda x: square(x) + square(x + 1))(3.0)


def checkpointed() -> Any:
    return jax.value_and_grad(lambda x: ipu.recomputation_checkpoint(x * x) * 3.0)(2.0)


GRU = "18.13 and 18.14.9, PopnnGRU: with weights of zero each gate is 1/2 and the candidate 0"
NORM = "18.14.8: the equations of the normalization operators"
SLICE = "18.14.16: the example of the operator and its printed result"
STATISTICS = "18.14.17: levels evenly spaced over the inputs, and counts between them"

OPS: dict[str, Entry] = {
    "keras.layers.Dropout": Example(
        "18.13, Dropout: elements are kept with probability 1 - rate, and divided by that",
        dropped,
        (np.float32([0, 4]), True, True),
    ),
    "rand_ops.dropout": Example(
        "18.14.14: those kept are scaled by 1 / (1 - rate); noise_shape shares the mask",
        dropped,
        (np.float32([0, 4]), True, True),
    ),
    "keras.layers.Embedding": Example(
        "18.13, Embedding: integers become the rows of the table",
        lambda: ipu.ops.embedding_lookup(X[0], np.array([[2, 0]])),
        X[0][[[2, 0]]],
    ),
    "embedding_ops.embedding_lookup": Example(
        "18.14.12: slices of params by ids, serialized or not",
        lambda: ipu.ops.embedding_lookup(X[0][:2], np.array([1, 1, 0]), 2),
        X[0][[1, 1, 0]],
    ),
    "keras.layers.GRU": Example(
        GRU, lambda: ipu.nn.gru(STEPS, gru_weights(), STATE)[0][:, 0, 0], np.float32([0.5, 0.25])
    ),
    "keras.layers.LSTM": Example(
        "18.13 and 18.14.9, PopnnLSTM: with weights of zero each gate is 1/2, the candidate 0",
        lstm,
        (0.5 * np.tanh(np.float32([0.5, 0.25])), 0.25),
    ),
    "rnn_ops.PopnnDynamicGRU": Example(
        "18.14.9, PopnnDynamicGRU: seq_len ends a sequence after that many steps",
        lambda: ipu.nn.dynamic_gru(STEPS, jnp.array([1]), gru_weights(), STATE)[1][0, 0],
        0.5,
    ),
    "keras.layers.GroupNormalization": Example(
        NORM, lambda: ipu.nn.group_norm(X, groups=2), strided_groups(X, 2)
    ),
    "keras.layers.InstanceNormalization": Example(
        NORM, lambda: ipu.nn.instance_norm(X), whitened(X, (1,))
    ),
    "keras.layers.LayerNormalization": Example(
        "18.13, LayerNormalization: axis=-1 and epsilon=0.001 are its defaults",
        lambda: ipu.nn.layer_norm(X, axis=-1, epsilon=0.001),
        whitened(X, (2,), 0.001),
    ),
    "normalization_ops.layer_norm": Example(
        NORM, lambda: ipu.nn.layer_norm(X, axis=None), whitened(X, (1, 2))
    ),
    "keras.layers.RecomputationCheckpoint": Example(
        "18.14.6, recomputation_checkpoint: the tensors themselves", checkpointed, (12.0, 12.0)
    ),
    "custom_ops.codelet_expression_op": Example(
        "18.14.1, codelet_expression_op: its example x * x + y * z",
        lambda: ipu.codelet_expression(lambda x, y, z: x * x + y * z)(
            jnp.float32([1, 2]), jnp.float32([3, 4]), jnp.float32([5, 6])
        ),
        np.float32([16, 28]),
    ),
    "custom_ops.cpu_user_operation": Example(
        "18.14.1, cpu_user_operation: a function of the host between operations of the IPU",
        lambda: jax.jit(ipu.host_call(lambda x: x + 2, lambda x: x))(jnp.float32([1, 2])),
        np.float32([3, 4]),
    ),
    "custom_ops.precompiled_user_op": Reason(
        "its document gives an interface in C++ and no numbers",
        "tests/api/custom/test_custom_op.py",
    ),
    "functional_ops.outlined_function": Example(
        "18.14.2: a function that is called twice computes what it would inline", outlined, 25.0
    ),
    "image_ops.normalise_image": Example(
        "18.14.3: (image * scale - offset) * channel scale, and a fourth channel of zeros",
        lambda: ipu.ops.normalise_image(IMAGE, OFFSETS, SCALES, 2.0),
        np.pad((IMAGE * np.float16(2) - OFFSETS) * SCALES, ((0, 0),) * 3 + ((0, 1),)),
    ),
    "internal_ops.print_tensor": Example(
        "18.14.4: the second example, whose result is one more than its ones",
        lambda: jax.jit(lambda x: ipu.ops.print_tensor(x) + 1)(jnp.ones((2, 2))),
        np.full((2, 2), 2.0, np.float32),
    ),
    "math_ops.serialized_matmul": Example(
        "18.14.5: the sum over k of a[i, k] b[k, j], for each of the three dimensions",
        lambda: [
            ipu.ops.serialized_matmul(X[0], X[0], factor, dimension, transpose_b=True)
            for factor, dimension in ((3, "a_columns"), (2, "a_rows_b_columns"), (3, "b_rows"))
        ],
        [X[0] @ X[0].T] * 3,
    ),
    "nn_ops.ctc_beam_search_decoder": Example(
        "18.14.7: the most probable paths; the example's are those of the decoder's definition",
        decoded,
        [0, 1],
    ),
    "nn_ops.ctc_loss": Example(
        "18.14.7: minus the logarithm of the probability of the labels", ctc, [1 / 3]
    ),
    "nn_ops.ctc_loss_with_log_probs": Example(
        "18.14.7: as ctc_loss, from logarithms of probabilities", ctc_log_probs, [1 / 3]
    ),
    "nn_ops.gelu": Example(
        "18.14.7: gelu by tanh, hard_sigmoid and swish by their definitions",
        lambda: [
            f(jnp.float32([-1, 0, 4])) for f in (ipu.nn.gelu, ipu.nn.hard_sigmoid, ipu.nn.swish)
        ],
        [
            np.float32([-0.158808, 0, 3.99993]),
            np.float32([0.3, 0.5, 1]),
            np.float32([-0.268941, 0, 3.928055]),
        ],
    ),
    "nn_ops.multi_conv": Example(
        "18.14.7, multi_conv: each convolution's own result, with an option of its example",
        convolutions,
        (np.full((2, 2), 18.0), np.float32([8, 12, 12, 8])),
    ),
    "nn_ops.nce_loss": Example(
        "18.14.7: a vector of one loss for each example",
        lambda: (sampled(ipu.ops.nce_loss), sampled(ipu.ops.sampled_softmax_loss)),
        ((2,), (2,)),
    ),
    "embedding_ops.HostEmbedding": Example(
        "18.14.12, HostEmbedding: rows on the host, trained with SGD",
        host_embedding,
        np.float32([[0.6, 0.6], [1, 1]]),
    ),
    "slicing_ops.sequence_slice": Example(
        SLICE,
        lambda: [
            ipu.ops.sequence_slice(ZEROS, ROWS, [2, 2], [2, 1], [0, 4], False)[:, 0],
            ipu.ops.sequence_slice_pack(ZEROS, ROWS[[2, 3, 1, 2]], [2, 2], [2, 1], False)[:, 0],
            ipu.ops.sequence_slice_unpack(ROWS, [2, 2], [2, 1], 4)[:, 0],
        ],
        [[2, 3, 0, 0, 1, 2], [0, 1, 2, 3, 0, 0], [2, 3, 1, 2]],
    ),
    "statistics_ops.fixed_width_bins": Example(
        STATISTICS,
        lambda: [
            ipu.ops.fixed_width_bins(SCORES, 5),
            ipu.ops.histogram(SCORES, LEVELS),
            ipu.ops.histogram(SCORES, LEVELS, True),
            ipu.ops.histogram_update(ipu.ops.histogram(SCORES, LEVELS), SCORES, LEVELS),
        ],
        [[-1, 0, 1, 2, 3], [1, 1, 1, 3], [0, 1, 2, 3], [2, 2, 2, 6]],
    ),
}
