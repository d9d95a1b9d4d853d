"""The model's throughput compared with published ones: `python -m ipujax bench --points`.

Each point is a program that does what the published one did: its shapes, dtypes, micro-batches and
division among IPUs (tests/data/ipu_points.csv has the measurements by id). A step of training on
replicas ends with the all-reduce of its gradients; inference streams its inputs and outputs,
through as many I/O tiles as were published with it. Nothing runs.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from tests.bench import children, published
from tests.bench.row import Row
from tests.stages import known_to_fit

HALF = jnp.float16
#: Sequences in one row of packed inputs. Wikipedia at 512 tokens: Krell et al., "Efficient Sequence
#: Packing without Cross-contamination", arXiv 2107.02027.
PACKED_WIKIPEDIA = 2.0
#: At 128 tokens: graphcore/examples, nlp/bert/pytorch/configs_pretraining.yml.
PACKED_WIKIPEDIA_128 = 1.17
#: SQuAD at 384 tokens, packed as requests arrive: by V071, where one client had one batch of 36
#: rows under way, 2,958 sequences/s x 22.97 ms / 36.
PACKED_SQUAD = 2958 * 22.97e-3 / 36
#: Runs for which a batch is under way where streams go through I/O tiles: it is loaded, computed
#: and stored in one run each (PopRT user guide, "Overlap I/O"), and its client, which waits for the
#: end of the third, is too late for the load that begins then.
RUNS_UNDER_WAY = 4
#: Largest relative error of a point, and of the median.
BOUND, MEDIAN_BOUND = 0.4, 0.1
TILE_BYTES = 638_976


@dataclass(frozen=True)
class Point:
    """One published throughput.

    Attributes:
        lower: lowers the program of one replica.
        items: what one run of it processes.
        ipus: of one replica.
        gradient_bytes: of one IPU, which the replicas add up at the end of a run.
        clients: threads that each have one batch under way and send the next when they have its
            result; 0 if there is always a batch waiting.
    """

    id: str
    name: str
    machine: str
    lower: Callable[[], Any]
    items: float
    replicas: int = 1
    ipus: int = 1
    gradient_bytes: int = 0
    clients: int = 0

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
    weights = sum(
        math.prod(w.shape) * w.dtype.itemsize for w in jax.tree.leaves(model.parameters())
    )

    def lower() -> Any:
        return known_to_fit.lowered_step(model)

    return Point(id, name, machine, lower, items, replicas, ipus, weights // ipus)


def _resnet_50(samples: int, micro_batches: int) -> Any:
    model = known_to_fit.CONFIGURATIONS["resnet-50-on-one-20"]
    return replace(model, samples=samples, micro_batches=micro_batches)


def _bert_large(length: int, micro_batches: int) -> Any:
    model = known_to_fit.CONFIGURATIONS[f"bert-large-{length}"]
    return replace(model, micro_batches=micro_batches)


def _bert_large_384() -> Any:
    return replace(_bert_large(512, 512), length=384, predicted=56)


def _bert_large_on_8(
    samples: int, micro_batches: int, layers: tuple[int, ...], proportions: tuple[float, ...]
) -> Any:
    """As submitted to MLPerf (Graphcore/benchmarks/bert/implementations/popart/configs,
    pod64-closed.json), but with whole layers where it cuts between attention and MLP."""
    model = replace(_bert_large(512, micro_batches), samples=samples)
    return replace(model, layers=layers, proportions=proportions)


def _mlperf_1(micro_batches: int) -> Any:
    return _bert_large_on_8(2, micro_batches, (1, 2, 3, 4, 3, 4, 3, 4), (0.2, *[0.25] * 7))


def _mlperf_2(micro_batches: int) -> Any:
    return _bert_large_on_8(3, micro_batches, (1, 3, 3, 3, 3, 4, 3, 4), (1.0,) * 8)


def _bert_base(length: int, predicted: int, samples: int, micro_batches: int = 512) -> Any:
    """As graphcore/examples trains it (nlp/bert/pytorch): layers on three of four IPUs."""
    size = (768, 12, 30_522, length, predicted, samples, False)
    return known_to_fit.Transformer((0, 4, 4, 4), (0.25,) * 4, *size, micro_batches=micro_batches)


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


def _encoder(model: Any, head: int = 0, io_tiles: int = 0) -> Any:
    """Inference of a transformer's layers on one IPU, from tokens to the last hidden state, or to
    `head` numbers for each token."""

    def infer(p: Any, inputs: jax.Array) -> jax.Array:
        x = p["embedding"]["words"][inputs] + p["embedding"]["positions"]
        for layer in p["layers"][0]:
            x = model.layer(layer, x)
        return x @ p["head"] if head else x

    parameters = model.parameters()
    if head:
        parameters["head"] = jax.ShapeDtypeStruct((model.width, head), HALF)
    tokens = jax.ShapeDtypeStruct((model.samples, model.length), jnp.int32)
    return _lowered(infer, model.proportions[0], io_tiles, parameters, tokens)


def clip_text(batch: int) -> Any:
    """Inference of the text encoder of Stable Diffusion 1, CLIP ViT-L/14's: 77 tokens.

    ByteMLPerf's model_zoo names the file stable_diffusion/clip-text-encoder.onnx; the UNet beside
    it takes 768 channels.
    """
    size = (768, 12, 49_408, 77, 1, batch)
    return _encoder(known_to_fit.Transformer((12,), (0.8,), *size, is_causal=True), io_tiles=32)


def _question_answering(vocabulary: int, batch: int) -> Any:
    """Inference of BERT-base and RoBERTa-base on SQuAD, 384 tokens: two logits for each token."""
    size = (768, 12, vocabulary, 384, 1, batch, False, False)
    return _encoder(known_to_fit.Transformer((12,), (0.4,), *size), head=2)


def _resnet_50_inference(batch: int, proportion: float, io_tiles: int) -> Any:
    """With batch normalisation folded into the kernels, as for inference."""
    model = _resnet_50(batch, 1)

    def convolved(p: Any, x: jax.Array, stride: int) -> jax.Array:
        y = lax.conv_general_dilated(
            x, p[0], (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return y + p[1][0]

    def infer(p: Any, inputs: jax.Array) -> jax.Array:
        x = jax.nn.relu(convolved(p["stem"], inputs, 2))
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
        for block, (_, _, stride) in zip(p["blocks"], model.rows(), strict=True):
            y = jax.nn.relu(convolved(block["a"], x, 1))
            y = jax.nn.relu(convolved(block["b"], y, stride))
            shortcut = convolved(block["projection"], x, stride) if "projection" in block else x
            x = jax.nn.relu(convolved(block["c"], y, 1) + shortcut)
        return jnp.mean(x, (1, 2)) @ p["head"]

    images = jax.ShapeDtypeStruct((batch, 224, 224, 3), HALF)
    return _lowered(infer, proportion, io_tiles, model.parameters(), images)


POINTS = (
    Point("V065", "ResNet-50, 4", "c600", lambda: _resnet_50_inference(4, 0.6, 64), 4, clients=4),
    Point(
        "V069",
        "BERT-base 384, 40 packs",
        "c600",
        lambda: _question_answering(30_522, 40),
        40 * PACKED_SQUAD,
    ),
    Point(
        "V071",
        "BERT-base 384, 36 packs",
        "c600",
        lambda: _question_answering(30_522, 36),
        36 * PACKED_SQUAD,
    ),
    Point(
        "V073",
        "RoBERTa-base 384, 40 packs",
        "c600",
        lambda: _question_answering(50_265, 40),
        40 * PACKED_SQUAD,
    ),
    Point(
        "V077",
        "Stable Diffusion's text encoder, 4",
        "c600",
        lambda: clip_text(4),
        4,
        clients=3,
    ),
    _train("V089", "train ResNet-50, 64 x 20", "gc200", _resnet_50(20, 2), 64, 1),
    _train("V091", "train ResNet-50, 64 x 20 x 3", "gc200", _resnet_50(20, 3), 64, 1),
    _train("V093", "train ResNet-50, 256 x 20", "gc200", _resnet_50(20, 2), 256, 1),
    _train("V097", "train ResNet-50, 256 x 20", "bow", _resnet_50(20, 2), 256, 1),
    _train("V095", "train ResNet-50, 64 x 20 x 4", "bow", _resnet_50(20, 4), 64, 1),
    _train("V129", "train ResNet-50, 64 x 20 x 4, TF1", "bow", _resnet_50(20, 4), 64, 1),
    _train("V147", "train ResNet-50, 64 x 20 x 2, TF1", "bow", _resnet_50(20, 2), 64, 1),
    _train("V127", "train ResNet-50, 16 x 22", "bow", _resnet_50(22, 10), 16, 1),
    _train("V111", "train BERT-large 128, TF2", "bow", _bert_large(128, 512), 4, 4),
    _train("V155", "train BERT-large 128, PopART", "bow", _bert_large(128, 512), 4, 4),
    _train("V157", "train BERT-large 128, PopART", "bow", _bert_large(128, 512), 16, 4),
    _train(
        "V113",
        "train BERT-large 128, packed, PopART",
        "bow",
        _bert_large(128, 366),
        16,
        4,
        PACKED_WIKIPEDIA_128,
    ),
    _train(
        "V115",
        "train BERT-large 128, packed, PyTorch",
        "bow",
        _bert_large(128, 374),
        16,
        4,
        PACKED_WIKIPEDIA_128,
    ),
    _train("V123", "train BERT-base 128, TF2", "bow", _bert_base(128, 20, 32), 4, 4),
    _train("V125", "train BERT-base 512, PopART", "bow", _bert_base(512, 76, 8), 4, 4),
    _train("V159", "train BERT-large 384, PopART", "bow", _bert_large_384(), 4, 4),
    _train("V161", "train BERT-large 384, PopART", "bow", _bert_large_384(), 16, 4),
    _train(
        "V099",
        "train BERT-large 512, MLPerf 1.0",
        "gc200",
        _mlperf_1(96),
        8,
        8,
        PACKED_WIKIPEDIA,
    ),
    _train(
        "V107",
        "train BERT-large 512, MLPerf, Paddle",
        "bow",
        _mlperf_2(256),
        2,
        8,
        PACKED_WIKIPEDIA,
    ),
    _train(
        "V101",
        "train BERT-large 512, MLPerf",
        "gc200",
        _mlperf_1(96),
        8,
        8,
        PACKED_WIKIPEDIA,
    ),
    _train(
        "V105",
        "train BERT-large 512, MLPerf",
        "bow",
        _mlperf_2(64),
        16,
        8,
        PACKED_WIKIPEDIA,
    ),
    _train(
        "V103",
        "train BERT-large 512, MLPerf",
        "bow",
        _mlperf_2(256),
        2,
        8,
        PACKED_WIKIPEDIA,
    ),
    _train(
        "V119",
        "train BERT-large 512, packed",
        "bow",
        _bert_large(512, 128),
        16,
        4,
        PACKED_WIKIPEDIA,
    ),
    _train(
        "V117", "train BERT-large 512, packed", "bow", _bert_large(512, 512), 4, 4, PACKED_WIKIPEDIA
    ),
)


@dataclass(frozen=True)
class Modelled:
    """What the model says of a point. A process has one machine: see `rows_of`.

    Attributes:
        throughput: items a second, of all replicas.
        tile_bytes: on the fullest tile.
    """

    throughput: float
    tile_bytes: float


def modelled(point: Point) -> Modelled:
    """Compiles the point's program."""
    cost = point.lower().compile().cost_analysis()
    seconds = cost["seconds"]
    if point.gradient_bytes:
        seconds += _all_reduce_seconds(point)
    if point.clients:
        seconds *= max(1.0, RUNS_UNDER_WAY / point.clients)
    return Modelled(float(point.items / seconds * point.replicas), float(cost["worst tile bytes"]))


