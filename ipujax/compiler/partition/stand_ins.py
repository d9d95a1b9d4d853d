"""Renames composites with rules for propagation: Shardy does not know them.

%1 = composite "chlo.erf" %0 {decomposition = @erf_impl}                             before
%1 = custom_call @chlo.erf(%0) {sdy.sharding_rule = ([i, j])->([i, j])}       for Shardy
%1 = chlo.erf %0                                                                      after
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir

from ipujax import jax_compat
from ipujax.compiler.composites import COMPOSITE, PREFIX, is_op, name_of
from ipujax.compiler.modules import ops_named, target_of
from ipujax.compiler.partition.shardings import SHARDING
from ipujax.compiler.partition.shift import can_shift
from ipujax.compiler.rules.registry import RULES
from ipujax.compiler.sources import METADATA

SLICE = "stablehlo.dynamic_slice"
ATTRIBUTES = "ipu.attributes"
_LETTERS = "ijklmnopqrstuvwxyz"


def name_slices(module: Any) -> None:
    """Renames slices with one element in some dimension; such dimensions count as summed over."""
    for operation in ops_named(module.operation, SLICE):
        shape = list(operation.operands[0].type.shape)
        taken = list(operation.results[0].type.shape)
        rule = _slice_rule(shape, taken)
        if rule is not None and can_shift(operation, 1):
            sizes = {"slice_sizes": operation.attributes["slice_sizes"]}
            attributes = {
                "call_target_name": ir.StringAttr.get(SLICE),
                "sdy.sharding_rule": ir.Attribute.parse(rule),
                ATTRIBUTES: ir.DictAttr.get(sizes),
            }
            _replace(operation, "stablehlo.custom_call", attributes)


def _slice_rule(shape: list[int], taken: list[int]) -> str | None:
    single = [d for d, size in enumerate(taken) if size == 1 and shape[d] > 1]
    if not single or len(shape) * 2 > len(_LETTERS):
        return None
    letters, result = list(_LETTERS[: len(shape)]), []
    sizes, whole = dict(zip(letters, shape, strict=True)), []
    for d, size in enumerate(taken):
        if size == shape[d]:
            result.append(letters[d])
            continue
        own = _LETTERS[len(sizes)]
        result.append(own)
        sizes[own] = size
        whole += [own] if d in single else [letters[d], own]
    operands = ", ".join([_dims(letters), *["[]"] * len(shape)])
    summed = ", ".join(letters[d] for d in single)
    kinds = f" reduction={{{summed}}} need_replication={{{', '.join(sorted(whole))}}}"
    return _rule(operands, _dims(result), sizes, kinds)


def is_stand_in(operation: Any) -> bool:
    """Whether a custom call was written here."""
    target = target_of(operation)
    return target == SLICE or target.startswith(PREFIX)


def name_composites(module: Any) -> None:
    """Turns composites into custom calls, or calls of their decompositions."""
    left = False
    for operation in ops_named(module.operation, COMPOSITE):
        name = name_of(operation)
        rule = _sharding_rule(name, operation) if is_op(operation, RULES.__contains__) else None
        if rule is None:
            left = True
            continue
        attributes = {
            "call_target_name": ir.StringAttr.get(name),
            "sdy.sharding_rule": ir.Attribute.parse(rule),
        }
        if "composite_attributes" in operation.attributes:
            attributes[ATTRIBUTES] = operation.attributes["composite_attributes"]
        _replace(operation, "stablehlo.custom_call", attributes)
    if left:
        jax_compat.run_passes(module, ["func.func(stablehlo-legalize-composite-to-call)"])


def as_op(operation: Any) -> Any:
    """Restores the op that such a custom call replaced."""
    given = operation.attributes.get(ATTRIBUTES)
    attributes = {item.name: item.attr for item in given} if given is not None else {}
    return _replace(operation, target_of(operation), attributes)


def _replace(operation: Any, name: str, attributes: dict[str, Any]) -> Any:
    for kept in (METADATA, SHARDING):
        if kept in operation.attributes:
            attributes[kept] = operation.attributes[kept]
    made = ir.Operation.create(
        name,
        results=[result.type for result in operation.results],
        operands=list(operation.operands),
        attributes=attributes,
        loc=operation.location,
        ip=ir.InsertionPoint(operation),
    )
    for old, new in zip(operation.results, made.results, strict=True):
        old.replace_all_uses_with(new)
    operation.erase()
    return made


def _sharding_rule(name: str, operation: Any) -> str | None:
    """Shardy's rule for an op that is elementwise or works along the last dimension."""
    shape = list(operation.operands[0].type.shape)
    if len(shape) >= len(_LETTERS):
        return None
    letters = list(_LETTERS[: len(shape)])
    sizes = dict(zip(letters, shape, strict=True))
    result, whole = letters, ""
    if name == "chlo.top_k":
        found = _LETTERS[len(shape)]
        result = [*letters[:-1], found]
        sizes[found] = operation.results[0].type.shape[-1]
        whole = f" need_replication={{{letters[-1]}, {found}}}"
    results = ",".join([_dims(result)] * len(operation.results))
    return _rule(_dims(letters), results, sizes, whole)


def _rule(operands: str, results: str, sizes: dict[str, int], kinds: str) -> str:
    listed = ", ".join(f"{letter}={size}" for letter, size in sizes.items())
    return f"#sdy.op_sharding_rule<({operands})->({results}) {{{listed}}}{kinds}, custom>"


def _dims(letters: Sequence[str]) -> str:
    return "[" + ", ".join(letters) + "]"
