"""Ops along some dimensions, which stay whole; all others can be dealt."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxlib.mlir import ir

from ipujax.compiler.elements import elements
from ipujax.compiler.ir.traits import traits_of
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
    localise_beside(localiser, operation, whole)


@localises("chlo.top_k")
def top_k(localiser: Localiser, operation: Any) -> None:
    localise_beside(localiser, operation, [len(localiser.shape(operation.results[0])) - 1])


@localises("fft")
def fft(localiser: Localiser, operation: Any) -> None:
    rank = len(localiser.shape(operation.results[0]))
    length = len(ir.DenseI64ArrayAttr(operation.attributes["fft_length"]))
    localise_beside(localiser, operation, range(rank - length, rank))


@localises("matrices")
def matrices(localiser: Localiser, operation: Any) -> None:
    """Linear algebra on the last two dimensions."""
    rank = len(localiser.shape(operation.results[0]))
    localise_beside(localiser, operation, (rank - 2, rank - 1))


@localises("windows")
def windows(localiser: Localiser, operation: Any) -> None:
    """reduce_window and select_and_scatter: dimensions without a window can be dealt."""
    attributes = operation.attributes
    window = list(ir.DenseI64ArrayAttr(attributes["window_dimensions"]))
    moved = {d for d, size in enumerate(window) if size != 1}
    for name in ("window_strides", "base_dilations", "window_dilations"):
        if name in attributes:
            numbers = ir.DenseI64ArrayAttr(attributes[name])
            moved |= {d for d, number in enumerate(numbers) if number != 1}
    if "padding" in attributes:
        padding = np.asarray(elements(attributes["padding"])).reshape(-1, 2)
        moved |= {d for d, both in enumerate(padding) if both.any()}
    localise_beside(localiser, operation, moved)
