"""Ops along some dimensions, which stay whole; all others can be dealt."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from ipujax.compiler.elements import elements
from ipujax.compiler.partition.factors import Dims, Factors, localise
from ipujax.compiler.partition.localise import Localiser


def _along(rank: int, whole: Iterable[int]) -> Dims:
    whole = set(whole)
    return tuple(None if d in whole else d for d in range(rank))


def _same_dims(localiser: Localiser, operation: Any, whole: Iterable[int]) -> None:
    """All tensors have the same dimensions; scalars have none."""
    rank = len(localiser.shape(operation.results[0]))
    dims = _along(rank, whole)
    operands = [dims if localiser.shape(value) else () for value in operation.operands]
    localise(localiser, operation, Factors(operands, [dims] * len(operation.results)))


def sort(localiser: Localiser, operation: Any) -> None:
    if not localiser.is_whole(operation):
        _same_dims(localiser, operation, [ir.IntegerAttr(operation.attributes["dimension"]).value])


def top_k(localiser: Localiser, operation: Any) -> None:
    if not localiser.is_whole(operation):
        _same_dims(localiser, operation, [len(localiser.shape(operation.results[0])) - 1])


def fft(localiser: Localiser, operation: Any) -> None:
    if not localiser.is_whole(operation):
        rank = len(localiser.shape(operation.results[0]))
        length = len(ir.DenseI64ArrayAttr(operation.attributes["fft_length"]))
        _same_dims(localiser, operation, range(rank - length, rank))


def matrices(localiser: Localiser, operation: Any) -> None:
    """Linear algebra on the last two dimensions."""
    if not localiser.is_whole(operation):
        rank = len(localiser.shape(operation.results[0]))
        _same_dims(localiser, operation, (rank - 2, rank - 1))


def windows(localiser: Localiser, operation: Any) -> None:
    """reduce_window and select_and_scatter: dimensions without a window can be dealt."""
    if localiser.is_whole(operation):
        return
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
    _same_dims(localiser, operation, moved)


RULES = {
    "chlo.top_k": top_k,
    "stablehlo.sort": sort,
    "stablehlo.fft": fft,
    "stablehlo.cholesky": matrices,
    "stablehlo.triangular_solve": matrices,
    "stablehlo.reduce_window": windows,
    "stablehlo.select_and_scatter": windows,
}
