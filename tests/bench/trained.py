"""Training programs that were published with a throughput, or as running.

`tests.bench.points` times them and `tests.stages.verdicts` asks whether they fit. Files named here
are those of graphcore/examples.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.bench.efficient_net import EfficientNet as EfficientNet
from tests.bench.published_models import SplitTransformer, VisionTransformer
from tests.stages import known_to_fit
from tests.stages.known_to_fit import Transformer


def resnet_50(samples: int, micro_batches: int) -> Any:
    model = known_to_fit.CONFIGURATIONS["resnet-50-on-one-20"]
    return replace(model, samples=samples, micro_batches=micro_batches)


def bert_large(length: int, micro_batches: int) -> Any:
    model = known_to_fit.CONFIGURATIONS[f"bert-large-{length}"]
    return replace(model, micro_batches=micro_batches)


def bert_large_384() -> Any:
    return replace(bert_large(512, 512), length=384, predicted=56)


def _mlperf(
    samples: int, micro_batches: int, halves: tuple[int, ...], proportions: tuple[float, ...]
) -> Any:
    """As submitted: Graphcore/benchmarks/bert/implementations/popart/configs, pod64-closed.json."""
    size = (1024, 16, 30_522, 512, 76, samples, False)
    return SplitTransformer((), proportions, *size, micro_batches=micro_batches, halves=halves)


def mlperf_1_0() -> Any:
    return _mlperf(2, 96, (6, 6, 6, 6, 8, 8, 8, 0), (1.0,) * 8)


def mlperf_1_1() -> Any:
    return _mlperf(2, 96, (4, 6, 7, 7, 7, 7, 7, 3), (0.2, *[0.25] * 7))


def mlperf_2_0(micro_batches: int) -> Any:
    return _mlperf(3, micro_batches, (6, 6, 6, 7, 7, 7, 7, 2), (1.0,) * 8)


def bert_base(length: int, predicted: int, samples: int, micro_batches: int = 512) -> Any:
    """As graphcore/examples trains it (nlp/bert/pytorch): layers on three of four IPUs."""
    size = (768, 12, 30_522, length, predicted, samples, False)
    return Transformer((0, 4, 4, 4), (0.25,) * 4, *size, micro_batches=micro_batches)


def squad() -> Any:
    """BERT-large on SQuAD: nlp/bert/pytorch/configs_squad.yml, squad_large_384."""
    proportions = (0.08, 0.28, 0.32, 0.32, 0.36, 0.38, 0.4, 0.32)
    size = (1024, 16, 30_522, 384, 1, 4, False)
    return Transformer((2, 3, 3, 3, 3, 3, 3, 4), proportions, *size, micro_batches=32)


def resnext_101() -> Any:
    """vision/cnns/tensorflow1, resnext101_16ipus: two IPUs, cut in the third block."""
    return known_to_fit.ResNet50(
        (11, 22), (0.6, 0.6), 6, micro_batches=16, counts=(3, 4, 23, 3), groups=32
    )


def gpt2_small() -> Any:
    """CARAML's benchmark of nlp/gpt2/pytorch: all of 2,048 samples of 1,024 tokens in a step."""
    model = known_to_fit.CONFIGURATIONS["gpt2-large"]
    model = replace(model, layers=(0, 4, 4, 4), proportions=(0.15,) * 4, width=768, heads=12)
    return replace(model, length=1024, predicted=1024, micro_batches=2048)


def vit(samples: int) -> Any:
    """ViT-base: vision/vit/pytorch, b16_in1k_pretrain_lamb, whose partial sums are float."""
    size = (768, 12, 1000, 197, 1, samples, False, False)
    layers, proportions = (3, 3, 3, 3), (0.3,) * 4
    return VisionTransformer(layers, proportions, *size, micro_batches=512, has_fused_qkv=False)
