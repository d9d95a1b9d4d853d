"""Arguments that are not allowed: each error names the argument, what it needs and what it got."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from tests.refusals import Refusal, check_refused

ops = ipu.ops
NAN = float("nan")
X = np.ones((4, 6), np.float32)
#: Weights and biases of 6 classes, labels and inputs of 2 examples.
W, B = np.ones((6, 3), np.float32), np.ones(6, np.float32)
L, EXAMPLES = np.zeros((2, 1), np.int32), np.ones((2, 3), np.float32)

#: name -> (a call, what the error says that is needed, what it got)
REFUSED: dict[str, Refusal] = {
    "emb-ids": (
        lambda: ops.embedding_lookup(X, np.ones(2)),
        "needs ids of an integer dtype",
        "float32",
    ),
    "emb-range": (lambda: ops.embedding_lookup(X, [0, 4]), "needs ids from 0 to 3", "4"),
    "emb-negative": (lambda: ops.embedding_lookup(X, ([0], -1)), "needs ids from 0 to 3", "-1"),
    "emb-64": (
        lambda: ops.embedding_lookup(X, np.array([2**32])),
        "needs ids of integers from -2147483648 to",
        "4294967296",
    ),
    "mconv-dilation": (
        lambda: ops.multi_conv(
            [ops.Conv(np.ones((1, 3, 4, 4), np.float32), X[:3, :3, None, None], lhs_dilation=(2,))]
        ),
        "needs arguments of a convolution",
        "[1, 3, 4, 4] and [3, 3, 1, 1] in number 0: strides and dilations are 2 numbers",
    ),
    "mconv-strides": (
        lambda: ops.multi_conv(
            [ops.Conv(np.ones((1, 3, 4), np.float32), X[:3, :3, None], window_strides=[2**40])]
        ),
        "needs arguments of a convolution",
        "[1, 3, 4] and [3, 3, 1] in number 0: strides, dilations and groups are from 1",
    ),
    "emb-rows0": (
        lambda: ops.embedding_lookup(X[:0], [0]),
        "needs params [rows, ...] of a floating-point",
        "float32 [0, 6]",
    ),
    "emb-factor": (
        lambda: ops.embedding_lookup(X, [0], 3),
        "needs serialization_factor to divide the 4 rows",
        "3",
    ),
    "emb-update": (
        lambda: ops.embedding_lookup(X, [0], update="x"),
        "needs update to be one of add,",
        "'x'",
    ),
    "emb-int": (
        lambda: ops.embedding_lookup(np.ones((2, 2), int), [0]),
        "needs params [rows, ...] of a floating-point",
        "int32 [2, 2]",
    ),
    "hist-levels": (
        lambda: ops.histogram(X[0], np.zeros(0, np.float32)),
        "needs at least one level, of the",
        "0 of float32 for inputs of float32",
    ),
    "hist-rank": (
        lambda: ops.histogram(X, X[0]),
        "needs inputs [n] of a floating-point dtype",
        "float32 [4, 6]",
    ),
    "hist-unsorted": (
        lambda: ops.histogram(X[0], np.array([2, 1], np.float32)),
        "needs levels that ascend",
        "[2.0, 1.0]",
    ),
    "hist-nan-level": (
        lambda: ops.histogram(X[0], np.array([NAN], np.float32)),
        "needs levels that ascend",
        "[nan]",
    ),
    "histu": (
        lambda: ops.histogram_update(np.zeros(2, np.float32), X[0], np.zeros(4, np.float32)),
        "needs hist of float32 [5], one entry",
        "float32 [2]",
    ),
    "bins-0": (
        lambda: ops.fixed_width_bins(X[0], 0),
        "needs inputs of at least 1 element",
        "6 and 0",
    ),
    "img": (
        lambda: ops.normalise_image(X, [0, 0, 0], [1, 1, 1]),
        "needs an image [..., 3] of uint8,",
        "float32 [4, 6]",
    ),
    "img-nan": (
        lambda: ops.normalise_image(X[:, :3], [0, 0, 0], [1, 1, 1], NAN),
        "needs scale to be a finite number",
        "nan",
    ),
    "img-off": (
        lambda: ops.normalise_image(X[:, :3], [0, 0], [1, 1, 1]),
        "needs channel_offsets [3]",
        "[2]",
    ),
    "nce-labels-f": (
        lambda: ops.nce_loss(W, B, L * 1.0, EXAMPLES, 2, 6, seed=0),
        "needs labels of an integer dtype",
        "float32",
    ),
    "nce-labels-range": (
        lambda: ops.nce_loss(W, B, L + 6, EXAMPLES, 2, 6, seed=0),
        "needs labels from 0 to 5",
        "6",
    ),
    "nce-labels-neg": (
        lambda: ops.nce_loss(W, B, L - 1, EXAMPLES, 2, 6, seed=0),
        "needs labels from 0 to 5",
        "-1",
    ),
    "nce-dtype": (
        lambda: ops.nce_loss(W, B, L, EXAMPLES.astype(np.float16), 2, 6, seed=0),
        "needs inputs of the dtype of weights,",
        "float16",
    ),
    "nce-sampled0": (
        lambda: ops.nce_loss(W, B, L, EXAMPLES, 0, 6, seed=0),
        "needs num_sampled to be a whole number",
        "0",
    ),
    "nce-seed": (
        lambda: ops.nce_loss(W, B, L, EXAMPLES, 2, 6, seed=1.5),
        "needs seed to be a key of JAX,",
        "float32 []",
    ),
    "nce-int-w": (
        lambda: ops.nce_loss(W.astype(int), B, L, EXAMPLES, 2, 6, seed=0),
        "needs weights of a float dtype",
        "int32",
    ),
    "sampler-0": (
        lambda: ops.uniform_candidate_sampler(0, L, 0, True, 5),
        "needs num_sampled to be a whole number",
        "0",
    ),
    "sampler-uniq": (
        lambda: ops.uniform_candidate_sampler(0, L, 6, True, 5),
        "needs at least as many classes as",
        "5 and num_sampled = 6",
    ),
    "sampler-float": (
        lambda: ops.uniform_candidate_sampler(0, L * 1.0, 6, False, 5),
        "needs true_classes of an integer dtype",
        "float32",
    ),
    "sampler-range": (
        lambda: ops.uniform_candidate_sampler(0, L + 9, 2, False, 5),
        "needs true_classes from 0 to 4",
        "9",
    ),
    "sampler-key": (
        lambda: ops.uniform_candidate_sampler(1.5, L, 2, False, 5),
        "needs key to be a key of JAX,",
        "float32 []",
    ),
    "unigram-neg": (
        lambda: ops.fixed_unigram_candidate_sampler(0, L, 2, False, [-1, 2]),
        "needs unigrams [n] of finite numbers, not",
        "[2] with -1.0",
    ),
    "unigram-zero": (
        lambda: ops.fixed_unigram_candidate_sampler(0, L, 2, False, [0, 0]),
        "needs a unigram above 0, and num_reserved_ids",
        "0 and 0",
    ),
    "unigram-range": (
        lambda: ops.fixed_unigram_candidate_sampler(0, L + 3, 2, False, [1, 2]),
        "needs true_classes from 0 to 1",
        "3",
    ),
    "unigram-distortion": (
        lambda: ops.fixed_unigram_candidate_sampler(0, L, 2, False, [1, 2], NAN),
        "needs unigrams and a distortion that are known",
        "[1, 2] and nan",
    ),
    "learned-neg": (
        lambda: ops.learned_unigram_candidate_sampler(0, -np.ones(3, np.float32), L, 2, False),
        "needs counts of float32 [classes], not negative",
        "float32 [3] with -1.0",
    ),
    "learned-range": (
        lambda: ops.learned_unigram_candidate_sampler(0, np.ones(3, np.float32), L - 1, 2, False)[
            1
        ],
        "needs true_classes from 0 to 2",
        "-1",
    ),
    "mconv": (
        lambda: ops.multi_conv(
            [
                ops.Conv(
                    np.ones((1, 3, 4), np.float32),
                    np.ones((2, 3, 2), np.float32),
                    feature_group_count=2,
                )
            ]
        ),
        "needs arguments of a convolution",
        "[1, 3, 4] and [2, 3, 2] in number 0: con",
    ),
    "mconv0": (lambda: ops.multi_conv([]), "needs a list of ipu.ops.Conv", "none"),
    "smm": (
        lambda: ops.serialized_matmul(X, X.T, 4, "reducing_dim"),
        "needs a serialization_factor that divides 6, the",
        "4",
    ),
    "smm-name": (
        lambda: ops.serialized_matmul(X, X.T, 2, "x"),
        "needs a serialization_dimension of a_columns, a_rows_b_columns, b_rows,",
        "'x'",
    ),
    "smm-rank": (
        lambda: ops.serialized_matmul(X[0], X.T, 2, "reducing_dim"),
        "needs a [..., m, k] and b",
        "float32 [6] and float32 [6, 4]",
    ),
    "ss-neg": (
        lambda: ops.sequence_slice(X, X, [-1], [0], [0], False),
        "needs num_elems that are not negative",
        "-1",
    ),
    "ss-neg-off": (
        lambda: ops.sequence_slice(X, X, [1], [-1], [0], False),
        "needs src_offsets that are not negative",
        "-1",
    ),
    "ss-len": (
        lambda: ops.sequence_slice(X, X, [1, 1], [1], [0], False),
        "needs one number and offset for each",
        "2, 1 and 1",
    ),
    "ss-rank": (
        lambda: ops.sequence_slice(X[0], X[0], [1], [1], [0], False),
        "needs dst and src of rank 2",
        "float32 [6] and float32 [6]",
    ),
    "ssu-total": (
        lambda: ops.sequence_slice_unpack(X, [1], [0], -1),
        "needs total_elements to be a whole number of at least 0",
        "-1",
    ),
    "ssu-total-f": (
        lambda: ops.sequence_slice_unpack(X, [1], [0], 1.5),
        "needs total_elements to be a whole number of at least 0",
        "1.5",
    ),
    "sort-axis": (lambda: ops.sort(X, 2), "needs an axis of the array", "2 for float32 [4, 6]"),
    "sort-rank0": (
        lambda: ops.sort(np.float32(1)),
        "needs an axis of the array",
        "-1 for float32 []",
    ),
    "sort-complex": (
        lambda: ops.sort(np.ones(3, complex)),
        "needs arrays that are not complex",
        "complex64 [3]",
    ),
    "skv": (
        lambda: ops.sort_key_value(X, X[0]),
        "needs keys and values of one shape",
        "[4, 6] and [6]",
    ),
    "topk": (lambda: ops.top_k(X, 7), "needs k from 0 to the size", "7 for float32 [4, 6]"),
    "topk-bool": (
        lambda: ops.top_k(X, True),
        "needs k from 0 to the size",
        "True for float32 [4, 6]",
    ),
    "topk-order": (
        lambda: ops.top_k(X, 1, order="x"),
        "needs an order of descending, ascending, none",
        "'x'",
    ),
    "f8-scale": (lambda: ops.cast_to_float8(X, scale=40), "needs a scale from -32 to 31", "40"),
    "f8-format": (lambda: ops.cast_to_float8(X, "F999"), "needs a format of F143, F152", "'F999'"),
    "f8-int": (
        lambda: ops.cast_to_float8(X.astype(int)),
        "needs float16 or float32",
        "int32 [4, 6]",
    ),
    "f8-from": (lambda: ops.cast_from_float8(X), "needs a Float8", "ndarray"),
    "f8-from-dt": (
        lambda: ops.cast_from_float8(ops.cast_to_float8(X), jnp.int32),
        "needs float16 or float32 as dtype",
        "int32",
    ),
    "f8-mm": (
        lambda: ops.float8_matmul(ops.cast_to_float8(X), ops.cast_to_float8(X), emulate=True),
        "needs a [..., m, k] and b",
        "[4, 6] and [4, 6]",
    ),
    "f8-ctor": (
        lambda: ops.cast_from_float8(ops.Float8(jnp.zeros(2, jnp.uint8), "F9", 0)),
        "needs a Float8 with bits of uint8,",
        "uint8, 'F9' and 0",
    ),
    "f8-ctor-bits": (
        lambda: ops.cast_from_float8(ops.Float8(jnp.zeros(2, jnp.float32), "F143", 0)),
        "needs a Float8 with bits of uint8,",
        "float32, 'F143' and 0",
    ),
    "ru": (
        lambda: ops.random_uniform((2,), low=2, high=1),
        "needs finite numbers low <= high",
        "2 and 1",
    ),
    "ru-nan": (
        lambda: ops.random_uniform((2,), low=NAN),
        "needs finite numbers low <= high",
        "nan and 1.0",
    ),
    "ru-shape": (lambda: ops.random_uniform((-2,)), "needs a shape with sizes of 0", "(-2,)"),
    "ru-dtype": (
        lambda: ops.random_uniform((2,), "int8"),
        "needs a dtype of float32, float16, bfloat16,",
        "int8",
    ),
    "rn-std": (
        lambda: ops.random_normal((2,), stddev=-1),
        "needs a finite mean and a deviation",
        "0.0 and -1",
    ),
    "rn-nan": (
        lambda: ops.random_normal((2,), mean=NAN),
        "needs a finite mean and a deviation",
        "nan and 1.0",
    ),
    "rt-alpha": (
        lambda: ops.random_truncated_normal((2,), alpha=0),
        "needs alpha greater than 0",
        "0",
    ),
    "rb": (
        lambda: ops.random_bernoulli((2,), probability=NAN),
        "needs a probability from 0 to 1",
        "nan",
    ),
    "rb-seed": (
        lambda: ops.random_bernoulli((2,), seed=np.zeros((2, 2), np.uint32)),
        "needs seed to be a key",
        "uint32 [2, 2]",
    ),
    "rb-seed-f": (
        lambda: ops.random_bernoulli((2,), seed=1.5),
        "needs seed to be a key",
        "float32 []",
    ),
    "reset": (lambda: ipu.reset_seed(-1), "needs a seed from 0 to 2**64", "-1"),
    "id": (lambda: ops.identity_loss(X, "max"), "needs a reduction of sum, mean, none", "'max'"),
    "id-int": (
        lambda: ops.identity_loss(X.astype(int), "sum"),
        "needs x of a float dtype",
        "int32",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    check_refused(REFUSED[name])


def test_what_only_run_time_knows() -> None:
    """Classes count as the nearest one, and runs that begin before all rows are not copied."""
    sampled = ops.Candidates(
        np.array([1, 2], np.int32), np.full((2, 1), 0.5, np.float32), np.full(2, 0.5, np.float32)
    )

    def loss(labels: Any) -> Any:
        return ops.nce_loss(W * np.arange(6)[:, None], B, labels, EXAMPLES, 2, 6, 1, sampled)

    wrong = np.array([[-3], [9]], np.int32)
    np.testing.assert_array_equal(jax.jit(loss)(wrong), loss(np.array([[0], [5]], np.int32)))

    def counts(classes: Any) -> Any:
        found = ops.learned_unigram_candidate_sampler(0, jnp.ones(6), classes, 2, False)
        return found[1]

    np.testing.assert_array_equal(jax.jit(counts)(wrong), [2, 1, 1, 1, 1, 2])
    src = np.arange(1, 5, dtype=np.float32)[:, None]

    def moved(*runs: Any) -> Any:
        return ops.sequence_slice(jnp.zeros((4, 1)), src, *runs, False)[:, 0]

    runs = ([2, -1, 2, 1], [0, 0, -1, 3], [-1, 0, 0, 3])
    found = jax.jit(moved)(*(np.array(each, np.int32) for each in runs))
    np.testing.assert_array_equal(found, [0, 0, 0, 4])
