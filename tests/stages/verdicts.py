"""`python -m tests.stages.verdicts [NAME...]`: published programs that ran, or ran out of memory.

Compiles each as it was published and says whether it fits. Where the fullest tile's bytes were
published, they are compared. Files are those of graphcore/examples unless a source says otherwise.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import jax
import jax.numpy as jnp

from tests.bench import children, published_models, trained
from tests.compiler import nanogpt
from tests.stages import kept, known_to_fit

TILE_BYTES = 638_976


@dataclass(frozen=True)
class Verdict:
    """What the model says: bytes of the fullest tile."""

    tile_bytes: float

    @property
    def fits(self) -> bool:
        return self.tile_bytes <= TILE_BYTES


@dataclass(frozen=True)
class Fact:
    """What was published of a program.

    Attributes:
        fits: whether it ran.
        verdict: compiles our program.
        ipus: of one replica.
        tile_bytes: of the fullest tile, where published.
    """

    name: str
    source: str
    fits: bool
    verdict: Callable[[], Verdict]
    ipus: int = 1
    machine: str = "gc200"
    tile_bytes: int | None = None


def _lowered(name: str, source: str, fits: bool, lower: Callable[[], Any], **others: Any) -> Fact:
    """Of a program that JAX lowers."""

    def verdict() -> Verdict:
        return Verdict(float(lower().compile().cost_analysis()["worst tile bytes"]))

    return Fact(name, source, fits, verdict, **others)


def _trained(name: str, source: str, model: Any, ipus: int, **others: Any) -> Fact:
    partials = others.pop("partials", "half")
    step = lambda: known_to_fit.lowered_step(model, partials)  # noqa: E731
    return _lowered(name, source, True, step, ipus=ipus, **others)


def _configured(name: str, source: str, ipus: int, **others: Any) -> Fact:
    return _trained(name, source, known_to_fit.CONFIGURATIONS[name], ipus, **others)


def _nanogpt(trains: bool) -> Any:
    """The notebook's: 1,024 characters, two samples at a time, eight times a step.

    Its PyTorch trains with dropout of rate 0, which PopTorch and PopART leave in.
    """
    softmax = kept.softmax
    if trains:
        softmax = lambda x: kept.dropped_at_rate_0(kept.softmax(x))  # noqa: E731
    sizes = nanogpt.Sizes(context=1024, softmax=softmax, standardized=kept.standardized)
    parameters, state, tokens = nanogpt.shapes(sizes, 2)
    if not trains:
        return jax.jit(nanogpt.loss_of(sizes)).lower(parameters, tokens)
    tokens = jax.ShapeDtypeStruct((8, *tokens.shape), tokens.dtype)
    options = {"ipu_available_memory_proportion": 0.08, "ipu_outline": "auto"}
    step = jax.jit(
        nanogpt.accumulated_step_of(sizes), donate_argnums=(0, 1), compiler_options=options
    )
    return step.lower(parameters, state, tokens)


def _products(rows: int, columns: int) -> Verdict:
    """(m1 m2) m3 in float32, as the Poplar program has it: mapped linearly, without options."""
    from ipujax._poplar import _poplar

    poplar, poplin, engine = _poplar.poplar, _poplar.poplin, _poplar.engine
    graph, program = poplar.Graph(poplar.createTarget("gc200", 1)), poplar.program.Sequence()

    def matrix(name: str, *shape: int) -> Any:
        found = graph.addVariable(poplar.FLOAT, shape, poplar.DebugContext(name, ""))
        poplar.poputil.mapTensorLinearly(graph, found)
        return found

    m1, m2 = matrix("m1", rows, columns), matrix("m2", columns, 300)
    m3 = matrix("m3", 300, 200)
    m4 = poplin.matMul(graph, m1, m2, program, poplar.FLOAT)
    poplin.matMul(graph, m4, m3, program, poplar.FLOAT)
    image, _ = engine.buildImage(graph, program, engine.Signature("products"))
    return Verdict(engine.inspectImage(image)["worst_tile_bytes"])


def _triad(elements: int) -> Any:
    array = jax.ShapeDtypeStruct((elements,), jnp.float32)
    stream = jax.jit(lambda a, b, c: b + 0.4 * c, donate_argnums=0, keep_unused=True)
    return stream.lower(array, array, array)


_EXAMPLES_BERT = "nlp/bert/pytorch/configs_pretraining.yml"
_MLPERF = "mlcommons/training_results_v{}, Graphcore, bert, pod64-closed.json"
_BYTE = "bytedance/ByteMLPerf, byte_mlperf/backends/IPU/interact_infos and reports"
_NOTEBOOK = "graphcore-research/flash-attention-ipu, demo/flash-attention-ipu-demo.ipynb"
_TUTORIAL = "tutorials, Poplar tutorial 4, tut4_ipu_hardware.cpp and README"
_SWEEP = "tutorials, pytorch_demo.py and its tests"

FACTS = (
    _configured("bert-large-128", _EXAMPLES_BERT, 4),
    _configured("bert-large-512", _EXAMPLES_BERT, 4),
    _trained("bert-large-384", _EXAMPLES_BERT, trained.bert_large_384(), 4),
    _trained("bert-base-128", _EXAMPLES_BERT, trained.bert_base(128, 20, 32), 4),
    _trained("bert-base-384", _EXAMPLES_BERT, trained.bert_base(384, 56, 8), 4),
    _trained("bert-base-512", _EXAMPLES_BERT, trained.bert_base(512, 76, 8), 4),
    _trained("bert-large-squad", "nlp/bert/pytorch/configs_squad.yml", trained.squad(), 8),
    _trained(
        "bert-large-mlperf-1.0",
        _MLPERF.format("1.0"),
        trained.mlperf_1_0(),
        8,
    ),
    _trained(
        "bert-large-mlperf-1.1",
        _MLPERF.format("1.1"),
        trained.mlperf_1_1(),
        8,
    ),
    _trained(
        "bert-large-mlperf-2.0",
        _MLPERF.format("2.0"),
        trained.mlperf_2_0(64),
        8,
    ),
    _configured("gpt2-medium", "nlp/gpt2/pytorch", 8),
    _configured("gpt2-large", "nlp/gpt2/pytorch", 8),
    _trained("gpt2-small", "FZJ-JSC/CARAML, GPT 117M on 4 IPUs", trained.gpt2_small(), 4),
    _trained(
        "vit-base",
        "vision/vit/pytorch/configs.yml, pretraining",
        trained.vit(8),
        4,
        partials="float",
    ),
    _trained(
        "vit-base-17",
        "vision/vit/pytorch/configs.yml, fine-tuning",
        trained.vit(17),
        4,
        partials="float",
    ),
    _configured("resnet-50", "vision/cnns/tensorflow2", 4),
    _configured("resnet-50-on-one", "vision/cnns/tensorflow1, resnet50_mlperf_pod16", 1),
    _configured("resnet-50-on-one-20", "vision/cnns/tensorflow1, resnet50_mlperf_pod64_bs20", 1),
    _trained(
        "resnet-50-on-one-22",
        "vision/cnns/tensorflow1, resnet50_mlperf_pod16_lars",
        trained.resnet_50(22, 10),
        1,
        machine="bow",
    ),
    _trained(
        "resnext-101",
        "vision/cnns/tensorflow1, resnext101_16ipus",
        trained.resnext_101(),
        2,
    ),
    _trained(
        "efficientnet-b4",
        "vision/cnns/tensorflow1, efficientnet_b4_g16_16ipus",
        trained.EfficientNet(3, 16),
        2,
    ),
    _lowered(
        "infer-swin-large-2", _BYTE, True, lambda: published_models.swin_large(2), machine="c600"
    ),
    _lowered(
        "infer-resnet-50-4", _BYTE, True, lambda: published_models.resnet_50(4), machine="c600"
    ),
    _lowered(
        "infer-resnet-50-32", _BYTE, True, lambda: published_models.resnet_50(32), machine="c600"
    ),
    _lowered(
        "infer-bert-base-40",
        _BYTE,
        True,
        lambda: published_models.question_answering(30_522, 40),
        machine="c600",
    ),
    _lowered(
        "infer-roberta-base-40",
        _BYTE,
        True,
        lambda: published_models.question_answering(50_265, 40),
        machine="c600",
    ),
    _lowered(
        "infer-clip-text-4", _BYTE, True, lambda: published_models.clip_text(4), machine="c600"
    ),
    _lowered(
        "infer-clip-text-40", _BYTE, True, lambda: published_models.clip_text(40), machine="c600"
    ),
    _lowered(
        "infer-resnext-50-20-at-0.35",
        _SWEEP,
        True,
        lambda: published_models.resnext_50(20, 0.35),
    ),
    _lowered(
        "infer-resnext-50-20-at-0.8",
        _SWEEP,
        False,
        lambda: published_models.resnext_50(20, 0.8),
    ),
    _lowered("infer-vit-2", "a comment in a user's script", True, lambda: published_models.vit(2)),
    _lowered(
        "infer-vit-64",
        "a comment in a user's script",
        False,
        lambda: published_models.vit(64),
        tile_bytes=826_928,
    ),
    _lowered("nanogpt-loss", _NOTEBOOK, True, lambda: _nanogpt(trains=False)),
    _lowered("nanogpt-train", _NOTEBOOK, False, lambda: _nanogpt(trains=True), tile_bytes=876_060),
    Fact("products-900", _TUTORIAL, True, lambda: _products(900, 600)),
    Fact(
        "products-9000",
        _TUTORIAL,
        False,
        lambda: _products(9000, 6000),
        tile_bytes=674_752,
    ),
    Fact("products-9000-7500", _TUTORIAL, False, lambda: _products(9000, 7500)),
    _lowered(
        "stream",
        "UoB-HPC/BabelStream, pull request 70 (V173)",
        True,
        lambda: _triad(16_185_000),
    ),
)


def judged(fact: Fact) -> Verdict:
    """Compiles the program, in a process with its machine."""
    settings = {
        "IPUJAX_MACHINE": fact.machine,
        "JAX_IPU_IPUS_PER_DEVICE": str(fact.ipus),
        "JAX_PLATFORMS": "ipu,cpu",
    }
    (found,) = children.json_lines(["-m", "tests.stages.verdicts", "--json", fact.name], settings)
    return Verdict(**found)


def main() -> int:
    parser = argparse.ArgumentParser("python -m tests.stages.verdicts", description=__doc__)
    parser.add_argument("names", nargs="*", default=[fact.name for fact in FACTS])
    parser.add_argument("--json", action="store_true", help="compile here; print numbers only")
    options = parser.parse_args()
    chosen = [fact for fact in FACTS if fact.name in options.names]
    if options.json:
        print(json.dumps(asdict(chosen[0].verdict())))
        return 0
    wrong = 0
    for fact in chosen:
        verdict = judged(fact)
        wrong += verdict.fits != fact.fits
        print(_line(fact, verdict), flush=True)
    print(f"{wrong} of {len(chosen)} verdicts are wrong")
    return int(wrong > 0)


def _line(fact: Fact, verdict: Verdict) -> str:
    said = "fits" if verdict.fits else "out of memory"
    mark = "" if verdict.fits == fact.fits else ", WRONG"
    text = f"{fact.name}: {said}{mark}: {verdict.tile_bytes:,.0f} bytes on the fullest tile"
    if fact.tile_bytes is None:
        return text
    error = verdict.tile_bytes / fact.tile_bytes - 1
    return f"{text}; published: {fact.tile_bytes:,} ({error:+.0%})"


if __name__ == "__main__":
    sys.exit(main())
