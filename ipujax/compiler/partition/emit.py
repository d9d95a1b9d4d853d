"""Writes StableHLO ops into the module: collectives, and values that depend on the device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from jaxlib.mlir import ir


def tensor_type(shape: Sequence[int], like: Any) -> Any:
    """A tensor type with the element type of `like`."""
    return ir.RankedTensorType.get(list(shape), like.element_type, loc=ir.Location.unknown())


def numbers_of(operation: Any, name: str) -> list[int]:
    """Reads an attribute that is an array of numbers."""
    return list(ir.DenseI64ArrayAttr(operation.attributes[name]))


def set_numbers(operation: Any, name: str, numbers: Sequence[int]) -> None:
    """Writes an attribute that is an array of numbers."""
    operation.attributes[name] = ir.DenseI64ArrayAttr.get(list(numbers))


class Emitter:
    """Writes ops before `at`, with its location. Values by device are written once, at the start.

    Args:
        block: the body of `main`.
    """

    def __init__(self, block: Any):
        self.at = next(iter(block.operations)).operation
        self._block: Any = None  #: if not None, ops are written at its end instead
        zero = np.zeros((), np.int64)
        # Marks the place; it has no users and is erased at the end.
        self._start = self.constant(zero, ir.IntegerType.get_signless(32)).owner
        self._numbers: dict[Any, Any] = {}

    def op(
        self,
        name: str,
        types: Sequence[Any],
        operands: Sequence[Any] = (),
        attributes: dict[str, Any] | None = None,
        regions: int = 0,
    ) -> Any:
        return ir.Operation.create(
            name,
            results=list(types),
            operands=list(operands),
            attributes=attributes or {},
            regions=regions,
            loc=self.at.location,
            ip=ir.InsertionPoint(self.at if self._block is None else self._block),
        )

    def one(self, name: str, result: Any, operands: Sequence[Any], **attributes: Any) -> Any:
        """An op with one result of type `result`."""
        return self.op(name, [result], operands, attributes).results[0]

    @contextmanager
    def at_end_of(self, block: Any) -> Iterator[None]:
        """Inside, ops are written at the end of that block."""
        self._block = block
        try:
            yield
        finally:
            self._block = None

    def finish(self) -> None:
        self._start.erase()

    # Plain values --------------------------------------------------------------------------------

    def constant(self, values: np.ndarray, element_type: Any) -> Any:
        """Integers or floats as a constant of the given element type."""
        result = ir.RankedTensorType.get(list(values.shape), element_type)
        items = [_scalar(element_type, value) for value in values.reshape(-1).tolist()]
        if len(set(items)) == 1:
            attr = ir.DenseElementsAttr.get_splat(result, items[0])
        else:
            attr = ir.DenseElementsAttr.get(items, result)
        return self.one("stablehlo.constant", result, [], value=attr)

    def filled(self, number: int, kind: Any) -> Any:
        """One number in every element of a tensor of type `kind`."""
        value = self.constant(np.asarray(number), kind.element_type)
        return self.broadcast(value, kind.shape) if kind.shape else value

    def zeros(self, shape: Sequence[int], like: Any) -> Any:
        """Zeros with the element type of `like`."""
        element = like.element_type
        if not isinstance(element, ir.ComplexType):
            return self.filled(0, tensor_type(shape, like))
        part = self.filled(0, ir.RankedTensorType.get(list(shape), element.element_type))
        return self.one("stablehlo.complex", tensor_type(shape, like), [part, part])

    def resplat(self, attr: Any, shape: Sequence[int]) -> Any:
        """A splat constant in another shape, or None if it is not a splat."""
        if not isinstance(attr, ir.DenseElementsAttr) or not attr.is_splat:
            return None
        result = tensor_type(shape, attr.type)
        value = ir.DenseElementsAttr.get_splat(result, attr.get_splat_value())
        return self.one("stablehlo.constant", result, [], value=value)

    def broadcast(self, value: Any, shape: Sequence[int]) -> Any:
        """Broadcasts a scalar to every element."""
        return self.spread(value, shape, ())

    def spread(self, value: Any, shape: Sequence[int], dims: Sequence[int]) -> Any:
        """broadcast_in_dim: the value's dimensions become `dims` of the shape."""
        return self.one(
            "stablehlo.broadcast_in_dim",
            tensor_type(shape, value.type),
            [value],
            broadcast_dimensions=ir.DenseI64ArrayAttr.get(list(dims)),
        )

    def take(self, value: Any, dim: int, start: int, limit: int) -> Any:
        """The elements [start, limit) of a dimension."""
        shape = list(value.type.shape)
        starts, limits = [0] * len(shape), list(shape)
        starts[dim], limits[dim] = start, limit
        shape[dim] = limit - start
        return self.one(
            "stablehlo.slice",
            tensor_type(shape, value.type),
            [value],
            start_indices=ir.DenseI64ArrayAttr.get(starts),
            limit_indices=ir.DenseI64ArrayAttr.get(limits),
            strides=ir.DenseI64ArrayAttr.get([1] * len(shape)),
        )

    def pad_with_last(self, value: Any, dim: int, size: int) -> Any:
        """Makes a dimension longer by repeating its last element."""
        shape = list(value.type.shape)
        have, shape[dim] = shape[dim], size - shape[dim]
        last = self.take(value, dim, have - 1, have)
        more = self.spread(last, shape, range(len(shape)))
        shape[dim] = size
        result = tensor_type(shape, value.type)
        return self.one("stablehlo.concatenate", result, [value, more], dimension=_i64(dim))

    def count(self, dim: int, shape: Sequence[int], element_type: Any = None) -> Any:
        """0, 1, 2, ... along a dimension; int32 by default."""
        element_type = element_type or ir.IntegerType.get_signless(32)
        counted = ir.RankedTensorType.get(list(shape), element_type)
        return self.one("stablehlo.iota", counted, [], iota_dimension=_i64(dim))

    def reshape(self, value: Any, shape: Sequence[int]) -> Any:
        return self.one("stablehlo.reshape", tensor_type(shape, value.type), [value])

    # By device number ----------------------------------------------------------------------------

    def by_device(self, values: np.ndarray, element_type: Any = None) -> Any:
        """`values[partition_id]`: a scalar, or a row of a matrix; int32 by default."""
        element_type = element_type or ir.IntegerType.get_signless(32)
        if (values == values[0]).all():
            return self.constant(np.asarray(values[0]), element_type)
        key = (values.tobytes(), values.shape, element_type)
        known = self._numbers.get(key)
        if known is None:
            here, self.at = self.at, self._start
            known = self._numbers[key] = self._by_device(values, element_type)
            self.at = here
        return known

    def _by_device(self, values: np.ndarray, element_type: Any) -> Any:
        number = self._numbers.get("partition_id")
        if number is None:
            unsigned = ir.RankedTensorType.get([], ir.IntegerType.get_unsigned(32))
            number = self.one("stablehlo.partition_id", unsigned, [])
            signed = ir.RankedTensorType.get([], ir.IntegerType.get_signless(32))
            number = self._numbers["partition_id"] = self.one("stablehlo.convert", signed, [number])
        table = self.constant(values, element_type)
        row = values.shape[1:]
        starts = [number, *(self.by_device(np.zeros(1, np.int64)) for _ in row)]
        return self.reshape(self.dynamic_slice(table, starts, (1, *row)), row)

    def is_device(self, chosen: np.ndarray) -> Any:
        """A scalar i1: whether `chosen` marks this device."""
        number = self.by_device(np.asarray(chosen, np.int64))
        one = self.constant(np.asarray(1), ir.IntegerType.get_signless(32))
        return self.compare("EQ", number, one)

    def select(self, predicate: Any, on_true: Any, on_false: Any) -> Any:
        return self.one("stablehlo.select", on_true.type, [predicate, on_true, on_false])

    def compare(self, direction: str, lhs: Any, rhs: Any) -> Any:
        context = lhs.type.context
        attr = ir.Attribute.parse(f"#stablehlo<comparison_direction {direction}>", context)
        bit = ir.IntegerType.get_signless(1)
        return self.one(
            "stablehlo.compare",
            ir.RankedTensorType.get(lhs.type.shape, bit),
            [lhs, rhs],
            comparison_direction=attr,
        )

    def dynamic_slice(self, value: Any, starts: Sequence[Any], sizes: Sequence[int]) -> Any:
        return self.one(
            "stablehlo.dynamic_slice",
            tensor_type(sizes, value.type),
            [value, *starts],
            slice_sizes=ir.DenseI64ArrayAttr.get(list(sizes)),
        )

    # Collectives ---------------------------------------------------------------------------------

    def all_gather(self, value: Any, dim: int, groups: np.ndarray) -> Any:
        shape = list(value.type.shape)
        shape[dim] *= groups.shape[1]
        return self.one(
            "stablehlo.all_gather",
            tensor_type(shape, value.type),
            [value],
            all_gather_dim=_i64(dim),
            **_grouped(groups, global_ids=True),
        )

    def all_reduce(self, value: Any, kind: str, groups: np.ndarray) -> Any:
        attributes = _grouped(groups, True)
        return self._combining("stablehlo.all_reduce", value.type, value, kind, attributes)

    def reduce_scatter(self, value: Any, kind: str, dim: int, groups: np.ndarray) -> Any:
        shape = list(value.type.shape)
        shape[dim] //= groups.shape[1]
        attributes = {"scatter_dimension": _i64(dim), **_grouped(groups, True)}
        result = tensor_type(shape, value.type)
        return self._combining("stablehlo.reduce_scatter", result, value, kind, attributes)

    def all_to_all(self, value: Any, split: int, concat: int, groups: np.ndarray) -> Any:
        shape, count = list(value.type.shape), groups.shape[1]
        shape[split] //= count
        shape[concat] *= count
        return self.one(
            "stablehlo.all_to_all",
            tensor_type(shape, value.type),
            [value],
            split_dimension=_i64(split),
            concat_dimension=_i64(concat),
            split_count=_i64(count),
            **_grouped(groups, False),
        )

    def permute(self, value: Any, pairs: np.ndarray) -> Any:
        attributes = _grouped(pairs, False)
        attributes["source_target_pairs"] = attributes.pop("replica_groups")
        return self.one("stablehlo.collective_permute", value.type, [value], **attributes)

    def broadcast_from(self, value: Any, groups: np.ndarray) -> Any:
        """The value of the first device of each group, on all of it."""
        attributes = _grouped(groups, False)
        return self.one("stablehlo.collective_broadcast", value.type, [value], **attributes)

    def _combining(
        self, name: str, result: Any, value: Any, kind: str, attributes: dict[str, Any]
    ) -> Any:
        """A collective whose body combines two elements by the op `kind`."""
        op = self.op(name, [result], [value], attributes, regions=1)
        scalar = ir.RankedTensorType.get([], value.type.element_type)
        location = self.at.location
        block = op.regions[0].blocks.append(scalar, scalar, arg_locs=[location, location])
        with self.at_end_of(block):
            combined = self.one(f"stablehlo.{kind}", scalar, list(block.arguments))
            self.op("stablehlo.return", [], [combined])
        return op.results[0]


def _i64(value: int) -> Any:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), value)


def _grouped(groups: np.ndarray, global_ids: bool) -> dict[str, Any]:
    """Groups as JAX writes them: with a channel, the ids are those of partitions."""
    attributes = {
        "replica_groups": ir.DenseIntElementsAttr.get(np.ascontiguousarray(groups, np.int64)),
        "channel_handle": ir.Attribute.parse("#stablehlo.channel_handle<handle = 1, type = 1>"),
    }
    if global_ids:
        attributes["use_global_device_ids"] = ir.UnitAttr.get()
    return attributes


def _scalar(element_type: Any, value: float) -> Any:
    if isinstance(element_type, ir.IntegerType):
        return ir.IntegerAttr.get(element_type, int(value))
    return ir.FloatAttr.get(element_type, float(value))
