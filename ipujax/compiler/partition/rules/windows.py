"""Ops along some dimensions, which stay whole; all others can be sharded."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxlib.mlir import ir

from ipujax.compiler.elements import elements
from ipujax.compiler.ir.traits import traits_of
from ipujax.compiler.partition.emit import numbers_of
from ipujax.compiler.partition.factors import localise_beside
from ipujax.compiler.partition.localise import Localiser, localises, replicate


@localises("along")
def along(localiser: Localiser, operation: Any) -> None:
    """Dimensions that the op's attributes name stay whole."""
    attributes, row = operation.attributes, traits_of(operation.name)
    if row.collective and len(operation.operands) != 1:
        replicate(localiser, operation)
        return
    whole: list[int] = []
    for attribute in (attributes[name] for name in row.along):
        is_one = isinstance(attribute, ir.IntegerAttr)
        whole += [attribute.value] if is_one else ir.DenseI64ArrayAttr(attribute)
    moves = operation.name in ("stablehlo.concatenate", "stablehlo.reverse")
    linear = range(len(operation.operands)) if moves else ()
    localise_beside(localiser, operation, whole, linear)


@localises("chlo.top_k")
def top_k(localiser: Localiser, operation: Any) -> None:
    _last_whole(localiser, operation, 1)


@localises("fft")
def fft(localiser: Localiser, operation: Any) -> None:
    _last_whole(localiser, operation, len(numbers_of(operation, "fft_length")))


@localises("matrices")
def matrices(localiser: Localiser, operation: Any) -> None:
    """Linear algebra on the last two dimensions."""
    _last_whole(localiser, operation, 2)


def _last_whole(localiser: Localiser, operation: Any, count: int) -> None:
    rank = len(localiser.shape(operation.results[0]))
    localise_beside(localiser, operation, range(rank - count, rank))


@localises("windows")
def windows(localiser: Localiser, operation: Any) -> None:
    """reduce_window and select_and_scatter: dimensions without a window can be sharded."""
    attributes = operation.attributes
    moved: set[int] = set()
    for name in ("window_dimensions", "window_strides", "base_dilations", "window_dilations"):
        if name in attributes:
            moved |= {d for d, number in enumerate(numbers_of(operation, name)) if number != 1}
    if "padding" in attributes:
        padding = np.asarray(elements(attributes["padding"])).reshape(-1, 2)
        moved |= {d for d, both in enumerate(padding) if both.any()}
    localise_beside(localiser, operation, moved)
