"""`python -m tests.stages.known_to_fit NAME...`: configurations that are known to fit their IPUs.

Compiles one training step of each from shapes alone, as it was run (graphcore/examples,
nlp/bert/pytorch, nlp/gpt2/pytorch, vision/cnns/tensorflow1 and 2): float16 with half partials, the
memory proportion of each IPU, every layer of a transformer and every stage of ResNet-50 recomputed
once, equal parts outlined, each micro-batch brought from the host. Prints each IPU's fullest tile.
ResNet-50 keeps its momentum on the tiles, as it did; the transformers' optimizer state was
off-chip, or in shards of many replicas: left out. `--layers` divides the layers in another way.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import lax

from tests.stages import kept

HALF = jnp.float16
TILE_BYTES = 624 * 1024

#: Positions whose loss is computed at one time.
PIECE = 128

Stage = Callable[..., Any]


@dataclass(frozen=True)
class Transformer:
    """A transformer whose layers are divided among IPUs; the first one embeds and has the head.

    Attributes:
        layers: on each IPU.
        proportions: of tile memory for temporaries of products, by IPU.
        predicted: positions of each sample that the head predicts, with the embedding's weights.
        has_fused_qkv: whether queries, keys and values are one product.
        recomputes_stages: no: each layer keeps its input, and is recomputed from there.
    """

    layers: tuple[int, ...]
    proportions: tuple[float, ...]
    width: int
    heads: int
    vocabulary: int
    length: int
    predicted: int
    samples: int
    is_causal: bool
    gelu_by_tanh: bool = True
    micro_batches: int = 16
    has_velocities: bool = False
    has_fused_qkv: bool = True
    recomputes_stages: ClassVar[bool] = False

    def parameters(self) -> Any:
        w = self.width
        embedding = {"words": shape(self.vocabulary, w), "positions": shape(self.length, w)}
        layers = [[self.layer_parameters()] * number for number in self.layers]
        return {"embedding": embedding, "layers": layers}

    def layer_parameters(self) -> Any:
        """Of its attention and its MLP; each has a norm before it."""
        w = self.width
        products = {"qkv": 3 * w} if self.has_fused_qkv else dict.fromkeys("qkv", w)
        attention = {name: linear(w, size) for name, size in products.items()}
        attention |= {"out": linear(w, w), "norm": shape(2, w)}
        return attention, {
            "up": linear(w, 4 * w),
            "down": linear(4 * w, w),
            "norm": shape(2, w),
        }

    def batch(self) -> Any:
        size = (self.micro_batches, self.samples)
        chosen = shape(*size, self.predicted, dtype=jnp.int32)
        return shape(*size, self.length, dtype=jnp.int32), chosen, chosen

    def loss(self, stage: Callable[[Stage, int], Stage], p: Any, batch: Any) -> jax.Array:
        """The loss of one micro-batch; `stage(f, i)` is f on IPU i."""
        tokens, positions, words = batch
        x = stage(self._embedded, 0)(p["embedding"], tokens)
        for i, layers in enumerate(p["layers"]):
            x = stage(self._through, i)(layers, x) if layers else x
        return stage(self._head, 0)(p["embedding"]["words"], x, positions, words)

    def _embedded(self, p: Any, tokens: jax.Array) -> jax.Array:
        x: jax.Array = p["words"][tokens] + p["positions"]
        return x

    def _through(self, layers: Any, x: jax.Array) -> jax.Array:
        for p in layers:
            x = jax.checkpoint(self.layer)(p, x)
        return x

    def layer(self, p: Any, x: jax.Array) -> jax.Array:
        attention, mlp = p
        return self.mlp(mlp, self.attention(attention, x))

    def attention(self, p: Any, x: jax.Array) -> jax.Array:
        y = normalised(p["norm"], x)
        if self.has_fused_qkv:
            parts = jnp.split(affine(p["qkv"], y), 3, -1)
        else:
            parts = [affine(p[name], y) for name in "qkv"]
        split = (*x.shape[:2], self.heads, self.width // self.heads)
        q, k, v = (part.reshape(split) for part in parts)
        scores = jnp.einsum("bqhc,bkhc->bhqk", q, k) * HALF(split[-1] ** -0.5)
        if self.is_causal:
            scores = jnp.where(jnp.tri(self.length, dtype=bool), scores, jnp.finfo(HALF).min)
        mixed = jnp.einsum("bhqk,bkhc->bqhc", kept.softmax(scores), v).reshape(x.shape)
        return x + affine(p["out"], mixed)

    def mlp(self, p: Any, x: jax.Array) -> jax.Array:
        y = affine(p["up"], normalised(p["norm"], x))
        return x + affine(p["down"], self.activation(y))

    def activation(self, x: jax.Array) -> jax.Array:
        return jax.nn.gelu(x, approximate=self.gelu_by_tanh)

    def _head(self, table: Any, x: jax.Array, positions: jax.Array, words: jax.Array) -> jax.Array:
        x = jnp.take_along_axis(x, positions[..., None], 1, mode="clip").reshape(-1, self.width)
        most = max(1, x.shape[0] // PIECE)
        pieces = next(number for number in range(most, 0, -1) if x.shape[0] % number == 0)
        x, words = x.reshape(pieces, -1, self.width), words.reshape(pieces, -1)

        def add_piece(total: jax.Array, piece: Any) -> tuple[jax.Array, None]:
            return total + cross_entropy(piece[0] @ table.T, piece[1]), None

        add: Callable[..., Any] = jax.checkpoint(add_piece)
        if pieces == 1:
            return add(jnp.float32(0), (x[0], words[0]))[0]
        return lax.scan(add, jnp.float32(0), (x, words))[0] / pieces


@dataclass(frozen=True)
class ResNet50:
    """Blocks of 3, 4, 6 and 3 bottlenecks, divided among stages by the number of bottlenecks.

    Attributes:
        layers: bottlenecks of each stage, which computes them again in the backward pass.
        is_on_one: whether all stages are on one IPU.
        counts: bottlenecks of each block.
        groups: of the 3 x 3 convolutions; with more than one they are twice as wide (ResNeXt).
    """

    layers: tuple[int, ...]
    proportions: tuple[float, ...]
    samples: int
    micro_batches: int = 16
    is_on_one: bool = False
    has_velocities: bool = True
    counts: tuple[int, ...] = (3, 4, 6, 3)
    groups: int = 1
    recomputes_stages: ClassVar[bool] = True

    def parameters(self) -> Any:
        found, channels = [], 64
        for narrow, out, _ in self.rows():
            width = narrow if self.groups == 1 else 2 * narrow
            b = _kernel(3, width // self.groups, width)
            kernels = {"a": _kernel(1, channels, width), "b": b}
            kernels["c"] = _kernel(1, width, out)
            if channels != out:
                kernels["projection"] = _kernel(1, channels, out)
            found.append({name: (k, shape(2, k.shape[-1])) for name, k in kernels.items()})
            channels = out
        head = shape(channels, 1000)
        return {"stem": (_kernel(7, 3, 64), shape(2, 64)), "blocks": found, "head": head}

    def batch(self) -> Any:
        images = shape(self.micro_batches, self.samples, 224, 224, 3)
        return images, shape(self.micro_batches, self.samples, dtype=jnp.int32)

    def loss(self, stage: Callable[[Stage, int], Stage], p: Any, batch: Any) -> jax.Array:
        """The loss of one micro-batch; `stage(f, i)` is f on IPU i."""
        x, labels = batch
        strides = [stride for _, _, stride in self.rows()]
        first = 0
        for i, number in enumerate(self.layers):
            own = slice(first, first + number)
            first += number
            is_last = i == len(self.layers) - 1
            ends = (p["stem"] if i == 0 else None, p["head"] if is_last else None)
            run = _resnet_stage(strides[own], self.groups)
            x = stage(run, 0 if self.is_on_one else i)(
                (p["blocks"][own], *ends), x, labels if is_last else None
            )
        return x

    def rows(self) -> list[tuple[int, int, int]]:
        """Width, channels of the result and stride of each bottleneck."""
        return [
            (width, width * 4, 2 if i == 0 and width > 64 else 1)
            for width, count in zip((64, 128, 256, 512), self.counts, strict=True)
            for i in range(count)
        ]


def _resnet_stage(strides: list[int], groups: int) -> Stage:
    def stage(p: Any, x: jax.Array, labels: jax.Array | None) -> jax.Array:
        blocks, stem, head = p
        if stem is not None:
            x = jax.nn.relu(_convolved(stem, x, 2))
            x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        for block, stride in zip(blocks, strides, strict=True):
            y = jax.nn.relu(_convolved(block["a"], x, 1))
            y = jax.nn.relu(_convolved(block["b"], y, stride, groups))
            shortcut = _convolved(block["projection"], x, stride) if "projection" in block else x
            x = jax.nn.relu(_convolved(block["c"], y, 1) + shortcut)
        return x if labels is None else cross_entropy(jnp.mean(x, (1, 2)) @ head, labels)

    return stage


def _convolved(p: Any, x: jax.Array, stride: int, groups: int = 1) -> jax.Array:
    """A convolution, and batch normalisation by the micro-batch's own statistics."""
    kernel, (scale, shift) = p[0], p[1]
    y = lax.conv_general_dilated(
        x,
        kernel,
        (stride, stride),
        "SAME",
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=groups,
    )
    return kept.whitened(y) * scale + shift


