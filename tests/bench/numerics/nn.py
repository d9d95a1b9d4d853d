"""Functions of ipu.nn that are neither recurrent nor CTC's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import ipujax as ipu
from tests.bench.numerics.program import Program, both, forward
from tests.bench.workload import indices, normal

#: Activations of a block of a transformer, and of a convolutional network.
TOKENS = (8, 128, 768)
IMAGES = (8, 32, 32, 64)
_NORM_BOUND = 0.8


def _tokens() -> list[Any]:
    return [normal(*TOKENS)]


def _with_vectors(shape: tuple[int, ...]) -> Any:
    size = shape[-1]
    return lambda: [normal(*shape) + 1, normal(size, seed=1) + 1, normal(size, seed=2)]


def _activations() -> Iterator[Program]:
    functions = {
        "gelu tanh": lambda x: ipu.nn.gelu(x),
        "gelu erf": lambda x: ipu.nn.gelu(x, approximate=False),
        "swish": ipu.nn.swish,
        "relu": ipu.nn.relu,
        "leaky_relu": ipu.nn.leaky_relu,
        "elu": ipu.nn.elu,
        "hard_sigmoid": ipu.nn.hard_sigmoid,
    }
    for name, function in functions.items():
        yield from both(name, function, _tokens)


def _softmax() -> Iterator[Program]:
    for kind in ("stable", "plain", "scaled"):
        yield from both(
            f"softmax {kind}", lambda x, kind=kind: ipu.nn.softmax(x, kind=kind), _tokens
        )
    yield from both("log_softmax", ipu.nn.log_softmax, _tokens)
    yield from both(
        "cross_entropy",
        ipu.nn.cross_entropy,
        lambda: [normal(512, 8192), indices(512, 8192)],
    )


def _norms() -> Iterator[Program]:
    every = (0, 1, 2)

    def grouped(x: Any, gamma: Any, beta: Any) -> Any:
        return ipu.nn.group_norm(x, gamma, beta, groups=8)

    def consecutive(x: Any, gamma: Any, beta: Any) -> Any:
        return ipu.nn.group_norm(x, gamma, beta, groups=8, strided_channel_grouping=False)

    def batch(x: Any, gamma: Any, beta: Any) -> Any:
        return ipu.nn.batch_norm(x, ipu.nn.batch_norm_init(x.shape[-1]), gamma, beta)

    def stable(x: Any, gamma: Any, beta: Any) -> Any:
        return ipu.nn.layer_norm(x, gamma, beta, use_stable_statistics=True)

    tokens, images = _with_vectors(TOKENS), _with_vectors(IMAGES)
    yield from both("layer_norm", ipu.nn.layer_norm, tokens, every, _NORM_BOUND)
    yield from both("layer_norm stable", stable, tokens, every, _NORM_BOUND)
    yield from both("group_norm", grouped, images, every, _NORM_BOUND)
    yield from both("group_norm consecutive", consecutive, images, every, _NORM_BOUND)
    yield from both("instance_norm", ipu.nn.instance_norm, images, every)
    yield from both("batch_norm", batch, images, every)


def _dropout() -> Iterator[Program]:
    def dropout(x: Any, seed: Any) -> Any:
        return ipu.nn.dropout(x, seed, rate=0.1)

    def shaped(x: Any, seed: Any) -> Any:
        return ipu.nn.dropout(x, seed, rate=0.1, noise_shape=(TOKENS[0], 1, TOKENS[2]))

    def arguments() -> list[Any]:
        return [normal(*TOKENS), np.array([1, 2], np.uint32)]

    yield from both("dropout", dropout, arguments)
    yield from both("dropout shaped", shaped, arguments)


def _half() -> Iterator[Program]:
    """A block's elementwise part in float16, as models for IPUs have it."""

    def block(x: Any, gamma: Any, beta: Any) -> Any:
        return ipu.nn.gelu(ipu.nn.layer_norm(x, gamma, beta))

    def arguments() -> list[Any]:
        return [each.astype(np.float16) for each in _with_vectors(TOKENS)()]

    yield from both("layer_norm and gelu, float16", block, arguments, (0, 1, 2))


def _autocast() -> Iterator[Program]:
    def product(x: Any, w: Any) -> Any:
        return ipu.nn.gelu(x @ w)

    cast = ipu.autocast(product)
    yield from forward(
        "autocast of a dense layer", cast, lambda: [normal(256, 512), normal(512, 512)]
    )


def programs() -> Iterator[Program]:
    for family in (_activations, _softmax, _norms, _dropout, _half, _autocast):
        yield from family()
