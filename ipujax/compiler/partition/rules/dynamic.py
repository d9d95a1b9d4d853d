"""Slices that begin where numbers say that are known when the program runs."""

from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

from ipujax.compiler.partition.factors import Dims, Factors, count, localise
from ipujax.compiler.partition.localise import Localiser
from ipujax.compiler.partition.mesh import Digits, Shape


def dynamic_slice(localiser: Localiser, operation: Any) -> None:
    """A dimension that is taken whole can be dealt: it begins at 0 whatever the start says."""
    if localiser.is_whole(operation):
        return
    before = localiser.shape(operation.operands[0])
    dims = _kept(before, localiser.shape(operation.results[0]))
    starts: list[Dims] = [()] * (len(operation.operands) - 1)
    localise(localiser, operation, Factors([dims, *starts], [dims]), _local_sizes)


def _local_sizes(localiser: Localiser, operation: Any, digits: dict[int, Digits]) -> None:
    sizes = list(ir.DenseI64ArrayAttr(operation.attributes["slice_sizes"]))
    local = [size // count(digits.get(d, ())) for d, size in enumerate(sizes)]
    operation.attributes["slice_sizes"] = ir.DenseI64ArrayAttr.get(local)


def dynamic_update_slice(localiser: Localiser, operation: Any) -> None:
    if localiser.is_whole(operation):
        return
    whole = localiser.shape(operation.operands[0])
    dims = _kept(whole, localiser.shape(operation.operands[1]))
    starts: list[Dims] = [()] * (len(operation.operands) - 2)
    localise(localiser, operation, Factors([dims, dims, *starts], [dims]))


def _kept(before: Shape, after: Shape) -> Dims:
    return tuple(d if b == a else None for d, (b, a) in enumerate(zip(before, after, strict=True)))


RULES = {
    "stablehlo.dynamic_slice": dynamic_slice,
    "stablehlo.dynamic_update_slice": dynamic_update_slice,
}
