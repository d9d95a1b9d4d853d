"""EfficientNet-B4 G16 in training, as graphcore/examples' vision/cnns/tensorflow1 has it.

Its 3 x 3 and 5 x 5 convolutions are in groups of 16 channels, and blocks are four times as wide
inside (Masters et al., "Making EfficientNet More Efficient", arXiv 2106.03640). Norms take the
statistics of the micro-batch where it takes those of groups of channels.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import lax

from tests.stages import kept, known_to_fit
from tests.stages.known_to_fit import Stage, affine, linear, shape

GROUP, EXPANSION, SIZE = 16, 4, 380
#: Repetitions, kernel size, stride of the first, channels of the result.
BLOCKS = (
    (2, 3, 1, 24),
    (4, 3, 2, 32),
    (4, 5, 2, 56),
    (6, 3, 2, 112),
    (6, 5, 1, 160),
    (8, 5, 2, 272),
    (2, 3, 1, 448),
)
STEM, LAST = 48, 1792


@dataclass(frozen=True)
class Row:
    """One inverted bottleneck."""

    channels: int
    width: int
    out: int
    size: int
    stride: int


def rows() -> list[Row]:
    found, channels = [], STEM
    for number, (count, size, stride, out) in enumerate(BLOCKS):
        for i in range(count):
            width = channels * (1 if number == 0 else EXPANSION)
            found.append(Row(channels, width, out, size, stride if i == 0 else 1))
            channels = out
    return found


@dataclass(frozen=True)
class EfficientNet:
    """Cut before block 4a, into two stages on two IPUs."""

    samples: int
    micro_batches: int
    proportions: tuple[float, ...] = (0.4, 0.4)
    layers: tuple[int, ...] = (10, 22)
    has_velocities: ClassVar[bool] = True
    recomputes_stages: ClassVar[bool] = True

    def parameters(self) -> Any:
        blocks = [_block(row) for row in rows()]
        ends = {"stem": _conv(3, 3, STEM), "last": _conv(1, BLOCKS[-1][-1], LAST)}
        return ends | {"blocks": blocks, "head": linear(LAST, 1000)}

    def batch(self) -> Any:
        size = (self.micro_batches, self.samples)
        return shape(*size, SIZE, SIZE, 3), shape(*size, dtype=jnp.int32)

    def loss(self, stage: Any, p: Any, batch: Any) -> jax.Array:
        images, labels = batch
        cut = self.layers[0]
        x = stage(_first(rows()[:cut]), 0)((p["stem"], p["blocks"][:cut]), images)
        ends = p["last"], p["head"]
        found: jax.Array = stage(_last(rows()[cut:]), 1)((p["blocks"][cut:], *ends), x, labels)
        return found


def _first(own: list[Row]) -> Stage:
    def run(p: Any, x: jax.Array) -> jax.Array:
        x = kept.swish(_convolved(p[0], x, 2))
        return _through(own, p[1], x)

    return run


def _last(own: list[Row]) -> Stage:
    def run(p: Any, x: jax.Array, labels: jax.Array) -> jax.Array:
        x = kept.swish(_convolved(p[1], _through(own, p[0], x), 1))
        return known_to_fit.cross_entropy(affine(p[2], jnp.mean(x, (1, 2))), labels)

    return run


def _through(own: list[Row], blocks: Any, x: jax.Array) -> jax.Array:
    for row, p in zip(own, blocks, strict=True):
        y = kept.swish(_convolved(p["expand"], x, 1)) if "expand" in p else x
        y = kept.swish(_convolved(p["spatial"], y, row.stride, y.shape[-1] // _group(y.shape[-1])))
        squeezed = kept.swish(affine(p["squeeze"], jnp.mean(y, (1, 2))))
        y = y * jax.nn.sigmoid(affine(p["excite"], squeezed))[:, None, None]
        y = _convolved(p["project"], y, 1)
        x = x + y if row.stride == 1 and row.channels == row.out else y
    return x


def _group(width: int) -> int:
    return math.gcd(GROUP, width)


def _convolved(p: Any, x: jax.Array, stride: int, groups: int = 1) -> jax.Array:
    y = lax.conv_general_dilated(
        x,
        p[0],
        (stride, stride),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )
    return kept.whitened(y) * p[1][0] + p[1][1]


def _block(row: Row) -> Any:
    squeezed = row.channels // 4
    found = {
        "spatial": (shape(row.size, row.size, _group(row.width), row.width), shape(2, row.width)),
        "squeeze": linear(row.width, squeezed),
        "excite": linear(squeezed, row.width),
        "project": _conv(1, row.width, row.out),
    }
    return found | (
        {"expand": _conv(1, row.channels, row.width)} if row.width != row.channels else {}
    )


def _conv(size: int, channels: int, features: int) -> Any:
    return shape(size, size, channels, features), shape(2, features)
