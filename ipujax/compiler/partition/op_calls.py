"""Custom calls of `ipu.ops` and `ipu.nn`, which say how their dimensions correspond."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import numpy as np
from jaxlib.mlir import ir

from ipujax.compiler.modules import ops_named
from ipujax.compiler.partition.factors import Dims, Factors, bring_operands, shard, sharded
from ipujax.compiler.partition.localise import Localiser
from ipujax.compiler.partition.mesh import Layout, block_size

RULE = "sdy.sharding_rule"
#: Shardy's names of factors, which have to appear in this order.
_NAMES = (*"ijklmnopqrstuvwxyz", *(f"z_{n}" for n in range(1, 100)))


class Numbered(NamedTuple):
    """As `Dimensions.numbered` writes it, and whether blocks have to know where they begin."""

    operands: list[list[int | None]]
    results: list[list[int | None]]
    block_starts: bool


def numbered(operation: Any) -> Numbered | None:
    """What a custom call says of its dimensions; None where it says nothing."""
    attributes = operation.attributes
    for name in ("mhlo.backend_config", "backend_config"):
        if name in attributes and isinstance(attributes[name], ir.DictAttr):
            config = ir.DictAttr(attributes[name])
            if "config" in config and isinstance(config["config"], ir.StringAttr):
                given = json.loads(config["config"].value)
                if not given.get("dimensions"):
                    return None
                operands, results = given["dimensions"]
                return Numbered(operands, results, bool(given.get("block_starts")))
    return None


def name_dimensions(module: Any) -> None:
    """Writes Shardy's rule beside each such call."""
    for operation in ops_named(module.operation, "stablehlo.custom_call"):
        dims = numbered(operation)
        if dims is not None:
            operation.attributes[RULE] = ir.Attribute.parse(_rule(dims, operation))


def _rule(dims: Numbered, operation: Any) -> str:
    """Dimensions that are whole everywhere have names of their own, and are replicated."""
    free = iter(_NAMES)
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
    """Results that lack a dimension of the operands are added up over its devices."""
    operands: list[Dims] = list(dims.operands)
    given = {n for each in operands for n in each if n is not None}
    summed = frozenset(n for n in given if any(n not in each for each in dims.results))
    fills = [0] * len(operands) if summed else None
    factors = Factors(operands, dims.results, summed, fills=fills)
    mesh, axes = shard(localiser, operation, factors)
    bring_operands(localiser, operation, factors, mesh, axes)
    if RULE in operation.attributes:
        del operation.attributes[RULE]
    if mesh is None:
        return
    for result, each in zip(operation.results, dims.results, strict=True):
        over = tuple(d for n in sorted(summed - set(each)) for d in axes.get(n, ()))
        localiser.set(result, sharded(mesh, each, axes, over))
    if dims.block_starts:
        _add_starts(localiser, operation, sharded(mesh, dims.results[0], axes))


def _add_starts(localiser: Localiser, operation: Any, layout: Layout | None) -> None:
    """A last operand: where the device's block of the only result begins."""
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
