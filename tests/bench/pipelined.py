"""A step over several stages against the same step without stages, both on the IPU Model.

A device of several IPUs needs a process of its own: the rows are measured in a child.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from tests.bench import children
from tests.bench.row import Row, seconds

STAGES = (2, 4)
NAMES = {stages: f"pipelined MLP step, {stages} stages" for stages in STAGES}
#: Largest time relative to the loop without stages: of a run, and of compiling.
RUN_BOUND, COMPILE_BOUND = 1.15, 2.0
#: Fewer rounds do not show a difference of 15 % on a machine that does other work.
MIN_ROUNDS = 21
COMPILE_BUDGET_SECONDS = 20.0
MICRO_BATCHES, ROWS, WIDTH, LAYERS = 16, 64, 256, 3


def rows(wanted: str, rounds: int, sample: float) -> Iterator[Row]:
    """The rows whose name contains `wanted`, a text in lower case."""
    for stages, name in NAMES.items():
        if wanted in name.lower():
            command = ["-m", __name__, str(stages), str(rounds), str(sample)]
            environment = {"JAX_IPU_IPUS_PER_DEVICE": str(stages), "JAX_PLATFORMS": "ipu"}
            yield from (Row(**found) for found in children.json_lines(command, environment))


def _programs(stages: int) -> tuple[Any, Any]:
    """Value and gradients as a pipeline, and accumulated by a loop over the micro-batches."""
    import jax
    import jax.numpy as jnp

    import ipujax as ipu
    from tests.bench.workload import Workload, normal

    def layers(weights: Any, x: Any) -> Any:
        for w in weights:
            x = jax.nn.relu(x @ w)
        return x

    def head(weights: Any, x: Any) -> Any:
        return jnp.mean(layers(weights, x) ** 2)

    def loss(weights: Any, x: Any) -> Any:
        for own in weights[:-1]:
            x = layers(own, x)
        return head(weights[-1], x) / MICRO_BATCHES

    def accumulated(weights: Any, batch: Any) -> Any:
        def add(total: Any, x: Any) -> Any:
            return jax.tree.map(jnp.add, total, jax.value_and_grad(loss)(weights, x)), None

        zero = jnp.zeros(()), jax.tree.map(jnp.zeros_like, weights)
        return jax.lax.scan(add, zero, batch)[0]

    functions = [layers] * (stages - 1) + [head]
    pipeline = ipu.pipeline(functions, micro_batches=MICRO_BATCHES, reduction="mean")

    def arguments() -> Any:
        weights = [[normal(WIDTH, WIDTH) / 16] * LAYERS] * stages
        return weights, normal(MICRO_BATCHES, ROWS, WIDTH)

    return (
        Workload("with stages", jax.value_and_grad(pipeline), arguments),
        Workload("without", accumulated, arguments),
    )


def measure(stages: int, rounds: int, sample: float) -> Iterator[Row]:
    """Both rows of a number of stages; the device has as many IPUs."""
    from tests.bench import timing, workload

    programs = _programs(stages)
    with_stages, without = (workload.on_devices(program, "ipu") for program in programs)
    compared = timing.compare(with_stages, without, max(rounds, MIN_ROUNDS), sample)
    yield _row(NAMES[stages], compared, RUN_BOUND)
    with_stages, without = (workload.compiling(program, "ipu") for program in programs)
    compared = timing.compare_once(with_stages, without, MIN_ROUNDS, COMPILE_BUDGET_SECONDS)
    yield _row(f"{NAMES[stages]}: compile", compared, COMPILE_BOUND)


def _row(name: str, compared: Any, bound: float) -> Row:
    with_stages, without, _ = compared
    shown = f"{compared.spread}; {seconds(with_stages)}, without stages {seconds(without)}"
    return Row(name, compared.ratio, bound, shown)


if __name__ == "__main__":
    for row in measure(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])):
        print(json.dumps(asdict(row)))
        sys.stdout.flush()