def _all_reduce_seconds(point: Point) -> float:
    gradients = jax.ShapeDtypeStruct((point.replicas, point.gradient_bytes // 2), HALF)
    devices = jax.devices("ipu")[: point.replicas]
    add = jax.pmap(lambda x: lax.psum(x, "replicas"), "replicas", devices=devices)
    return float(add.lower(gradients).compile().cost_analysis()["seconds"])


def rows_of(point: Point) -> tuple[Row, Row]:
    """Its relative error, and its share of a tile, which is at most 1: it ran on this machine.

    Compiled in a process with the point's machine.
    """
    command = ["-m", "tests.bench.points", point.id]
    settings = {
        "IPUJAX_MACHINE": point.machine,
        "JAX_IPU_IPUS_PER_DEVICE": str(point.ipus),
        "JAX_IPU_DEVICE_COUNT": str(point.replicas),
        "JAX_PLATFORMS": "ipu,cpu",
    }
    (found,) = children.json_lines(command, settings)
    error = found["throughput"] / point.measured - 1
    detail = f"{point.measured:.0f} items/s measured, {found['throughput']:.0f} modelled"
    detail = f"{detail} ({error:+.0%})"
    memory = f"{found['tile_bytes']:.0f} bytes on the fullest tile of a program that ran"
    return (
        Row(point.title, abs(error), BOUND, detail),
        Row(f"{point.title}: memory", found["tile_bytes"] / TILE_BYTES, 1.0, memory),
    )


def rows(wanted: str) -> Iterator[Row]:
    """Those whose lower-case name contains `wanted`, and the median of all."""
    found = []
    for point in POINTS:
        if wanted in point.title.lower():
            throughput, memory = rows_of(point)
            found.append(throughput)
            yield from (throughput, memory)
    errors = [each.value for each in found]
    if errors:
        yield Row(
            "points: median error", statistics.median(errors), MEDIAN_BOUND, f"of {len(errors)}"
        )


if __name__ == "__main__":
    (chosen,) = (point for point in POINTS if point.id == sys.argv[1])
    print(json.dumps(asdict(modelled(chosen))))