def cross_entropy(scores: jax.Array, labels: jax.Array) -> jax.Array:
    scores = jax.nn.log_softmax(scores.astype(jnp.float32))
    return -jnp.mean(jnp.take_along_axis(scores, labels[..., None], -1, mode="clip"))


def normalised(p: jax.Array, x: jax.Array) -> jax.Array:
    """A layer's norm, with the scale and the shift in `p`."""
    return kept.standardized(x) * p[0] + p[1]


def affine(p: Any, x: jax.Array) -> jax.Array:
    y: jax.Array = x @ p["weights"] + p["bias"]
    return y


def linear(features: int, width: int) -> Any:
    return {"weights": shape(features, width), "bias": shape(width)}


def shape(*shape: int, dtype: Any = HALF) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def _in_streaming_memory(x: jax.ShapeDtypeStruct) -> jax.ShapeDtypeStruct:
    sharding = jax.sharding.SingleDeviceSharding(jax.devices()[0], memory_kind="pinned_host")
    return jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=sharding)


def _kernel(size: int, channels: int, features: int) -> jax.ShapeDtypeStruct:
    return shape(size, size, channels, features)


def _bert(length: int, predicted: int, samples: int, *proportions: float) -> Transformer:
    size = (1024, 16, 30_522, length, predicted, samples)
    return Transformer((3, 7, 7, 7), proportions, *size, is_causal=False)


