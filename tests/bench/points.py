"""The model's throughput compared with published ones: `python -m ipujax bench --points`.

Each point is a program that does what the published one did: its shapes, dtypes, micro-batches and
division among IPUs (cpp/model/tests/data/ipu_points.csv has the measurements by id). A step of
training on replicas ends with the all-reduce of its gradients; inference streams its inputs and
outputs, through as many I/O tiles as were published with it. Nothing runs.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from tests.bench import children, published, published_models, trained
from tests.bench.row import Row
from tests.stages import known_to_fit
from tests.stages.known_to_fit import Transformer

HALF = jnp.float16
#: Sequences in one row of packed inputs. Wikipedia at 512 tokens: Krell et al., "Efficient Sequence
#: Packing without Cross-contamination", arXiv 2107.02027.
PACKED_WIKIPEDIA = 2.0
#: At 128 tokens: graphcore/examples, nlp/bert/pytorch/configs_pretraining.yml.
PACKED_WIKIPEDIA_128 = 1.17
#: SQuAD at 384 tokens, packed as requests arrive: by V071, where one client had one batch of 36
#: rows under way, 2,958 sequences/s x 22.97 ms / 36.
PACKED_SQUAD = 2958 * 22.97e-3 / 36
#: Seconds between calls from the host ("batches_per_step" steps in PopART, "device_iterations" in
#: PyTorch). Fitted: steps of BERT-large in MLPerf 2.0 with 36, 64 and 96 micro-batches take 4.43 ms
#: for each and 0.21 s, of which 14 micro-batches fill the pipeline.
BETWEEN_CALLS = 0.15
#: From PopRT's results to a client's next request. Wide&Deep on a C600 took 0.113 ms for 1,024
#: rows from five clients: three such turns less the computation, 1,024 / 20,000 of 0.636 ms.
ROUND_TRIP = 3 * 1024 / 9_070_425 - 1024 / 31_446_195
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
        clients: of PopRT with I/O tiles; each waits for its results before it sends the next input.
        runs_per_call: from the host; none if training is a loop on the device.
    """

    id: str
    name: str
    machine: str
    lower: Callable[[], Any]
    items: float
    replicas: int = 1
    ipus: int = 1
    gradient_bytes: int = 0
    clients: int | None = None
    runs_per_call: int | None = None

    @property
    def title(self) -> str:
        return f"{self.id} {self.name}"

    @property
    def measured(self) -> float:
        """Items a second, of all replicas."""
        rows = published.points("ipu_points.csv")
        return next(float(row["value"].replace(",", "")) for row in rows if row["id"] == self.id)


def _train(
    id: str,
    name: str,
    machine: str,
    model: Any,
    replicas: int,
    ipus: int,
    packed: float = 1,
    partials: str = "half",
    steps_per_call: int = 1,
) -> Point:
    items = model.samples * model.micro_batches * packed
    weights = sum(
        math.prod(w.shape) * w.dtype.itemsize for w in jax.tree.leaves(model.parameters())
    )

    def lower() -> Any:
        return known_to_fit.lowered_step(model, partials)

    steps = steps_per_call if isinstance(model, Transformer) else None  # ResNets train in a loop
    gradients = weights // ipus
    return Point(id, name, machine, lower, items, replicas, ipus, gradients, runs_per_call=steps)


