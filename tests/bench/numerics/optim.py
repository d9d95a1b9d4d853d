"""A training step of a perceptron with each optimizer of ipu.optim."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import optax

import ipujax as ipu
from tests.bench.models import training
from tests.bench.numerics.program import Program
from tests.bench.workload import Workload, indices, normal

SIZES, BATCH = (256, 1024, 1024, 10), 64

_OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: ipu.optim.sgd(1e-3, momentum=0.9, weight_decay=1e-4),
    "sgd combined": lambda: ipu.optim.sgd(1e-3, momentum=0.9, combined_accumulation=True),
    "adam": lambda: ipu.optim.adam(),
    "adamw": lambda: ipu.optim.adamw(),
    "adamax": lambda: ipu.optim.adamax(),
    "rmsprop": lambda: ipu.optim.rmsprop(momentum=0.9, centered=True),
    "lamb": lambda: ipu.optim.lamb(weight_decay=1e-2),
    "adam, automatic loss scale": lambda: ipu.optim.loss_scale(ipu.optim.adam(), automatic=True),
}


def _program(name: str, make: Callable[[], Any]) -> Program:
    tx = make()
    scaled = "loss scale" in name

    def step(state: Any, x: Any, labels: Any) -> Any:
        params, inner = state

        def loss(params: Any) -> Any:
            value = training.cross_entropy(training.mlp(params, x), labels)
            return ipu.optim.scale_loss(value, inner) if scaled else value

        value, grads = jax.value_and_grad(loss)(params)
        updates, inner = tx.update(grads, inner, params)
        return (optax.apply_updates(params, updates), inner), value

    def arguments() -> list[Any]:
        params = training.init_mlp(SIZES)
        with jax.default_device(jax.devices("cpu")[0]):
            state = jax.tree.map(np.asarray, tx.init(params))
        return [(params, state), normal(BATCH, SIZES[0]), indices(BATCH, SIZES[-1])]

    return Program(Workload(f"training step, {name}", step, arguments, carries=True))


def programs() -> Iterator[Program]:
    for name, make in _OPTIMIZERS.items():
        yield _program(name, make)
