"""Custom calls that say how their dimensions correspond.

Calls of `ipu.ops` and `ipu.nn` say it in their configuration. JAX attaches Shardy's rule to its own
calls, such as factorisations, whose leading dimensions are batches:

    custom_call @lapack_sgetrf_ffi(%0) {sdy.sharding_rule = ([i, j, k])->([i, l, m], [i, n], [i])}
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import sdy

from ipujax.compiler.modules import ops_named
from ipujax.compiler.partition.factors import Dims, Factors, bring_operands, shard, sharded
from ipujax.compiler.partition.localise import Localiser
from ipujax.compiler.partition.mesh import Layout, block_size

RULE = "sdy.sharding_rule"
REDUCED = "reduction_dim"


class Numbered(NamedTuple):
    """A number for each dimension of each array; None if it is whole on every device.

    Attributes:
        summed: for each result, the operand dimensions over whose blocks it is summed.
        block_starts: whether the call needs to know where its block begins.
    """

    operands: list[list[int | None]]
    results: list[list[int | None]]
    summed: list[frozenset[int]]
    block_starts: bool = False


def numbered(operation: Any) -> Numbered | None:
    """The dimension numbers that a custom call gives; None if it gives none."""
    config = _configuration(operation)
    if REDUCED in config:
        return _beside(operation, config[REDUCED])
    if config.get("dimensions"):
        operands, results = config["dimensions"]
        count = config.get("own_operands") or 0
        summed = []
        for index, each in enumerate(results):
            own = operands[index * count : (index + 1) * count] if count else operands
            given = {n for dims in own for n in dims if n is not None}
            summed.append(frozenset(given - set(each)))
        return Numbered(operands, results, summed, bool(config.get("block_starts")))
    if RULE in operation.attributes:
        return _numbered_by_rule(sdy.OpShardingRuleAttr(operation.attributes[RULE]))
    return None


def _configuration(operation: Any) -> dict[str, Any]:
    """The parameters that this package wrote, or the dimension that approx_max_k reduces."""
    attributes = operation.attributes
    for name in ("mhlo.backend_config", "backend_config"):
        if name in attributes and isinstance(attributes[name], ir.DictAttr):
            config = ir.DictAttr(attributes[name])
            if "config" in config and isinstance(config["config"], ir.StringAttr):
                found: dict[str, Any] = json.loads(config["config"].value)
                return found
            if REDUCED in config:
                return {REDUCED: ir.IntegerAttr(config[REDUCED]).value}
    return {}


def _beside(operation: Any, reduced: int) -> Numbered:
    """For scalars, and arrays that have the same dimensions, one of them whole."""
    rank = len(operation.results[0].type.shape)
    dims = [None if d == reduced else d for d in range(rank)]
    operands = [list(dims) if value.type.shape else [] for value in operation.operands]
    count = len(operation.results)
    return Numbered(operands, [dims] * count, [frozenset()] * count)


def _numbered_by_rule(rule: Any) -> Numbered:
    """From Shardy's factors: those that operands and all results share, and reduced ones."""
    operands, results = (
        [
            [
                sdy.DimMappingAttr(dim).factor_indices
                for dim in sdy.TensorMappingAttr(each).dim_mappings
            ]
            for each in mappings
        ]
        for mappings in (rule.operand_mappings, rule.result_mappings)
    )
    summed = frozenset(rule.reduction_factors)
    given = {n for each in operands for dim in each for n in dim}
    shared = given.intersection(*({n for dim in each for n in dim} for each in results))
    usable = (shared | summed) - {*rule.need_replication_factors, *rule.permutation_factors}

    def of(dims: list[list[int]]) -> list[int | None]:
        return [dim[0] if len(dim) == 1 and dim[0] in usable else None for dim in dims]

    return Numbered(
        [of(each) for each in operands], [of(each) for each in results], [summed] * len(results)
    )


def name_dimensions(module: Any) -> None:
    """Adds Shardy's rule to each call that has none."""
    for operation in ops_named(module.operation, "stablehlo.custom_call"):
        dims = numbered(operation)
        if dims is not None and RULE not in operation.attributes:
            operation.attributes[RULE] = ir.Attribute.parse(_rule(dims, operation))


def _names() -> Iterator[str]:
    """Shardy's names of factors, which have to appear in this order."""
    yield from "ijklmnopqrstuvwxyz"
    yield from (f"z_{n}" for n in itertools.count(1))


def _rule(dims: Numbered, operation: Any) -> str:
    """Shardy's rule; dimensions that are whole everywhere have unique names and are replicated."""
    free = _names()
    names: dict[int, str] = {}
    sizes: dict[str, int] = {}
    whole: list[str] = []
    texts = []
    arrays = [*dims.operands, *dims.results]
    for each, value in zip(arrays, [*operation.operands, *operation.results], strict=True):
        found = []
        for number, size in zip(each, value.type.shape, strict=True):
            if number is None:
                name = next(free)
                whole.append(name)
            else:
                name = names.get(number) or next(free)
                names[number] = name
            sizes[name] = size
            found.append(name)
        texts.append("[" + ", ".join(found) + "]")
    kept = {n for each in dims.results for n in each}
    summed = [name for n, name in names.items() if n not in kept]
    kinds = f" reduction={{{', '.join(summed)}}}" if summed else ""
    kinds += f" need_replication={{{', '.join(whole)}}}" if whole else ""
    listed = ", ".join(f"{name}={size}" for name, size in sizes.items())
    operands = ", ".join(texts[: len(dims.operands)])
    results = ", ".join(texts[len(dims.operands) :])
    return f"#sdy.op_sharding_rule<({operands})->({results}) {{{listed}}}{kinds}, custom>"


def localise_op(localiser: Localiser, operation: Any, dims: Numbered) -> None:
    """Makes the call local; results are summed over the devices of their summed dimensions."""
    operands: list[Dims] = list(dims.operands)
    summed = frozenset[int]().union(*dims.summed)
    fills = [0] * len(operands) if summed else None
    factors = Factors(operands, dims.results, summed, fills=fills, summed=dims.summed)
    mesh, axes = shard(localiser, operation, factors)
    bring_operands(localiser, operation, factors, mesh, axes)
    if RULE in operation.attributes:
        del operation.attributes[RULE]
    if mesh is None:
        return
    pairs = zip(dims.results, dims.summed, strict=True)
    for result, (each, added) in zip(operation.results, pairs, strict=True):
        over = tuple(d for n in sorted(added) for d in axes.get(n, ()))
        localiser.set(result, sharded(mesh, each, axes, over))
    if dims.block_starts:
        _add_starts(localiser, operation, sharded(mesh, dims.results[0], axes))


def _add_starts(localiser: Localiser, operation: Any, layout: Layout | None) -> None:
    """Adds a last operand: where the device's block of the only result begins."""
    if layout is None:
        return
    shape = localiser.shape(operation.results[0])
    starts = [
        layout.mesh.values(axes) * block_size(size, axes)
        for size, axes in zip(shape, layout.dims, strict=True)
    ]
    operands = [*operation.operands, localiser.emit.by_device(np.stack(starts, 1))]
    given = operation.attributes
    attributes = {name: given[name] for name in given if not name.endswith("_layouts")}
    made = localiser.emit.op(
        "stablehlo.custom_call", [operation.results[0].type], operands, attributes
    )
    localiser.replace(operation, made.results[0])
