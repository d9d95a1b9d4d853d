"""Programs with published throughputs, as they were published: `tests.bench.points` times them.

The configurations are those of ByteMLPerf (byte_mlperf/backends/IPU: PopRT, whose partial sums are
half unless a file of interact_infos says otherwise), of Graphcore's submissions to MLPerf and of
graphcore/examples. Dropout is left out: PopLibs draws a mask in as many cycles as a product takes,
0.4 % of a layer of BERT-large where hidden values are dropped, 2 % where attention is, too.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import lax

from tests.bench import swin
from tests.stages import known_to_fit
from tests.stages.known_to_fit import HALF, Transformer, affine, linear, normalised, shape


@dataclass(frozen=True)
class SplitTransformer(Transformer):
    """A transformer that is cut between attentions and MLPs.

    Attributes:
        halves: how many attentions and MLPs in turn are on the second IPU, the third, ... and the
            first, which also embeds and has the head.
    """

    halves: tuple[int, ...] = ()

    def parameters(self) -> Any:
        layer = self.layer_parameters()
        found, first = [], 0
        for number in self.halves:
            found.append([layer[i % 2] for i in range(first, first + number)])
            first += number
        return super().parameters() | {"layers": found}

    def loss(self, stage: Any, p: Any, batch: Any) -> jax.Array:
        tokens, positions, words = batch
        x = stage(self._embedded, 0)(p["embedding"], tokens)
        for i, halves in enumerate(p["layers"], 1):
            x = stage(self._through_halves, i % len(p["layers"]))(halves, x)
        return stage(self._head, 0)(p["embedding"]["words"], x, positions, words)

    def _through_halves(self, halves: Any, x: jax.Array) -> jax.Array:
        """Recomputed from the results of MLPs."""
        ends = [i + 1 for i, p in enumerate(halves) if "up" in p or i == len(halves) - 1]
        for first, end in itertools.pairwise([0, *ends]):
            x = jax.checkpoint(self._run)(halves[first:end], x)
        return x

    def _run(self, halves: Any, x: jax.Array) -> jax.Array:
        for p in halves:
            x = self.mlp(p, x) if "up" in p else self.attention(p, x)
        return x


@dataclass(frozen=True)
class VisionTransformer(Transformer):
    """ViT for images of 224 x 224 in patches of 16 x 16: vision/vit/pytorch of graphcore/examples.

    `vocabulary` is the number of classes. The last IPU has the head.
    """

    PATCH: ClassVar[int] = 16

    def parameters(self) -> Any:
        w = self.width
        found = super().parameters() | {"norm": shape(2, w), "tanh": linear(w, w)}
        patches = shape(self.PATCH, self.PATCH, 3, w)
        embedding = {"patches": patches, "bias": shape(w), "first": shape(1, 1, w)}
        found["embedding"] = embedding | {"positions": shape(self.length, w)}
        return found | {"head": linear(w, self.vocabulary)}

    def batch(self) -> Any:
        images = shape(self.micro_batches, self.samples, 224, 224, 3)
        return images, shape(self.micro_batches, self.samples, dtype=jnp.int32)

    def loss(self, stage: Any, p: Any, batch: Any) -> jax.Array:
        images, labels = batch
        x = stage(self._patches, 0)(p["embedding"], images)
        for i, layers in enumerate(p["layers"]):
            x = stage(self._through, i)(layers, x)
        last = len(p["layers"]) - 1
        found: jax.Array = stage(_classified, last)((p["norm"], p["tanh"], p["head"]), x, labels)
        return found

    def _patches(self, p: Any, images: jax.Array) -> jax.Array:
        x = lax.conv_general_dilated(
            images,
            p["patches"],
            (self.PATCH, self.PATCH),
            "VALID",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
        )
        x = x.reshape(self.samples, -1, self.width) + p["bias"]
        first = jnp.broadcast_to(p["first"], (self.samples, 1, self.width))
        return jnp.concatenate([first, x], 1) + p["positions"]


def _classified(p: Any, x: jax.Array, labels: jax.Array) -> jax.Array:
    norm, tanh, head = p
    x = jnp.tanh(affine(tanh, normalised(norm, x[:, 0])))
    return known_to_fit.cross_entropy(affine(head, x), labels)


class _ClipText(Transformer):
    """CLIP's activation: `quick_gelu`."""

    def activation(self, x: jax.Array) -> jax.Array:
        return x * jax.nn.sigmoid(HALF(1.702) * x)


def clip_text(batch: int) -> Any:
    """Inference of the text encoder of Stable Diffusion 1, CLIP ViT-L/14's: 77 tokens.

    ByteMLPerf's model_zoo names the file stable_diffusion/clip-text-encoder.onnx; the UNet beside
    it takes 768 channels. The results are the last hidden state and that of the last token.
    """
    size = (768, 12, 49_408, 77, 1, batch, True)
    model = _ClipText((12,), (0.8,), *size, has_fused_qkv=False)

    def infer(p: Any, inputs: jax.Array) -> Any:
        x = normalised(p["norm"], _through_layers(model, p, inputs))
        return x, x[jnp.arange(batch), jnp.argmax(inputs, -1)]

    parameters = model.parameters() | {"norm": shape(2, model.width)}
    return _lowered(infer, 0.8, 32, parameters, _tokens(model))


