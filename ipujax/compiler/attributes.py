"""Converts MLIR attributes to plain Python values; reads each distinct attribute once."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

from jaxlib.mlir.dialects import stablehlo

from ipujax.compiler.elements import elements
from ipujax.compiler.sources import METADATA
from ipujax.jax_compat import PARTITIONED

#: Attributes that the compiler does not use, or that stage 2 has consumed.
DROPPED = frozenset(
    {
        "sdy.sharding",
        "mhlo.sharding",
        "result_accuracy",
        "mhlo.layout_mode",
        "sdy.sharding_rule",
        METADATA,
        PARTITIONED,
    }
)

_DIMENSION_NUMBERS = {
    "#stablehlo.gather<": stablehlo.GatherDimensionNumbers,
    "#stablehlo.scatter<": stablehlo.ScatterDimensionNumbers,
    "#stablehlo.dot<": stablehlo.DotDimensionNumbers,
    "#stablehlo.conv<": stablehlo.ConvDimensionNumbers,
}


class Attributes:
    """Converts attributes of one module. Equal attributes of a context are the same object."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def of(self, operation: Any) -> dict[str, Any]:
        """All attributes of an op by name, except `DROPPED`."""
        found = {}
        known = self._known
        attributes = operation.attributes
        for key in attributes:
            attribute = attributes[key]
            try:
                found[key] = known[attribute]
            except KeyError:
                if key in DROPPED:
                    continue
                found[key] = known[attribute] = self._convert(attribute)
        return found

    def _convert(self, attribute: Any) -> Any:
        kind = type(attribute).__name__
        if kind in ("DenseI64ArrayAttr", "DenseI32ArrayAttr", "DenseBoolArrayAttr"):
            return tuple(attribute)
        if kind in ("IntegerAttr", "BoolAttr", "StringAttr", "FloatAttr", "FlatSymbolRefAttr"):
            return attribute.value
        if kind == "ArrayAttr":
            return [self._convert(item) for item in attribute]
        if kind == "DictAttr":
            return {item.name: self._convert(item.attr) for item in attribute}
        if kind in ("DenseIntElementsAttr", "DenseFPElementsAttr", "DenseElementsAttr"):
            return elements(attribute)
        return self._convert_dialect(attribute)

    def _convert_dialect(self, attribute: Any) -> Any:
        text = str(attribute)
        for prefix, kind in _DIMENSION_NUMBERS.items():
            if text.startswith(prefix):
                names = [name for name, item in vars(kind).items() if isinstance(item, property)]
                typed = kind(attribute)
                return SimpleNamespace(**{name: _plain(getattr(typed, name)) for name in names})
        enum = re.fullmatch(r"#stablehlo<\w+ (\w+)>", text)
        return enum[1] if enum else text


def _plain(item: Any) -> Any:
    return item if isinstance(item, int) else tuple(item)
