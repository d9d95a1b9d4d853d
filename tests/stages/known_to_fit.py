"""`python -m tests.stages.known_to_fit NAME...`: configurations that are known to fit their IPUs.

Compiles one training step of each (facts/stages.md, section 6) from shapes alone, in float16, and
prints each IPU's fullest tile. The optimizer's state is left out: there it was off-chip. Not part
of the test suite: a compile takes minutes. `--layers N` leaves that many layers in each stage.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

HALF = jnp.float16
TILE_BYTES = 624 * 1024

Stage = tuple[Any, Callable[..., Any]]


@dataclass(frozen=True)
class Transformer:
    """A transformer whose layers are divided among stages.

    Attributes:
        layers: of each stage; the first one embeds, too, the last one has a head and the loss.
    """

    layers: tuple[int, ...]
    width: int
    heads: int
    vocabulary: int
    length: int
    samples: int
    is_causal: bool
    micro_batches: int = 16

    def stages(self) -> list[Stage]:
        """The parameters' shapes and the function of each stage."""
        last = len(self.layers) - 1
        return [self._stage(number, i == 0, i == last) for i, number in enumerate(self.layers)]

    def batch(self) -> Any:
        tokens = _shape(self.micro_batches, self.samples, self.length, dtype=jnp.int32)
        return tokens, tokens

    def _stage(self, number: int, is_first: bool, is_last: bool) -> Stage:
        w = self.width
        layer = {"qkv": _shape(w, 3 * w), "out": _shape(w, w), "up": _shape(w, 4 * w)}
        layer |= {"down": _shape(4 * w, w), "norms": _shape(4, w), "bias": _shape(4 * w)}
        own: dict[str, Any] = {"layers": [layer] * number}
        if is_first:
            own |= {"table": _shape(self.vocabulary, w), "positions": _shape(self.length, w)}
        if is_last:
            own["head"] = _shape(w, self.vocabulary)

        def stage(p: Any, given: Any) -> Any:
            x, labels = given
            if is_first:
                x = p["table"][x] + p["positions"]
            for one in p["layers"]:
                x = jax.checkpoint(self._layer)(one, x)
            if not is_last:
                return x, labels
            scores = jax.nn.log_softmax((x @ p["head"]).astype(jnp.float32))
            return -jnp.mean(jnp.take_along_axis(scores, labels[..., None], -1, mode="clip"))

        return own, stage

    def _layer(self, p: Any, x: jax.Array) -> jax.Array:
        split = (*x.shape[:2], self.heads, self.width // self.heads)
        y = _normalised(x, p["norms"][0], p["norms"][1])
        q, k, v = (part.reshape(split) for part in jnp.split(y @ p["qkv"], 3, -1))
        scores = jnp.einsum("bqhc,bkhc->bhqk", q, k) / jnp.sqrt(HALF(split[-1]))
        if self.is_causal:
            scores = jnp.where(jnp.tri(self.length, dtype=bool), scores, jnp.finfo(HALF).min)
        mixed = jnp.einsum("bhqk,bkhc->bqhc", jax.nn.softmax(scores), v).reshape(x.shape)
        x = x + mixed @ p["out"]
        y = _normalised(x, p["norms"][2], p["norms"][3])
        return x + jax.nn.gelu(y @ p["up"] + p["bias"]) @ p["down"]


@dataclass(frozen=True)
class ResNet50:
    """Blocks of 3, 4, 6 and 3 bottlenecks, divided among stages by the number of bottlenecks."""

    layers: tuple[int, ...]
    samples: int
    micro_batches: int = 16

    def stages(self) -> list[Stage]:
        rows = [
            (width, width * 4, 2 if i == 0 and width > 64 else 1, i == 0)
            for width, count in ((64, 3), (128, 4), (256, 6), (512, 3))
            for i in range(count)
        ]
        made, channels = [], 64
        last = len(self.layers) - 1
        for k, number in enumerate(self.layers):
            here, rows = rows[:number], rows[number:]
            blocks = []
            for width, out, _, projects in here:
                kernels = {"a": _kernel(1, channels, width), "b": _kernel(3, width, width)}
                kernels["c"] = _kernel(1, width, out)
                if projects:
                    kernels["projection"] = _kernel(1, channels, out)
                blocks.append({name: (k, _shape(2, k.shape[-1])) for name, k in kernels.items()})
                channels = out
            own: dict[str, Any] = {"blocks": blocks}
            if k == 0:
                own["stem"] = (_kernel(7, 3, 64), _shape(2, 64))
            if k == last:
                own["head"] = _shape(channels, 1000)
            made.append((own, _resnet_stage([row[2] for row in here], k == 0, k == last)))
        return made

    def batch(self) -> Any:
        images = _shape(self.micro_batches, self.samples, 224, 224, 3)
        return images, _shape(self.micro_batches, self.samples, dtype=jnp.int32)


def _resnet_stage(strides: list[int], is_first: bool, is_last: bool) -> Callable[..., Any]:
    def stage(p: Any, given: Any) -> Any:
        x, labels = given
        if is_first:
            x = jax.nn.relu(_convolved(p["stem"], x, 2))
            x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        for block, stride in zip(p["blocks"], strides, strict=True):
            y = jax.nn.relu(_convolved(block["a"], x, 1))
            y = jax.nn.relu(_convolved(block["b"], y, stride))
            shortcut = _convolved(block["projection"], x, stride) if "projection" in block else x
            x = jax.nn.relu(_convolved(block["c"], y, 1) + shortcut)
        if not is_last:
            return x, labels
        scores = jax.nn.log_softmax((jnp.mean(x, (1, 2)) @ p["head"]).astype(jnp.float32))
        return -jnp.mean(jnp.take_along_axis(scores, labels[:, None], -1, mode="clip"))

    return stage


def _convolved(p: Any, x: jax.Array, stride: int) -> jax.Array:
    """A convolution, and batch normalisation by the micro-batch's own statistics."""
    kernel, (scale, shift) = p[0], p[1]
    y = lax.conv_general_dilated(
        x, kernel, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    mean, variance = jnp.mean(y, (0, 1, 2)), jnp.var(y.astype(jnp.float32), (0, 1, 2))
    return (y - mean) * lax.rsqrt(variance + 1e-5).astype(HALF) * scale + shift


def _normalised(x: jax.Array, scale: jax.Array, shift: jax.Array) -> jax.Array:
    return jax.nn.standardize(x, axis=-1, epsilon=1e-5) * scale + shift


def _shape(*shape: int, dtype: Any = HALF) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, dtype)


def _kernel(size: int, channels: int, features: int) -> jax.ShapeDtypeStruct:
    return _shape(size, size, channels, features)


def _bert(length: int, samples: int) -> Transformer:
    return Transformer((3, 7, 7, 7), 1024, 16, 30_522, length, samples, is_causal=False)


CONFIGURATIONS: dict[str, Any] = {
    "bert-large-128": _bert(128, 8),
    "bert-large-512": _bert(512, 2),
    "gpt2-medium": Transformer((0, 3, 3, 3, 3, 4, 4, 4), 1024, 16, 50_257, 1024, 1, True),
    "gpt2-large": Transformer((1, 5, 5, 5, 5, 5, 5, 5), 1280, 20, 50_257, 512, 1, True),
    "resnet-50": ResNet50((3, 4, 5, 4), 16),
}


def compile_step(model: Any) -> dict[str, float]:
    """The cost analysis of value and gradients of all micro-batches, and a step of descent."""
    import ipujax as ipu

    own, functions = zip(*model.stages(), strict=True)
    loss = ipu.pipeline(
        [ipu.stage(f, remat=True) for f in functions],
        micro_batches=model.micro_batches,
        reduction="mean",
    )

    def step(parameters: Any, batch: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(parameters, batch)
        return jax.tree.map(lambda p, g: p - HALF(0.01) * g, parameters, gradients), value

    jitted = jax.jit(step, donate_argnums=0)
    return dict(jitted.lower(list(own), model.batch()).compile().cost_analysis())


def main() -> None:
    parser = argparse.ArgumentParser("python -m tests.stages.known_to_fit", description=__doc__)
    parser.add_argument("names", nargs="*", default=list(CONFIGURATIONS))
    parser.add_argument("--layers", type=int, help="at most so many in each stage")
    options = parser.parse_args()
    for name in options.names:
        model = CONFIGURATIONS[name]
        if options.layers is not None:
            fewer = tuple(min(options.layers, number) for number in model.layers)
            model = type(model)(**{**vars(model), "layers": fewer})
        begin = time.process_time()
        cost = compile_step(model)
        seconds = time.process_time() - begin
        tiles = [cost[f"ipu {i} worst tile bytes"] for i in range(len(model.layers))]
        text = ", ".join(f"{tile / 1024:.0f}" for tile in tiles)
        fits = "fits" if max(tiles) <= TILE_BYTES else "does not fit"
        print(f"{name}: {fits}: fullest tiles of {text} KiB; {seconds:.0f} s", flush=True)


if __name__ == "__main__":
    assert int(os.environ.get("JAX_IPU_IPUS_PER_DEVICE", "1")) >= 4, "set JAX_IPU_IPUS_PER_DEVICE=8"
    main()