def _gpt2(layers: tuple[int, ...], width: int, length: int, *proportions: float) -> Transformer:
    size = (width, width // 64, 50_272, length, length, 1)
    return Transformer(layers, proportions, *size, is_causal=True)


CONFIGURATIONS: dict[str, Any] = {
    "bert-large-128": _bert(128, 20, 8, 0.15, 0.25, 0.25, 0.25),
    "bert-large-512": _bert(512, 76, 2, 0.10, 0.15, 0.15, 0.15),
    "gpt2-medium": _gpt2((0, 3, 3, 3, 3, 4, 4, 4), 1024, 1024, 0.3, *[0.15] * 7),
    "gpt2-large": _gpt2((1, 5, 5, 5, 5, 5, 5, 5), 1280, 512, 0.15, 0.12, *[0.15] * 6),
    "resnet-50": ResNet50((2, 2, 5, 7), (0.15,) * 4, 16),
    "resnet-50-on-one": ResNet50((1, 2, 4, 9), (0.2,), 16, is_on_one=True),
    "resnet-50-on-one-20": ResNet50((1, 2, 1, 2, 1, 3, 6), (0.15,), 20, is_on_one=True),
}


def lowered_step(model: Any, partials: str = "half") -> Any:
    """Value and gradients of all micro-batches, and a step of descent, as `jax.jit` lowers them."""
    import ipujax as ipu

    def stage(function: Stage, number: int) -> Stage:
        proportion = model.proportions[number]
        options = {"available_memory_proportion": proportion, "partials_type": partials}
        return ipu.stage(function, number, remat=model.recomputes_stages, options=options)

    loss = ipu.pipeline(
        lambda p, batch: model.loss(stage, p, jax.device_put(batch, jax.memory.Space.Device)),
        in_axes=(None, 0),
        micro_batches=model.micro_batches,
        reduction="mean",
    )

    def step(parameters: Any, velocities: Any, batch: Any) -> Any:
        value, updates = jax.value_and_grad(loss)(parameters, batch)
        if velocities is not None:
            updates = velocities = jax.tree.map(lambda v, g: HALF(0.9) * v + g, velocities, updates)
        parameters = jax.tree.map(lambda p, u: p - HALF(0.01) * u, parameters, updates)
        return parameters, velocities, value

    jitted = jax.jit(step, donate_argnums=(0, 1), compiler_options={"ipu_outline": "auto"})
    parameters = model.parameters()
    velocities = parameters if model.has_velocities else None
    return jitted.lower(parameters, velocities, jax.tree.map(_in_streaming_memory, model.batch()))


def fullest_tiles(model: Any) -> list[float]:
    """Bytes on the fullest tile of each IPU that the step uses."""
    cost = lowered_step(model).compile().cost_analysis()
    found = (cost.get(f"ipu {i} worst tile bytes", 0.0) for i in range(len(model.layers)))
    return [tile for tile in found if tile] or [cost["worst tile bytes"]]


def main() -> None:
    parser = argparse.ArgumentParser("python -m tests.stages.known_to_fit", description=__doc__)
    parser.add_argument("names", nargs="*", default=list(CONFIGURATIONS))
    parser.add_argument("--layers", type=int, nargs="+", help="of each IPU or stage")
    options = parser.parse_args()
    for name in options.names:
        model = CONFIGURATIONS[name]
        if options.layers is not None:
            model = replace(model, layers=tuple(options.layers))
        begin = time.process_time()
        tiles = fullest_tiles(model)
        seconds = time.process_time() - begin
        text = ", ".join(f"{tile / 1024:.0f}" for tile in tiles)
        fits = "fits" if max(tiles) <= TILE_BYTES else "does not fit"
        print(f"{name}: {fits}: fullest tiles of {text} KiB; {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    assert int(os.environ.get("JAX_IPU_IPUS_PER_DEVICE", "1")) >= 4, "set JAX_IPU_IPUS_PER_DEVICE=8"
    main()
