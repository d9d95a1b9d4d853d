"""Decides which composites stay ops and which are read as their decompositions.

jaxlib expands most CHLO ops when it serialises a program; the others become composites. It
writes the decomposition of a scan as if `is_reverse` were false, so reverse scans are rewritten:
Before:  %1:2 = composite "chlo.scan" %x, %init {is_reverse}
After:   %2 = reverse(%x)
         %3:2 = composite "chlo.scan" %2, %init
         %1:2 = reverse(%3:0), %3:1
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxlib.mlir import ir

from ipujax.compiler.ir.traits import TRAITS
from ipujax.compiler.modules import ops_named
from ipujax.compiler.sources import Sources
from ipujax.errors import UnsupportedOpError
from ipujax.jax_compat import COMPLEX_PREFIX

COMPOSITE = "stablehlo.composite"
PREFIX = "chlo."
SCAN = "chlo.scan"
_OWN = frozenset({"name", "decomposition", "version", "composite_attributes"})

#: CHLO ops compiled from their decompositions. tests/compiler/test_chlo.py checks each.
DECOMPOSED = frozenset({"chlo.mulhi", "chlo.ragged_dot", SCAN})

#: CHLO ops for which passes/complex.py has formulas.
_COMPLEX = frozenset({"chlo.cosh", "chlo.sinh"})
_WIDE = ("f64>", "i64>")


def name_of(operation: Any) -> str:
    """The composite's own name, such as "chlo.erf"."""
    return str(ir.StringAttr(operation.attributes["name"]).value)


def is_op(operation: Any, has_rule: Callable[[str], bool]) -> bool:
    """Whether the composite is an op with a rule; 64-bit top_k and most complex ops have none.

    Names without CHLO's prefix are the user's own.

    Raises:
        UnsupportedOpError: it is a CHLO op whose decomposition no test has checked.
    """
    name = name_of(operation)
    if not name.startswith(PREFIX) or name in DECOMPOSED:
        return False
    if name not in TRAITS:
        line = Sources().of(operation).line
        raise UnsupportedOpError([(name, "it is newer than the ops of CHLO known here", line)])
    types = [str(value.type) for value in operation.operands]
    if any("complex<" in text for text in types) and name not in _COMPLEX:
        return False
    is_wide = name == "chlo.top_k" and any(text.endswith(_WIDE) for text in types)
    return has_rule(name) and not is_wide


def rewrite_composites(module: Any) -> None:
    """Rewrites reverse scans as forward scans, and restores ops that composites stand for."""
    with module.context:
        for operation in ops_named(module.operation, COMPOSITE):
            name = name_of(operation)
            if name == SCAN:
                given = operation.attributes["composite_attributes"]
                _turn(operation, {item.name: item.attr for item in given})
            elif name.startswith(COMPLEX_PREFIX):
                _restore(operation, name.removeprefix(COMPLEX_PREFIX))


def _restore(composite: Any, name: str) -> None:
    """Replaces the composite by its op, and keeps its scopes and shardings."""
    attributes = composite.attributes
    said = {name: attributes[name] for name in attributes if name not in _OWN}
    made = ir.Operation.create(
        f"stablehlo.{name}",
        results=[composite.results[0].type],
        operands=list(composite.operands),
        attributes=said,
        loc=composite.location,
        ip=ir.InsertionPoint(composite),
    )
    composite.results[0].replace_all_uses_with(made.results[0])
    composite.erase()


def _turn(scan: Any, given: dict[str, Any]) -> None:
    """Reverses the scanned operands and results, which come first, along the scan's dimension."""
    is_reverse = given.pop("is_reverse", None)
    if is_reverse is None or not ir.BoolAttr(is_reverse).value:
        return
    scan.attributes["composite_attributes"] = ir.DictAttr.get(given)
    along = ir.DenseI64ArrayAttr.get([ir.IntegerAttr(given["dimension"]).value])

    def turned(value: Any, place: Any) -> Any:
        return ir.Operation.create(
            "stablehlo.reverse",
            results=[value.type],
            operands=[value],
            attributes={"dimensions": along},
            loc=scan.location,
            ip=place,
        )

    for index in range(ir.DenseI32ArrayAttr(given["operandSegmentSizes"])[0]):
        reverse = turned(scan.operands[index], ir.InsertionPoint(scan))
        scan.operands[index] = reverse.results[0]
    for index in range(ir.DenseI32ArrayAttr(given["resultSegmentSizes"])[0]):
        result = scan.results[index]
        reverse = turned(result, ir.InsertionPoint.after(scan))
        result.replace_all_uses_except(reverse.results[0], reverse)
