"""Functions of ipu.ops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import ipujax as ipu
from ipujax.types import EmbeddingUpdate, SerializationDimension
from tests.bench.numerics.program import Program, both, forward
from tests.bench.workload import Workload, indices, normal

ROWS, WIDTH, IDS = 100_000, 64, 4096
MILLION = 1 << 20
_UPDATE_BOUND = 0.8
_SEED = np.array([1, 2], np.uint32)


def _embeddings() -> Iterator[Program]:
    def arguments() -> list[Any]:
        return [normal(ROWS, WIDTH), indices(IDS, ROWS)]

    def of(update: EmbeddingUpdate) -> Any:
        def step(table: Any, ids: Any, wanted: Any) -> Any:
            """One of gradient descent, with the whole gradient subtracted."""

            def loss(table: Any) -> Any:
                rows = ipu.ops.embedding_lookup(table, ids, update=update)
                return jnp.sum(rows * wanted)

            value, gradient = jax.value_and_grad(loss)(table)
            return table - 0.01 * gradient, value

        return step

    yield from forward("embedding_lookup", ipu.ops.embedding_lookup, arguments)
    for update in ("add", "sorted", "combined"):
        workload = Workload(
            f"embedding update of 100k x 64, {update}",
            of(update),
            lambda: [*arguments(), normal(IDS, WIDTH, seed=2)],
            carries=True,
        )
        yield Program(workload, _UPDATE_BOUND if update == "add" else None)


def _statistics() -> Iterator[Program]:
    def arguments() -> list[Any]:
        return [normal(MILLION), np.linspace(-3, 3, 31, dtype=np.float32)]

    yield from forward(
        "fixed_width_bins", lambda x: ipu.ops.fixed_width_bins(x, 32), lambda: arguments()[:1]
    )
    yield from forward("histogram", ipu.ops.histogram, arguments)
    yield from forward(
        "histogram_update",
        ipu.ops.histogram_update,
        lambda: [np.zeros(32, np.float32), *arguments()],
    )


def _images() -> Iterator[Program]:
    def normalise(image: Any, offsets: Any, scales: Any) -> Any:
        return ipu.ops.normalise_image(image, offsets, scales, 1 / 255)

    offsets = np.array([0.485, 0.456, 0.406], np.float32)
    scales = np.array([4.37, 4.46, 4.44], np.float32)

    def of(dtype: Any) -> Any:
        def arguments() -> list[Any]:
            drawn = np.random.default_rng(0).integers(0, 256, (8, 224, 224, 3))
            return [drawn.astype(dtype), offsets, scales]

        return arguments

    yield from forward("normalise_image uint8", normalise, of(np.uint8))
    yield from both("normalise_image float32", normalise, of(np.float32))


def _multi_conv() -> Iterator[Program]:
    def convolve(x: Any, v: Any, y: Any, w: Any) -> Any:
        convs = [ipu.ops.Conv(x, v, padding="SAME"), ipu.ops.Conv(y, w, padding="SAME")]
        return ipu.ops.multi_conv(convs)

    def arguments() -> list[Any]:
        data = [normal(4, 32, 28, 28, seed=n) for n in (0, 1)]
        kernels = [normal(32, 32, 3, 3, seed=2) / 17, normal(64, 32, 3, 3, seed=3) / 17]
        return [data[0], kernels[0], data[1], kernels[1]]

    yield from both("multi_conv", convolve, arguments, (0, 1, 2, 3))


def _random() -> Iterator[Program]:
    functions = {
        "random_uniform": ipu.ops.random_uniform,
        "random_normal": ipu.ops.random_normal,
        "random_truncated_normal": ipu.ops.random_truncated_normal,
        "random_bernoulli": ipu.ops.random_bernoulli,
    }
    for name, function in functions.items():
        yield from forward(
            name, lambda seed, draw=function: draw((MILLION,), seed=seed), lambda: [_SEED]
        )


def _sampled() -> Iterator[Program]:
    classes, batch, width, sampled = 10_000, 128, 64, 512

    def arguments() -> list[Any]:
        weights, biases = normal(classes, width) / 8, normal(classes, seed=1)
        return [weights, biases, normal(batch, width, seed=2), indices(batch, classes)[:, None]]

    def of(function: Any) -> Any:
        def loss(weights: Any, biases: Any, inputs: Any, labels: Any) -> Any:
            return function(weights, biases, labels, inputs, sampled, classes, seed=3)

        return loss

    yield from both("nce_loss", of(ipu.ops.nce_loss), arguments, (0, 1, 2))
    yield from both("sampled_softmax_loss", of(ipu.ops.sampled_softmax_loss), arguments, (0, 1, 2))

    key, labels = jax.random.key_data(jax.random.key(0)), indices(batch, classes)[:, None]
    weights = np.abs(normal(classes)) + 1

    def log_uniform(key: Any, true: Any) -> Any:
        return ipu.ops.log_uniform_candidate_sampler(key, true, sampled, True, classes)

    def uniform(key: Any, true: Any) -> Any:
        return ipu.ops.uniform_candidate_sampler(key, true, sampled, True, classes)

    def fixed(key: Any, true: Any) -> Any:
        return ipu.ops.fixed_unigram_candidate_sampler(key, true, sampled, True, weights)

    def learned(key: Any, true: Any) -> Any:
        return ipu.ops.learned_unigram_candidate_sampler(key, weights, true, sampled, True)

    for name, sampler in (
        ("log_uniform", log_uniform),
        ("uniform", uniform),
        ("fixed_unigram", fixed),
        ("learned_unigram", learned),
    ):

        def draw(words: Any, true: Any, sampler: Any = sampler) -> Any:
            return sampler(jax.random.wrap_key_data(words), true)

        yield from forward(f"{name}_candidate_sampler", draw, lambda: [np.asarray(key), labels])


def _sequences() -> Iterator[Program]:
    """128 sequences of 1 to 63 steps, of 64 channels."""
    lengths = np.random.default_rng(0).integers(1, 64, 128).astype(np.int32)
    ends = np.cumsum(lengths)
    total = int(ends[-1])
    padded = np.arange(128, dtype=np.int32) * 64

    def slices(dst: Any, src: Any) -> Any:
        return ipu.ops.sequence_slice(dst, src, lengths, padded, ends - lengths, False)

    def pack(dst: Any, src: Any) -> Any:
        return ipu.ops.sequence_slice_pack(dst, src, lengths, padded, True)

    def unpack(src: Any) -> Any:
        return ipu.ops.sequence_slice_unpack(src, lengths, padded, total)

    rows, packed = normal(128 * 64, 64), normal(total, 64, seed=1)
    yield from both("sequence_slice", slices, lambda: [packed, rows], (0, 1))
    yield from both("sequence_slice_pack", pack, lambda: [rows, packed], (0, 1))
    yield from both("sequence_slice_unpack", unpack, lambda: [rows])


def _products() -> Iterator[Program]:
    def arguments() -> list[Any]:
        return [normal(512, 1024), normal(1024, 1024, seed=1)]

    dimensions: tuple[SerializationDimension, ...] = ("input_channels", "b_rows", "reducing_dim")
    for dimension in dimensions:

        def product(a: Any, b: Any, dimension: SerializationDimension = dimension) -> Any:
            return ipu.ops.serialized_matmul(a, b, 4, dimension)

        yield from both(f"serialized_matmul {dimension}", product, arguments, (0, 1))


def _float8() -> Iterator[Program]:
    def there(x: Any) -> Any:
        return ipu.ops.cast_to_float8(x, scale=1)

    def product(a: Any, b: Any) -> Any:
        return ipu.ops.float8_matmul(a, b, emulate=True)

    def bits() -> list[Any]:
        with jax.default_device(jax.devices("cpu")[0]):
            return [jax.tree.map(np.asarray, there(normal(1024, 1024)))]

    for dtype in (np.float32, np.float16):

        def drawn(dtype: Any = dtype) -> list[Any]:
            return [normal(MILLION, dtype=dtype)]

        def back(x: Any, dtype: Any = dtype) -> Any:
            return ipu.ops.cast_from_float8(x, dtype)

        name = np.dtype(dtype).name
        yield from forward(f"cast_to_float8 from {name}", there, drawn)
        yield from forward(f"cast_from_float8 to {name}", back, bits)
    yield from forward("float8_matmul", product, lambda: 2 * bits())


def _selection() -> Iterator[Program]:
    yield from both("top_k", lambda x: ipu.ops.top_k(x, 8)[0], lambda: [normal(256, 4096)])
    yield from both("sort", ipu.ops.sort, lambda: [normal(64, 16_384)])
    yield from forward(
        "sort_key_value",
        ipu.ops.sort_key_value,
        lambda: [normal(64, 16_384), normal(64, 16_384, seed=1)],
    )


def _markers() -> Iterator[Program]:
    yield from both(
        "identity_loss", lambda x: ipu.ops.identity_loss(x, "mean"), lambda: [normal(MILLION)]
    )
    yield from both("nop", lambda x: ipu.ops.nop(x * 2), lambda: [normal(MILLION)])


def programs() -> Iterator[Program]:
    for family in (
        _embeddings,
        _statistics,
        _images,
        _multi_conv,
        _random,
        _sampled,
        _sequences,
        _products,
        _float8,
        _selection,
        _markers,
    ):
        yield from family()
