"""Local shapes: the global program, with a layout for every value, becomes one device's program.

Ops are changed in place: operands are converted to the layouts that the op's rule requires, and
result types become those of blocks. How a value is actually sharded follows from the rules;
Shardy's attributes are only requests. So a rule that supports less than Shardy assumed costs time,
but never changes results.

    %1 = dot_general %x, %w {sdy.sharding = [{"a"}, {}]} : (8x8, 8x4) -> 8x4       before
    %1 = dot_general %x, %w : (4x8, 8x4) -> 4x4                                    after
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jaxlib.mlir import ir

from ipujax.compiler.ir.traits import traits_of
from ipujax.compiler.partition.emit import Emitter, tensor_type
from ipujax.compiler.partition.mesh import Layout, Mesh, Shape, SubAxes, dims_of, is_even
from ipujax.compiler.partition.reshard import reshard
from ipujax.compiler.partition.shardings import SHARDING, Manual, Shardings
from ipujax.compiler.reader import TERMINATORS

Rule = Callable[["Localiser", Any], None]

#: How ops are made local, by kind: the name of the one op of that kind, or `Traits.partition`.
KINDS: dict[str, Rule] = {}


def localises(*kinds: str, always: bool = False) -> Callable[[Rule], Rule]:
    """Registers a function `(localiser, operation)` for these kinds.

    Args:
        always: also for ops whose operands and results every device has whole; else they stay.
    Raises:
        TypeError: a kind has one already.
    """

    def register(function: Rule) -> Rule:
        def of_blocks(localiser: Localiser, operation: Any) -> None:
            if not localiser.is_whole(operation):
                function(localiser, operation)

        for kind in kinds:
            if kind in KINDS:
                raise TypeError(
                    f"[partition] needs one rule per kind; got a second one for {kind!r} in "
                    f"{function.__module__}. Remove one of them."
                )
            KINDS[kind] = function if always else of_blocks
        return function

    return register


class Partial(NamedTuple):
    """What is still to be combined over the devices that differ in `axes`."""

    mesh: Mesh
    axes: SubAxes
    kind: str


class Info(NamedTuple):
    """Of a value: the whole tensor's shape, how it is sharded, what is still to be combined."""

    shape: Shape
    layout: Layout | None
    partial: Partial | None = None


