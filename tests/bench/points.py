"""The model's throughput compared with published ones: `python -m ipujax bench --points`.

Each point is a program that does what the published one did: its shapes, dtypes, micro-batches and
division among IPUs (tests/data/ipu_points.csv has the measurements by id). Replicas are multiplied,
without their all-reduce, which the published runs did once in many micro-batches. Nothing runs.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from tests.bench import children, published
from tests.bench.row import Row
from tests.stages import known_to_fit

HALF = jnp.float16
#: Sequences in one row of packed inputs: Krell et al., "Efficient Sequence Packing without
#: Cross-contamination", arXiv 2107.02027: Wikipedia at 512 tokens, SQuAD at 384.
PACKED_WIKIPEDIA, PACKED_SQUAD = 2.0, 2.2
#: Largest relative error of a point, and of the median.
BOUND, MEDIAN_BOUND = 0.4, 0.1


@dataclass(frozen=True)
class Point:
    """One published throughput.

    Attributes:
        lower: lowers the program of one replica.
        items: what one run of it processes.
        ipus: of one replica.
    """

    id: str
    name: str
    machine: str
    lower: Callable[[], Any]
    items: float
    replicas: int = 1
    ipus: int = 1

    @property
    def title(self) -> str:
        return f"{self.id} {self.name}"

    @property
    def measured(self) -> float:
        """Items a second, of all replicas."""
        rows = published.points("ipu_points.csv")
        return next(float(row["value"].replace(",", "")) for row in rows if row["id"] == self.id)


def _train(
    id: str, name: str, machine: str, model: Any, replicas: int, ipus: int, packed: float = 1
) -> Point:
    items = model.samples * model.micro_batches * packed
    return Point(id, name, machine, lambda: known_to_fit.lowered_step(model), items, replicas, ipus)


def _resnet_50(samples: int, micro_batches: int) -> Any:
    model = known_to_fit.CONFIGURATIONS["resnet-50-on-one-20"]
    return replace(model, samples=samples, micro_batches=micro_batches)


def _bert_large(length: int, micro_batches: int) -> Any:
    model = known_to_fit.CONFIGURATIONS[f"bert-large-{length}"]
    return replace(model, micro_batches=micro_batches)


def _lowered(f: Any, proportion: float, *args: Any) -> Any:
    options = {"ipu_available_memory_proportion": proportion, "ipu_partials_type": "half"}
    return jax.jit(f, compiler_options=options).lower(*args)


def _encoder(
    layers: int,
    width: int,
    heads: int,
    length: int,
    batch: int,
    proportion: float,
    is_causal: bool = False,
    gelu_by_tanh: bool = True,
) -> Any:
    """Inference of a transformer's layers, from tokens to the last hidden state."""
    model = known_to_fit.Transformer(
        (layers,), (proportion,), width, heads, 30_522, length, 1, batch, is_causal, gelu_by_tanh
    )

    def infer(p: Any, tokens: jax.Array) -> jax.Array:
        x = p["embedding"]["words"][tokens] + p["embedding"]["positions"]
        for layer in p["layers"][0]:
            x = model.layer(layer, x)
        return x

    tokens = jax.ShapeDtypeStruct((batch, length), jnp.int32)
    return _lowered(infer, proportion, model.parameters(), tokens)


def clip_text(batch: int) -> Any:
    """Inference of CLIP's text encoder, 77 tokens."""
    return _encoder(12, 512, 8, 77, batch, 0.8, is_causal=True)


def _resnet_50_inference(batch: int, proportion: float) -> Any:
    """With batch normalisation folded into the kernels, as for inference."""
    model = _resnet_50(batch, 1)

    def convolved(p: Any, x: jax.Array, stride: int) -> jax.Array:
        y = lax.conv_general_dilated(
            x, p[0], (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return y + p[1][0]

    def infer(p: Any, x: jax.Array) -> jax.Array:
        x = jax.nn.relu(convolved(p["stem"], x, 2))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        for block, (_, _, stride) in zip(p["blocks"], model.rows(), strict=True):
            y = jax.nn.relu(convolved(block["a"], x, 1))
            y = jax.nn.relu(convolved(block["b"], y, stride))
            shortcut = convolved(block["projection"], x, stride) if "projection" in block else x
            x = jax.nn.relu(convolved(block["c"], y, 1) + shortcut)
        return jnp.mean(x, (1, 2)) @ p["head"]

    images = jax.ShapeDtypeStruct((batch, 224, 224, 3), HALF)
    return _lowered(infer, proportion, model.parameters(), images)


POINTS = (
    Point("V065", "ResNet-50, 4", "c600", lambda: _resnet_50_inference(4, 0.6), 4),
    Point(
        "V069",
        "BERT-base 384, 40 packs",
        "c600",
        lambda: _encoder(12, 768, 12, 384, 40, 0.4, gelu_by_tanh=False),
        40 * PACKED_SQUAD,
    ),
    Point(
        "V077",
        "CLIP's text encoder, 4",
        "c600",
        lambda: clip_text(4),
        4,
    ),
    _train("V089", "train ResNet-50, 64 x 20", "gc200", _resnet_50(20, 2), 64, 1),
    _train("V091", "train ResNet-50, 64 x 20 x 3", "gc200", _resnet_50(20, 3), 64, 1),
    _train("V095", "train ResNet-50, 64 x 20 x 4", "bow", _resnet_50(20, 4), 64, 1),
    _train("V127", "train ResNet-50, 16 x 22", "bow", _resnet_50(22, 10), 16, 1),
    _train("V111", "train BERT-large 128, TF2", "bow", _bert_large(128, 512), 4, 4),
    _train("V155", "train BERT-large 128, PopART", "bow", _bert_large(128, 512), 4, 4),
    _train(
        "V117", "train BERT-large 512, packed", "bow", _bert_large(512, 512), 4, 4, PACKED_WIKIPEDIA
    ),
)


def modelled(point: Point) -> float:
    """Items a second, of all replicas. A process has one machine: see `row`."""
    seconds = point.lower().compile().cost_analysis()["seconds"]
    return float(point.items / seconds * point.replicas)


def row(point: Point) -> Row:
    """The point's relative error; compiled in a process with its machine."""
    command = ["-m", "tests.bench.points", point.id]
    settings = {
        "IPUJAX_MACHINE": point.machine,
        "JAX_IPU_IPUS_PER_DEVICE": str(point.ipus),
        "JAX_PLATFORMS": "ipu,cpu",
    }
    (found,) = children.json_lines(command, settings)
    error = found["modelled"] / point.measured - 1
    detail = f"{point.measured:.0f} items/s measured, {found['modelled']:.0f} modelled"
    return Row(point.title, abs(error), BOUND, f"{detail} ({error:+.0%})")


def rows(wanted: str) -> Iterator[Row]:
    """Those whose lower-case name contains `wanted`, and the median of all."""
    found = []
    for point in POINTS:
        if wanted in point.title.lower():
            found.append(row(point))
            yield found[-1]
    errors = [each.value for each in found]
    if errors:
        yield Row(
            "points: median error", statistics.median(errors), MEDIAN_BOUND, f"of {len(errors)}"
        )


if __name__ == "__main__":
    (chosen,) = (point for point in POINTS if point.id == sys.argv[1])
    print(json.dumps({"modelled": modelled(chosen)}))
