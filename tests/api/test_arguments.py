"""Arguments that mean the same: numbers of NumPy and JAX, flags, lists, and all kinds of keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax as ipu
from ipujax.api import arguments

nn, ops = ipu.nn, ipu.ops
RNG = np.random.default_rng(0)
X = RNG.normal(size=(3, 4, 6)).astype(np.float32)
TABLE, BIAS, INPUTS = X.reshape(12, 6), X[0, 0].repeat(2), X[0, :2]
LABELS = np.array([[1], [2]])
KEY = jax.random.key(0)
STATE = nn.batch_norm_init(6)
REFUSAL = r"^\[(ipu\.)?(nn|ops)\.\w+\] needs .*; got .*\.$"


def weights(units: int, kind: Any) -> Any:
    shapes = ((units, 6, 5), (units, 5, 5), (units, 5))
    return kind(*(RNG.normal(size=shape).astype(np.float32) for shape in shapes))


LSTM, GRU = weights(4, nn.LSTMWeights), weights(3, nn.GRUWeights)

#: Calls with an integer of some type, and an integer that they take.
INTEGERS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "softmax": (lambda n: nn.softmax(X, axis=n), 1),
    "log_softmax": (lambda n: nn.log_softmax(X, axis=n), -2),
    "layer_norm": (lambda n: nn.layer_norm(X, axis=n), 1),
    "layer_norm_axes": (lambda n: nn.layer_norm(X, axis=(n, 2)), 1),
    "group_norm": (lambda n: nn.group_norm(X, groups=n), 3),
    "group_norm_axis": (lambda n: nn.group_norm(X, channels_axis=n), 1),
    "instance_norm": (lambda n: nn.instance_norm(X, channels_axis=n), -2),
    "batch_norm": (lambda n: nn.batch_norm(X, STATE, channels_axis=n), 2),
    "batch_norm_init": (lambda n: nn.batch_norm_init(n), 3),
    "dropout": (lambda n: nn.dropout(X, KEY, noise_shape=(n, 1, 6)), 3),
    "dropout_seed": (lambda n: nn.dropout(X, n), 7),
    "ctc_loss": (lambda n: nn.ctc_loss(X, [[1], [2], [3], [4]], blank_index=n), 5),
    "beam_search": (
        lambda n: nn.ctc_beam_search_decoder(X, beam_width=n, top_paths=n, blank_index=n),
        2,
    ),
    "uniform": (lambda n: ops.random_uniform((2, n), seed=n), 3),
    "log_uniform": (lambda n: ops.log_uniform_candidate_sampler(n, LABELS, n, True, n), 3),
    "uniform_sampler": (lambda n: ops.uniform_candidate_sampler(n, LABELS, n, True, n), 3),
    "fixed": (lambda n: ops.fixed_unigram_candidate_sampler(n, LABELS, n, True, X[0, 0] ** 2), 3),
    "learned": (
        lambda n: ops.learned_unigram_candidate_sampler(n, jnp.ones(5), LABELS, n, True),
        3,
    ),
    "nce_loss": (lambda n: ops.nce_loss(TABLE, BIAS, LABELS, INPUTS, 3, n, seed=1), 12),
    "sampled_softmax": (
        lambda n: ops.sampled_softmax_loss(TABLE, BIAS, LABELS, INPUTS, n, 12, seed=n),
        3,
    ),
    "embedding": (lambda n: ops.embedding_lookup(TABLE, np.array([1, 2]), n), 3),
    "matmul": (lambda n: ops.serialized_matmul(X[0], X[1].T, n, "reducing_dim"), 3),
    "unpack": (lambda n: ops.sequence_slice_unpack(TABLE, [2], [1], n), 4),
    "bins": (lambda n: ops.fixed_width_bins(X.ravel(), n), 3),
    "image": (lambda n: ops.normalise_image(X[..., :3], [0, 0, 0], [1, 1, 1], n), 2),
    "top_k": (lambda n: ops.top_k(X, n), 2),
    "sort": (lambda n: ops.sort(X, n), 1),
    "sort_key_value": (lambda n: ops.sort_key_value(X, X, n), 1),
    "float8": (lambda n: ops.cast_to_float8(X, scale=n), 2),
    "multi_conv": (
        lambda n: ops.multi_conv(
            [
                ops.Conv(
                    X[None, :2],
                    X[:2, None, :2, :2],
                    [1, n],
                    [[0, n]] * 2,
                    [n, n],
                    (n, 1),
                    feature_group_count=n,
                )
            ]
        ),
        2,
    ),
}


def same(a: Any, b: Any) -> None:
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_of_numpy_and_jax(name: str):
    call, number = INTEGERS[name]
    expected = call(number)
    for convert in (np.int64, np.int8, np.asarray, jnp.int32):
        same(call(convert(number)), expected)


@pytest.mark.parametrize("name", [n for n in INTEGERS if n not in ("image", "dropout_seed")])
def test_what_is_no_integer_is_refused(name: str):
    call, number = INTEGERS[name]
    for wrong in (number + 0.5, str(number), *(() if name == "layer_norm" else (None,))):
        with pytest.raises(ipu.ConfigError, match=REFUSAL):
            call(wrong)


#: Calls with a real number of some type.
REALS: dict[str, Callable[[Any], Any]] = {
    "leaky_relu": lambda r: nn.leaky_relu(X, r),
    "elu": lambda r: nn.elu(X, r),
    "layer_norm": lambda r: nn.layer_norm(X, epsilon=r),
    "batch_norm": lambda r: nn.batch_norm(X, STATE, epsilon=r, momentum=r),
    "dropout": lambda r: nn.dropout(X, KEY, rate=r),
    "cross_entropy": lambda r: nn.cross_entropy(X, np.ones((3, 4), int), loss_scale=r),
    "lstm": lambda r: nn.lstm(X, LSTM, available_memory_proportion=r),
    "gru": lambda r: nn.gru(X, GRU, available_memory_proportion=r),
    "uniform": lambda r: ops.random_uniform((2,), high=r, seed=1),
    "normal": lambda r: ops.random_normal((2,), mean=r, stddev=r, seed=1),
    "truncated": lambda r: ops.random_truncated_normal((2,), alpha=r, seed=1),
    "bernoulli": lambda r: ops.random_bernoulli((9,), probability=r, seed=1),
    "fixed": lambda r: ops.fixed_unigram_candidate_sampler(1, LABELS, 2, True, X[0, 0] ** 2, r),
    "image": lambda r: ops.normalise_image(X[..., :3], [0, 0, 0], [1, 1, 1], r),
}


@pytest.mark.parametrize("name", REALS)
def test_numbers_of_numpy_and_jax(name: str):
    for convert in (np.float32, np.float64, np.asarray, jnp.float32):
        same(REALS[name](convert(0.5)), REALS[name](0.5))
    for wrong in (np.float32("nan"), "0.5", np.full(2, 0.5)):
        with pytest.raises(ipu.ConfigError, match=REFUSAL):
            REALS[name](wrong)


FLAGS: dict[str, Callable[[Any], Any]] = {
    "lstm": lambda flag: nn.lstm(X, LSTM, recompute=flag, precompute_inputs=flag),
    "gru": lambda flag: nn.gru(X, GRU, inference_only=flag, precompute_inputs=flag),
    "group_norm": lambda flag: nn.group_norm(X, strided_channel_grouping=flag),
    "sequence_slice": lambda flag: ops.sequence_slice(TABLE, TABLE, [2], [1], [0], flag),
    "histogram": lambda flag: ops.histogram(X.ravel(), jnp.zeros(1), flag),
    "top_k": lambda flag: ops.top_k(X, 2, largest=flag),
    "print_tensor": lambda flag: ops.print_tensor(X[0, 0], "x", flag),
}


@pytest.mark.parametrize("name", FLAGS)
def test_flags_of_numpy(name: str):
    for flag in (True, False):
        same(FLAGS[name](np.bool_(flag)), FLAGS[name](flag))


def test_numbers_of_numpy_in_optimizers_and_pipelines():
    count, grads = np.int64(2), jnp.ones((4, 3))

    def end(tx: Any) -> Any:
        state, made = tx.init(grads[0]), []
        for grad in grads:
            updates, state = tx.update(grad, state, grads[0])
            made.append(updates)
        return made

    optim = ipu.optim
    for make in (
        lambda n: optim.adam(np.float32(0.5), num_micro_batches=n),
        lambda n: optim.sgd(0.5, 0.5, combined_accumulation=True, num_micro_batches=n),
        lambda n: optim.gradient_accumulation(optim.sgd(0.5), n),
        lambda n: optim.loss_scale(
            optim.sgd(0.5), automatic=True, period=n, bin_edge_location=np.float32(0.5)
        ),
    ):
        same(end(make(count)), end(make(2)))
    same(ipu.divide_batch(grads, count), ipu.divide_batch(grads, 2))
    stages = [lambda _, x: x * 2, lambda _, x: x + 1]
    run = ipu.pipeline(stages, micro_batches=np.int64(4), device_mapping=[0, 0])
    same(jax.jit(lambda x: run([(), ()], x))(grads), grads * 2 + 1)
    mean = ipu.pmap(lambda x: ipu.cross_replica_mean(x, count), devices=jax.devices("ipu")[:4])
    same(mean(grads), grads)
    assert ipu.HostEmbeddingSGD(0.1, count).accumulation_factor == 2


def test_lists_are_arrays():
    same(ops.sequence_slice(TABLE, TABLE, [], [], [], False), TABLE)
    same(nn.batch_norm(X, ([0.0] * 6, [1.0] * 6)), nn.batch_norm(X, STATE))
    given = ops.uniform_candidate_sampler(1, LABELS, 3, True, 12)
    expected = ops.nce_loss(TABLE, BIAS, LABELS, INPUTS, 3, 12, sampled_values=given)
    lists = [each.tolist() for each in (TABLE, BIAS, LABELS, INPUTS)]
    same(ops.nce_loss(*lists, 3, 12, sampled_values=given), expected)


SEEDED: dict[str, Callable[[Any], Any]] = {
    "dropout": lambda seed: nn.dropout(np.ones(64, np.float32), seed),
    "uniform": lambda seed: ops.random_uniform((8,), seed=seed),
    "bernoulli": lambda seed: ops.random_bernoulli((64,), seed=seed),
    "sampler": lambda seed: ops.uniform_candidate_sampler(seed, LABELS, 8, True, 1000).sampled,
}


@pytest.mark.parametrize("name", SEEDED)
def test_seeds(name: str):
    call = SEEDED[name]
    for seed in (jax.random.key(3), jax.random.PRNGKey(3), np.array([0, 3]), [0, 3]):
        same(call(seed), call(3))
    same(call(2**40 + 3), call([2**8, 3]))
    same(call(2**32 - 1), call([0, 2**32 - 1]))
    rbg = jax.random.key(3, impl="rbg")
    same(call(jax.random.key_data(rbg)), call(rbg))
    assert not np.array_equal(call(rbg), call(jax.random.key(4, impl="rbg")))
    for wrong in (1.5, "3", 2**64, jax.random.split(KEY, 3), np.zeros(3, int)):
        with pytest.raises(ipu.ConfigError, match=REFUSAL):
            call(wrong)


def test_identifiers_beyond_int32_are_clipped():
    large = np.array([2**32 - 1], np.uint32)
    same(jax.jit(lambda ids: ops.embedding_lookup(TABLE, ids))(large), TABLE[-1:])
    lengths = np.array([2**32 - 1, 2, 0, 0], np.uint32)
    ends = jax.jit(lambda lengths: nn.dynamic_gru(X, lengths, GRU))(lengths)
    same(ends, nn.dynamic_gru(X, [3, 2, 0, 0], GRU))
    found = jax.jit(lambda labels: ops.log_uniform_candidate_sampler(0, labels, 2, True, 5))(large)
    assert float(found.true_expected_count[0]) < float(
        ops.log_uniform_candidate_sampler(0, [0], 2, True, 5).true_expected_count[0]
    )


def test_seeds_and_masked_labels_of_64_bits():
    drawn = ops.random_uniform((4,), seed=np.array([0, 2**32 - 1], np.uint32))
    same(ops.random_uniform((4,), seed=np.array([0, 2**32 - 1])), drawn)
    labels = np.array([1, 2, nn.MASKED_LABEL, 3])
    assert nn.cross_entropy(X[0], labels).tolist()[2] == 0


def test_traced_numbers_are_no_numbers():
    seen = []
    jax.jit(lambda n, r: seen.extend((arguments.whole_number(n), arguments.real_number(r))))(1, 1.0)
    assert seen[0] is None
    assert np.isnan(seen[1])


SAMPLERS: dict[str, Callable[[], Any]] = {
    "log_uniform": lambda: ops.log_uniform_candidate_sampler(1, LABELS, 3, True, 10),
    "uniform": lambda: ops.uniform_candidate_sampler(1, LABELS, 3, False, 10),
    "fixed": lambda: ops.fixed_unigram_candidate_sampler(1, LABELS, 3, True, np.arange(1, 9)),
    "learned": lambda: ops.learned_unigram_candidate_sampler(
        1, np.ones(9, np.float32), LABELS, 3, True
    ),
    "combined": lambda: ops.embedding_lookup(TABLE, np.array([3, 1, 3]), update="combined"),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_64_bits_change_nothing_for_32(name: str):
    expected = SAMPLERS[name]()
    with jax.enable_x64(True):
        same(SAMPLERS[name](), expected)
