"""Cycles that the model counts against cycles that others read off real IPUs (tests/data/*.csv).

The programs are compiled for a model of as many tiles as the measurement used, so that each tile
holds what it held there; nothing runs.
"""

from __future__ import annotations

import csv
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ipujax import config, jax_compat
from ipujax.cli.measure import source_tree
from ipujax.cli.measure.row import Row

BOUND = 0.05
#: The AMP measurements kept the weights' 16 x 16 block and float16 partials.
_AMP_SIZE = 16


def _points(name: str) -> list[dict[str, str]]:
    with source_tree.path(f"tests/data/{name}").open() as file:
        return list(csv.DictReader(file))


def compute_cycles(
    function: Callable[..., Any], *inputs: np.ndarray, machine: str, num_tiles: int
) -> float:
    """Cycles of the slowest tile over all compute sets of the compiled function, exchange aside."""
    from ipujax._poplar import _poplar
    from ipujax.compiler.compile import compile_module

    lowered = jax.jit(function).trace(*inputs).lower(lowering_platforms=("ipu",))
    settings = dataclasses.replace(config.MachineConfig(), machine=machine, num_tiles=num_tiles)
    platform = config.platform_options(config.IPUConfig(machine=settings))
    image = compile_module(jax_compat.serialize_artifact(lowered), b"", platform)
    cost = _poplar.engine.inspectImage(image)["cost"]
    return float(cost["compute_cycles"])


def _add(elements_per_tile: int, num_tiles: int) -> float:
    x = np.ones(elements_per_tile * num_tiles, np.float32)
    return compute_cycles(jnp.add, x, x, machine="bow", num_tiles=num_tiles)


def _row(name: str, pairs: list[tuple[str, float, float]]) -> Row:
    """The worst relative error over `(what, counted, measured)`."""
    errors = [abs(counted / measured - 1) for _, counted, measured in pairs]
    worst = int(np.argmax(errors))
    what, counted, measured = pairs[worst]
    detail = f"worst of {len(pairs)}: {what}, {counted:.0f} counted, {measured:.0f} measured"
    return Row(name, errors[worst], BOUND, detail)


def rows() -> Iterator[Row]:
    """One row for each kind of measurement."""
    elementwise = _points("elementwise_points.csv")
    counters = {"add": _add}
    for op, count in counters.items():
        pairs = []
        for point in elementwise:
            if point["op"] == op:
                each, tiles = int(point["elements_per_tile"]), int(point["num_tiles"])
                what = f"{each} elements on {tiles} tiles"
                pairs.append((what, count(each, tiles), float(point["measured_cycles"])))
        yield _row(f"cycles: {op} float32", pairs)
