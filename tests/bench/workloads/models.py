"""Whole models: training steps, a forward pass, a decoding step."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tests.bench.models import convolutional, gpt, recurrent, training
from tests.bench.workload import Workload, indices, normal

MLP_SIZES = (784, 512, 512, 10)
NUM_DEVICES = 4
DTYPES = {"f32": np.float32, "f16": np.float16}
#: Batches: a step takes 1 to 100 ms on two cores of 2024.
MLP_BATCH = 128
LENET_BATCH = 64
RESNET_BATCH = 2
GPT_BATCH, GPT_TIME = 2, 128
DECODE_BATCH, DECODE_PLACE = 4, 300


def _with_momenta(params: Any) -> Any:
    return params, training.zeros_like(params)


def _mlp(batch: int) -> list[Any]:
    state = _with_momenta(training.init_mlp(MLP_SIZES))
    return [state, normal(batch, MLP_SIZES[0]), indices(batch, MLP_SIZES[-1])]


def _lenet(dtype: Any) -> list[Any]:
    state = _with_momenta(convolutional.init_lenet(dtype))
    return [state, normal(LENET_BATCH, 28, 28, 1, dtype=dtype), indices(LENET_BATCH, 10)]


def _resnet(dtype: Any) -> list[Any]:
    state = _with_momenta(convolutional.init_resnet18(dtype))
    return [state, normal(RESNET_BATCH, 32, 32, 3, dtype=dtype), indices(RESNET_BATCH, 10)]


def _tokens(seed: int = 0) -> np.ndarray[Any, Any]:
    return indices(GPT_BATCH * GPT_TIME, gpt.NUM_TOKENS, seed).reshape(GPT_BATCH, GPT_TIME)


def _transformer() -> list[Any]:
    params = gpt.init()
    zeros = training.zeros_like
    return [(params, zeros(params), zeros(params), np.float32(0)), _tokens(), _tokens(1)]


def _decode() -> list[Any]:
    tokens = indices(DECODE_BATCH, gpt.NUM_TOKENS)
    return [gpt.init_cache(DECODE_BATCH), gpt.init(), tokens, np.int32(DECODE_PLACE)]


def _lstm() -> list[Any]:
    start = np.zeros((16, 64), np.float32)
    return [normal(128, 16, 64), start, normal(64, 256) / 8, normal(64, 256) / 8]


def workloads() -> list[Workload]:
    mlp, lenet, resnet = (
        training.momentum_step(forward)
        for forward in (training.mlp, convolutional.lenet, convolutional.resnet18)
    )
    return [
        Workload("MLP train step", mlp, partial(_mlp, MLP_BATCH), True),
        *(
            Workload(f"LeNet train step {name}", lenet, partial(_lenet, dtype), True)
            for name, dtype in DTYPES.items()
        ),
        *(
            Workload(f"ResNet-18 train step {name}", resnet, partial(_resnet, dtype), True)
            for name, dtype in DTYPES.items()
        ),
        Workload("transformer forward", gpt.forward, lambda: [gpt.init(), _tokens()]),
        Workload("transformer train step", training.adam_step(gpt.forward), _transformer, True),
        Workload("GPT decode step", gpt.decode, _decode, True),
        Workload("LSTM 128 steps", recurrent.lstm, _lstm),
        Workload(
            f"data-parallel MLP step, {NUM_DEVICES} devices",
            mlp,
            partial(_mlp, NUM_DEVICES * MLP_BATCH),
            True,
            NUM_DEVICES,
        ),
    ]