POINTS = (
    Point("V065", "ResNet-50, 4", "c600", lambda: published_models.resnet_50(4), 4, clients=4),
    Point(
        "V069",
        "BERT-base 384, 40 packs",
        "c600",
        lambda: published_models.question_answering(30_522, 40),
        40 * PACKED_SQUAD,
    ),
    Point(
        "V071",
        "BERT-base 384, 36 packs",
        "c600",
        lambda: published_models.question_answering(30_522, 36),
        36 * PACKED_SQUAD,
    ),
    Point(
        "V073",
        "RoBERTa-base 384, 40 packs",
        "c600",
        lambda: published_models.question_answering(50_265, 40),
        40 * PACKED_SQUAD,
    ),
    Point("V075", "Swin-Large 384, 2", "c600", lambda: published_models.swin_large(2), 2),
    Point(
        "V077",
        "Stable Diffusion's text encoder, 4",
        "c600",
        lambda: published_models.clip_text(4),
        4,
        clients=3,
    ),
    _train("V089", "train ResNet-50, 64 x 20", "gc200", trained.resnet_50(20, 2), 64, 1),
    _train("V091", "train ResNet-50, 64 x 20 x 3", "gc200", trained.resnet_50(20, 3), 64, 1),
    _train("V093", "train ResNet-50, 256 x 20", "gc200", trained.resnet_50(20, 2), 256, 1),
    _train("V097", "train ResNet-50, 256 x 20", "bow", trained.resnet_50(20, 2), 256, 1),
    _train("V095", "train ResNet-50, 64 x 20 x 4", "bow", trained.resnet_50(20, 4), 64, 1),
    _train("V129", "train ResNet-50, 64 x 20 x 4, TF1", "bow", trained.resnet_50(20, 4), 64, 1),
    _train("V147", "train ResNet-50, 64 x 20 x 2, TF1", "bow", trained.resnet_50(20, 2), 64, 1),
    _train("V127", "train ResNet-50, 16 x 22", "bow", trained.resnet_50(22, 10), 16, 1),
    _train("V111", "train BERT-large 128, TF2", "bow", trained.bert_large(128, 512), 4, 4),
    _train("V155", "train BERT-large 128, PopART", "bow", trained.bert_large(128, 512), 4, 4),
    _train("V157", "train BERT-large 128, PopART", "bow", trained.bert_large(128, 512), 16, 4),
    _train(
        "V113",
        "train BERT-large 128, packed, PopART",
        "bow",
        trained.bert_large(128, 366),
        16,
        4,
        PACKED_WIKIPEDIA_128,
    ),
    _train(
        "V115",
        "train BERT-large 128, packed, PyTorch",
        "bow",
        trained.bert_large(128, 374),
        16,
        4,
        PACKED_WIKIPEDIA_128,
    ),
    _train("V137", "train ViT-base", "bow", trained.vit(8), 16, 4, partials="float"),
    _train(
        "V153", "train ViT-base, SDK before 2.5", "bow", trained.vit(8), 16, 4, partials="float"
    ),
    _train("V123", "train BERT-base 128, TF2", "bow", trained.bert_base(128, 20, 32), 4, 4),
    _train("V125", "train BERT-base 512, PopART", "bow", trained.bert_base(512, 76, 8), 4, 4),
    _train("V159", "train BERT-large 384, PopART", "bow", trained.bert_large_384(), 4, 4),
    _train("V161", "train BERT-large 384, PopART", "bow", trained.bert_large_384(), 16, 4),
    _train("V121", "train BERT-large 384, SQuAD", "bow", trained.squad(), 2, 8, steps_per_call=2),
    _train("V135", "train ResNeXt-101", "bow", trained.resnext_101(), 8, 2),
    _train("V131", "train EfficientNet-B4 G16", "bow", trained.EfficientNet(3, 256), 8, 2),
    _train(
        "V149",
        "train EfficientNet-B4 G16, SDK before 2.5",
        "bow",
        trained.EfficientNet(3, 256),
        8,
        2,
    ),
    _train("V133", "train EfficientNet-B4 G16", "bow", trained.EfficientNet(3, 64), 32, 2),
    _train(
        "V151",
        "train EfficientNet-B4 G16, SDK before 2.5",
        "bow",
        trained.EfficientNet(3, 16),
        128,
        2,
    ),
    _train("V165", "train GPT-2 117M", "gc200", trained.gpt2_small(), 1, 4, steps_per_call=8),
    _train(
        "V099",
        "train BERT-large 512, MLPerf 1.0",
        "gc200",
        trained.mlperf_1_0(),
        8,
        8,
        PACKED_WIKIPEDIA,
    ),
    _train(
        "V107",
        "train BERT-large 512, MLPerf, Paddle",
        "bow",
        trained.mlperf_2_0(256),
        2,
        8,
        PACKED_WIKIPEDIA,
    ),
    _train(
        "V101",
        "train BERT-large 512, MLPerf",
        "gc200",
        trained.mlperf_1_1(),
        8,
        8,
        PACKED_WIKIPEDIA,
    ),
    _train(
        "V105",
        "train BERT-large 512, MLPerf",
        "bow",
        trained.mlperf_2_0(64),
        16,
        8,
        PACKED_WIKIPEDIA,
    ),
    _train(
        "V103",
        "train BERT-large 512, MLPerf",
        "bow",
        trained.mlperf_2_0(256),
        2,
        8,
        PACKED_WIKIPEDIA,
    ),
    _train(
        "V119",
        "train BERT-large 512, packed",
        "bow",
        trained.bert_large(512, 128),
        16,
        4,
        PACKED_WIKIPEDIA,
    ),
    _train(
        "V117",
        "train BERT-large 512, packed",
        "bow",
        trained.bert_large(512, 512),
        4,
        4,
        PACKED_WIKIPEDIA,
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
    if point.runs_per_call is not None:
        seconds += BETWEEN_CALLS / point.runs_per_call
    if point.clients is not None:
        seconds = paced(seconds, point.clients)
    return Modelled(float(point.items / seconds * point.replicas), float(cost["worst tile bytes"]))


def paced(seconds: float, clients: int) -> float:
    """Seconds from batch to batch of a program that takes `seconds`, with I/O tiles.

    A batch is loaded, computed and stored in three turns, each of which needs a new input. A client
    whose results are stored has the turns that other clients can fill to send its next one.
    """
    return max(seconds, (seconds + ROUND_TRIP) / (clients - 2))


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
