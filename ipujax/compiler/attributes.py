"""MLIR attributes as plain Python values, each distinct attribute read once."""

from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import numpy as np
from jaxlib.mlir.dialects import stablehlo

from ipujax.compiler.dtypes import DTYPES

#: Attributes that say nothing the compiler uses, or that stage 2 has used up.
DROPPED = frozenset(
    {"sdy.sharding", "mhlo.sharding", "result_accuracy", "mhlo.layout_mode", "sdy.sharding_rule"}
)

_DIMENSION_NUMBERS = {
    "#stablehlo.gather<": (
        stablehlo.GatherDimensionNumbers,
        (
            "offset_dims",
            "collapsed_slice_dims",
            "operand_batching_dims",
            "start_indices_batching_dims",
            "start_index_map",
            "index_vector_dim",
        ),
    ),
    "#stablehlo.scatter<": (
        stablehlo.ScatterDimensionNumbers,
        (
            "update_window_dims",
            "inserted_window_dims",
            "input_batching_dims",
            "scatter_indices_batching_dims",
            "scattered_dims_to_operand_dims",
            "index_vector_dim",
        ),
    ),
    "#stablehlo.dot<": (
        stablehlo.DotDimensionNumbers,
        (
            "lhs_batching_dimensions",
            "rhs_batching_dimensions",
            "lhs_contracting_dimensions",
            "rhs_contracting_dimensions",
        ),
    ),
    "#stablehlo.conv<": (
        stablehlo.ConvDimensionNumbers,
        (
            "input_batch_dimension",
            "input_feature_dimension",
            "input_spatial_dimensions",
            "kernel_input_feature_dimension",
            "kernel_output_feature_dimension",
            "kernel_spatial_dimensions",
            "output_batch_dimension",
            "output_feature_dimension",
            "output_spatial_dimensions",
        ),
    ),
}


class Attributes:
    """Converts attributes of one module. Attributes are unique in their context: equal is same."""

    def __init__(self) -> None:
        self._known: dict[Any, Any] = {}

    def of(self, operation: Any) -> dict[str, Any]:
        """All attributes of an op by name, without those that are dropped."""
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
        for prefix, (read, names) in _DIMENSION_NUMBERS.items():
            if text.startswith(prefix):
                typed = read(attribute)
                return SimpleNamespace(**{name: _plain(getattr(typed, name)) for name in names})
        enum = re.fullmatch(r"#stablehlo<\w+ (\w+)>", text)
        return enum[1] if enum else text


def _plain(item: Any) -> Any:
    return item if isinstance(item, int) else tuple(item)


def elements(attribute: Any) -> np.ndarray:
    """The elements of a dense attribute; a splat has stride 0 in every dimension."""
    try:
        array = np.asarray(attribute)
    except TypeError:
        if str(attribute.type.element_type) != "bf16":
            # Of a type that is refused later, where all such ops are known.
            return np.broadcast_to(np.zeros((), np.uint8), tuple(attribute.type.shape))
        array = _bfloat16_elements(attribute)
    if array.size and not any(array.strides):
        return np.broadcast_to(np.array(array.flat[0]), array.shape)
    # The buffer belongs to the MLIR context, which dies before the program does.
    return np.array(array)


def _bfloat16_elements(attribute: Any) -> np.ndarray:
    """NumPy has no buffer format for bfloat16, so these are read from the attribute's text."""
    dtype = DTYPES["bf16"].numpy
    shape = tuple(attribute.type.shape)
    text = str(attribute)
    body = text[text.index("<") + 1 : text.rindex("> :")]
    if attribute.is_splat:
        return np.broadcast_to(_bfloat16(body), shape)
    if body.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(body[3:-1]), dtype).reshape(shape)
    numbers = [_bfloat16(token) for token in re.findall(r"[-+.\w]+", body)]
    return np.array(numbers, dtype).reshape(shape)


def _bfloat16(token: str) -> np.ndarray:
    dtype = DTYPES["bf16"].numpy
    if token.startswith("0x"):
        return np.array(int(token, 16), np.uint16).view(dtype)
    return np.array(float(token), np.float32).astype(dtype)