def question_answering(vocabulary: int, batch: int) -> Any:
    """Inference of BERT-base and RoBERTa-base on SQuAD, 384 tokens: two logits for each token."""
    size = (768, 12, vocabulary, 384, 1, batch, False, False)
    model = Transformer((12,), (0.4,), *size, has_fused_qkv=False)

    def infer(p: Any, inputs: jax.Array) -> jax.Array:
        return affine(p["head"], _through_layers(model, p, inputs))

    parameters = model.parameters() | {"head": linear(model.width, 2)}
    return _lowered(infer, 0.4, 0, parameters, _tokens(model))


def _tokens(model: Transformer) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((model.samples, model.length), jnp.int32)


def _through_layers(model: Transformer, p: Any, tokens: jax.Array) -> jax.Array:
    x = p["embedding"]["words"][tokens] + p["embedding"]["positions"]
    for layer in p["layers"][0]:
        x = model.layer(layer, x)
    return x


def _lowered(f: Any, proportion: float, io_tiles: int, *args: Any) -> Any:
    """`f(parameters, inputs)`, with the inputs and the results streamed."""
    options = {
        "ipu_available_memory_proportion": proportion,
        "ipu_partials_type": "half",
        "ipu_streamed_arguments": "inputs",
        "ipu_streamed_results": "all",
        "ipu_num_io_tiles": io_tiles,
        "ipu_place_ops_on_io_tiles": io_tiles > 0,
        "ipu_outline": "auto",  # as PopART does
    }
    return jax.jit(f, compiler_options=options).lower(*args)


def resnet_50(batch: int) -> Any:
    """Inference with batch normalisation folded into the kernels, and 64 I/O tiles."""
    model = known_to_fit.CONFIGURATIONS["resnet-50-on-one"]
    infer = _bottlenecks(model)
    images = jax.ShapeDtypeStruct((batch, 224, 224, 3), HALF)
    return _lowered(infer, 0.6, 64, model.parameters(), images)


def _bottlenecks(model: Any) -> Any:
    """The network without its norms, which are in the kernels."""

    def convolved(p: Any, x: jax.Array, stride: int, groups: int = 1) -> jax.Array:
        y = lax.conv_general_dilated(
            x,
            p[0],
            (stride, stride),
            "SAME",
            dimension_numbers=("NHWC", "HWIO", "NHWC"),
            feature_group_count=groups,
        )
        return y + p[1][0]

    def infer(p: Any, inputs: jax.Array) -> jax.Array:
        x = jax.nn.relu(convolved(p["stem"], inputs, 2))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        for block, (_, _, stride) in zip(p["blocks"], model.rows(), strict=True):
            y = jax.nn.relu(convolved(block["a"], x, 1))
            y = jax.nn.relu(convolved(block["b"], y, stride, model.groups))
            shortcut = convolved(block["projection"], x, stride) if "projection" in block else x
            x = jax.nn.relu(convolved(block["c"], y, 1) + shortcut)
        return jnp.mean(x, (1, 2)) @ p["head"]

    return infer


def resnext_50(batch: int, proportion: float) -> Any:
    """Inference of ResNeXt-50 32x4d in float32, as the tutorial on memory proportions runs it."""
    model = replace(known_to_fit.CONFIGURATIONS["resnet-50-on-one"], groups=32)
    images = jax.ShapeDtypeStruct((batch, 224, 224, 3), jnp.float32)
    return _float32(_bottlenecks(model), proportion, model.parameters(), images)


def vit(batch: int) -> Any:
    """Inference of ViT-base in float32 with PopTorch's defaults: 10 classes."""
    size = (768, 12, 10, 197, 1, batch, False, False)
    model = VisionTransformer((12,), (0.6,), *size, has_fused_qkv=False)

    def infer(p: Any, inputs: jax.Array) -> jax.Array:
        x = model._patches(p["embedding"], inputs)
        for layer in p["layers"][0]:
            x = model.layer(layer, x)
        return affine(p["head"], normalised(p["norm"], x[:, 0]))

    images = jax.ShapeDtypeStruct((batch, 224, 224, 3), jnp.float32)
    return _float32(infer, 0.6, model.parameters(), images)


def swin_large(batch: int) -> Any:
    """Inference of Swin-Large."""
    return _lowered(swin.infer, 0.2, 0, swin.parameters(), swin.images(batch))


def _float32(f: Any, proportion: float, parameters: Any, inputs: Any) -> Any:
    parameters = jax.tree.map(lambda p: jax.ShapeDtypeStruct(p.shape, jnp.float32), parameters)
    options = {
        "ipu_available_memory_proportion": proportion,
        "ipu_streamed_arguments": "inputs",
        "ipu_streamed_results": "all",
        "ipu_outline": "auto",
    }
    return jax.jit(f, compiler_options=options).lower(parameters, inputs)