class Localiser:
    """Makes one module local.

    Attributes:
        emit: writes new ops before the one at hand.
        manual: the axes of the manual computations around the op at hand.
    """

    def __init__(self, shardings: Shardings, num_devices: int, block: Any):
        self.shardings = shardings
        self.num_devices = num_devices
        self.manual: Manual = frozenset()
        self.emit = Emitter(block)
        # Values that are not here are whole, on every device.
        self._infos: dict[Any, Info] = {}
        self._moved: list[dict[Any, Any]] = []
        # (op, what its results are, block arguments that its operands are)
        self._renamed: list[tuple[Any, list[Any], list[Any]]] = []

    # Blocks --------------------------------------------------------------------------------------

    def run(self, block: Any, wanted: Sequence[Layout | None]) -> None:
        """All ops of a block; its arguments are known already.

        Args:
            wanted: the layouts of what the block returns.
        """
        self._moved.append({})
        for op in list(block.operations):
            operation = op.operation
            if operation.name not in TERMINATORS:
                self.apply(operation)
                continue
            self.emit.at = operation
            self.require_each(operation, wanted)
            break
        self._moved.pop()

    def apply(self, operation: Any) -> None:
        """Makes one op local by its rule."""
        self.emit.at = operation
        kind = operation.name.removeprefix("stablehlo.")
        rule = KINDS.get(kind) or KINDS.get(traits_of(kind).partition, replicate)
        rule(self, operation)

    def finish(self) -> None:
        """Erases ops that only renamed values; the last ones first, so that none has users."""
        for operation, values, arguments in reversed(self._renamed):
            for result, value in zip(operation.results, values, strict=True):
                result.replace_all_uses_with(value)
            for argument, operand in zip(arguments, operation.operands, strict=False):
                argument.replace_all_uses_with(operand)
            operation.erase()
        self._renamed.clear()
        self.emit.finish()

    # Values --------------------------------------------------------------------------------------

    def info(self, value: Any) -> Info | None:
        """None for what is whole on every device."""
        return self._infos.get(value)

    def layout(self, value: Any) -> Layout | None:
        info = self._infos.get(value)
        return info.layout if info is not None else None

    def shape(self, value: Any) -> Shape:
        """The whole tensor's shape; () for tokens."""
        info = self._infos.get(value)
        return info.shape if info is not None else shape_of(value)

    def set(self, value: Any, layout: Layout | None, partial: Partial | None = None) -> None:
        """Records what a value of global type is, and gives it the type of its block."""
        if layout is None and partial is None:
            return
        shape = shape_of(value)
        self._infos[value] = Info(shape, layout, partial)
        if layout is not None:
            value.set_type(tensor_type(layout.local(shape), value.type))

    def set_each(self, values: Sequence[Any], layouts: Sequence[Layout | None]) -> None:
        """The same for several values."""
        for value, layout in zip(values, layouts, strict=True):
            self.set(value, layout)

    def adopt(self, value: Any, info: Info | None) -> None:
        """Records what a value of local type is."""
        if info is not None and (info.layout is not None or info.partial is not None):
            self._infos[value] = info

    def rename(self, operation: Any, values: Sequence[Any]) -> None:
        """The results of the op are these values; the op is erased at the end."""
        for result, value in zip(operation.results, values, strict=True):
            self.adopt(result, self._infos.get(value))
            if result.type != value.type:
                result.set_type(value.type)
        self._renamed.append((operation, list(values), []))

    def splice(self, operation: Any, block: Any) -> None:
        """The ops of the block replace the op; infos of results are set already."""
        *ops, terminator = [op.operation for op in block.operations]
        for op in ops:
            op.move_before(operation)
        values, arguments = list(terminator.operands), list(block.arguments)
        self._renamed.append((operation, values, arguments))

    def substitute(
        self,
        operation: Any,
        value: Any,
        layout: Layout | None,
        partial: Partial | None = None,
    ) -> None:
        """Another value, of local type, replaces the op's only result."""
        result = operation.results[0]
        self.adopt(value, Info(shape_of(result), layout, partial))
        result.replace_all_uses_with(value)
        operation.erase()

    def replace(self, operation: Any, value: Any) -> None:
        """The same for an op whose result was made local already."""
        result = operation.results[0]
        # A value that comes later may be stored where this one was.
        self.adopt(value, self._infos.pop(result, None))
        result.replace_all_uses_with(value)
        operation.erase()

    def take_as(self, value: Any, target: Layout | None) -> Any:
        """The value in another layout, combined; written before the op at hand."""
        info = self._infos.get(value)
        if info is None:
            if target is None:
                return value
            info = Info(shape_of(value), None)
        elif info.partial is None and info.layout == target:
            return value
        key = (value, target)
        for moved in reversed(self._moved):
            if key in moved:
                return moved[key]
        if info.partial is not None:
            made = self._combine(value, info, info.partial, target)
        else:
            made = self._again(value, info, target)
            if made is None:
                made = reshard(self.emit, value, info.shape, info.layout, target)
        self.adopt(made, Info(info.shape, target))
        self._moved[-1][key] = made
        return made

    def _again(self, value: Any, info: Info, target: Layout | None) -> Any:
        """A splat is written once more, in the other shape; None for other values."""
        owner = value.owner
        if isinstance(owner, ir.Block):
            return None
        owner = owner.operation
        if owner.name not in ("stablehlo.broadcast_in_dim", "stablehlo.constant"):
            return None
        shape = target.local(info.shape) if target is not None else info.shape
        if owner.name == "stablehlo.broadcast_in_dim":
            scalar = owner.operands[0]
            if shape_of(scalar) or scalar in self._infos:
                return None
            return self.emit.broadcast(scalar, shape)
        if isinstance(value.type.element_type, ir.ComplexType):
            return None
        return self.emit.resplat(owner.attributes["value"], shape)

    def _combine(self, value: Any, info: Info, partial: Partial, target: Layout | None) -> Any:
        """All-reduces, or reduce-scatters where each device then keeps only a block."""
        scattered = _scattered(info, partial, target)
        groups = partial.mesh.groups(partial.axes)
        if scattered is not None:
            return self.emit.reduce_scatter(value, partial.kind, scattered, groups)
        made = self.emit.all_reduce(value, partial.kind, groups)
        return reshard(self.emit, made, info.shape, info.layout, target)

    def require(self, operation: Any, index: int, target: Layout | None) -> None:
        """Converts an operand to a layout."""
        value = operation.operands[index]
        made = self.take_as(value, target)
        if made is not value:
            operation.operands[index] = made

    def require_each(self, operation: Any, targets: Sequence[Layout | None]) -> None:
        """Converts the first operands to these layouts."""
        for index, target in enumerate(targets):
            self.require(operation, index, target)

    def put(self, operation: Any, index: int, value: Any) -> None:
        """Replaces an operand by another value of the same layout."""
        self.adopt(value, self.info(operation.operands[index]))
        operation.operands[index] = value

    def declared(self, operation: Any) -> list[Layout | None]:
        """The layouts that Shardy wants the results to have."""
        attributes = operation.attributes
        results = operation.results
        if SHARDING not in attributes:
            return [None] * len(results)
        each = self.shardings.each(attributes[SHARDING])
        if len(each) != len(results):
            return [None] * len(results)
        return [
            self.shardings.layout(attr, shape_of(result), self.manual)
            for attr, result in zip(each, results, strict=True)
        ]

    def is_whole(self, operation: Any) -> bool:
        """Whether neither operands nor results are sharded: then there is nothing to do."""
        if SHARDING in operation.attributes and any(self.declared(operation)):
            return False
        infos = self._infos
        return not any(value in infos for value in operation.operands)

    def whole_captures(self, region: Any) -> None:
        """Makes outside values whole that the ops of a reducer or comparator use."""
        for block in region.blocks:
            for op in block.operations:
                self.require_each(op.operation, [None] * len(op.operation.operands))


def replicate(localiser: Localiser, operation: Any) -> None:
    """The rule of ops that have no other: every device works on whole tensors."""
    localiser.require_each(operation, [None] * len(operation.operands))
    for region in operation.regions:
        localiser.whole_captures(region)


def shape_of(value: Any) -> Shape:
    """The shape in the value's type; () where it is not a tensor."""
    shape = getattr(value.type, "shape", None)
    return tuple(shape) if shape is not None else ()


def _scattered(info: Info, partial: Partial, target: Layout | None) -> int | None:
    """The dimension along which `target` shards what is to be combined, and differs in no other.

    None where there is no such dimension, or its blocks have padding: they are not parts of
    larger blocks.
    """
    if target is None or target.mesh is not partial.mesh or 0 in info.shape:
        return None
    have = dims_of(info.layout, len(target.dims))
    found = None
    for dim, (old, new) in enumerate(zip(have, target.dims, strict=True)):
        if old == new:
            continue
        if found is not None or new != (*old, *partial.axes):
            return None
        if not is_even(info.shape[dim], new):
            return None
        found = dim
    return found
