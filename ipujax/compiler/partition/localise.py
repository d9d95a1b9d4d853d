"""Turns the global program, with a layout for every value, into one device's program.

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

from ipujax.compiler.elements import elements
from ipujax.compiler.ir.fold import identity_of
from ipujax.compiler.ir.traits import traits_of
from ipujax.compiler.partition.emit import Emitter, tensor_type
from ipujax.compiler.partition.mesh import Layout, Shape
from ipujax.compiler.partition.reshard import reshard
from ipujax.compiler.partition.shardings import SHARDING, Manual, Shardings
from ipujax.compiler.reader import TERMINATORS

Rule = Callable[["Localiser", Any], None]

#: Rules that make ops local, by kind: the name of an op, or its `Traits.partition`.
KINDS: dict[str, Rule] = {}


def localises(*kinds: str, always: bool = False) -> Callable[[Rule], Rule]:
    """Registers a function `(localiser, operation)` for these kinds.

    Args:
        always: also for ops without sharded operands or results; else such ops stay unchanged.
    Raises:
        TypeError: a kind has a rule already.
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


class Info(NamedTuple):
    """The shape of the whole tensor, and how it is sharded."""

    shape: Shape
    layout: Layout | None


class Localiser:
    """Makes one module local.

    Attributes:
        emit: writes new ops before the current op.
        manual: the axes of the manual computations around the current op.
    """

    def __init__(self, shardings: Shardings, num_devices: int, block: Any):
        self.shardings = shardings
        self.num_devices = num_devices
        self.manual: Manual = frozenset()
        self.emit = Emitter(block)
        # Values without an entry are whole on every device.
        self._infos: dict[Any, Info] = {}
        self._moved: list[dict[Any, Any]] = []
        # (op, values that replace its results, block arguments that its operands replace)
        self._renamed: list[tuple[Any, list[Any], list[Any]]] = []

    # Blocks --------------------------------------------------------------------------------------

    def run(self, block: Any, wanted: Sequence[Layout | None]) -> None:
        """Makes all ops of a block local; the infos of its arguments are set already.

        Args:
            wanted: the layouts of the block's results.
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
        """None for values that are whole on every device."""
        return self._infos.get(value)

    def layout(self, value: Any) -> Layout | None:
        info = self._infos.get(value)
        return info.layout if info is not None else None

    def shape(self, value: Any) -> Shape:
        """The whole tensor's shape; () for tokens."""
        info = self._infos.get(value)
        return info.shape if info is not None else shape_of(value)

    def set(self, value: Any, layout: Layout | None) -> None:
        """Records the layout of a value of global type, and gives it the type of its block."""
        if layout is not None:
            shape = shape_of(value)
            self._infos[value] = Info(shape, layout)
            value.set_type(tensor_type(layout.local(shape), value.type))

    def set_each(self, values: Sequence[Any], layouts: Sequence[Layout | None]) -> None:
        """The same for several values."""
        for value, layout in zip(values, layouts, strict=True):
            self.set(value, layout)

    def adopt(self, value: Any, info: Info | None) -> None:
        """Records the info of a value of local type."""
        if info is not None and info.layout is not None:
            self._infos[value] = info

    def rename(self, operation: Any, values: Sequence[Any]) -> None:
        """Replaces the results of the op by these values; `finish` erases the op."""
        for result, value in zip(operation.results, values, strict=True):
            self.adopt(result, self._infos.get(value))
            if result.type != value.type:
                result.set_type(value.type)
        self._renamed.append((operation, list(values), []))

    def splice(self, operation: Any, block: Any) -> None:
        """Replaces the op by the ops of the block; the infos of its results are set already."""
        *ops, terminator = [op.operation for op in block.operations]
        for op in ops:
            op.move_before(operation)
        values, arguments = list(terminator.operands), list(block.arguments)
        self._renamed.append((operation, values, arguments))

    def substitute(self, operation: Any, value: Any, layout: Layout | None) -> None:
        """Replaces the op's only result by a value of local type."""
        result = operation.results[0]
        self.adopt(value, Info(shape_of(result), layout))
        result.replace_all_uses_with(value)
        operation.erase()

    def replace(self, operation: Any, value: Any) -> None:
        """The same for an op whose result was made local already."""
        result = operation.results[0]
        # A later value may get this one's address, and so its key.
        self.adopt(value, self._infos.pop(result, None))
        result.replace_all_uses_with(value)
        operation.erase()

    def take_as(self, value: Any, target: Layout | None) -> Any:
        """The value in another layout; written before the current op."""
        info = self._infos.get(value) or Info(shape_of(value), None)
        if info.layout == target:
            return value
        key = (value, target)
        for moved in reversed(self._moved):
            if key in moved:
                return moved[key]
        made = self._again(value, info, target)
        if made is None:
            made = reshard(self.emit, value, info.shape, info.layout, target)
        self.adopt(made, Info(info.shape, target))
        self._moved[-1][key] = made
        return made

    def _again(self, value: Any, info: Info, target: Layout | None) -> Any:
        """Writes a splat again in the other shape; None for other values."""
        owner = value.owner
        if isinstance(owner, ir.Block):
            return None
        owner = owner.operation
        if owner.name not in ("stablehlo.broadcast_in_dim", "stablehlo.constant"):
            return None
        if target is not None and target.unreduced and not is_neutral(value, "add"):
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
        """Makes whole the outside values that ops of a reducer or comparator use."""
        for block in region.blocks:
            for op in block.operations:
                self.require_each(op.operation, [None] * len(op.operation.operands))


def replicate(localiser: Localiser, operation: Any) -> None:
    """The rule for ops without their own: every device works on whole tensors."""
    localiser.require_each(operation, [None] * len(operation.operands))
    for region in operation.regions:
        localiser.whole_captures(region)


def shape_of(value: Any) -> Shape:
    """The shape in the value's type; () if it is not a tensor."""
    shape = getattr(value.type, "shape", None)
    return tuple(shape) if shape is not None else ()


def is_neutral(value: Any, kind: str) -> bool:
    """Whether a value is a constant that is neutral for the op."""
    owner = value.owner
    if isinstance(owner, ir.Block):
        return False
    owner = owner.operation
    if owner.name == "stablehlo.broadcast_in_dim":
        return is_neutral(owner.operands[0], kind)
    if owner.name != "stablehlo.constant":
        return False
    if isinstance(value.type.element_type, ir.ComplexType):
        return False
    found = elements(owner.attributes["value"]).reshape(-1)
    if found.size == 0 or (found != found[0]).any():
        return False
    return bool(found[0] == identity_of(kind, found.dtype))
