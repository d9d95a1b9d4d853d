"""Keys for parts of a program: equal keys mean equal results from equal inputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from types import SimpleNamespace
from typing import Any

import numpy as np

from ipujax.compiler.elements import first
from ipujax.compiler.ir import Block, Op, Value
from ipujax.compiler.rounding_streams import ROUNDING, SALT


@dataclass(slots=True)
class Part:
    """Some ops of a block, in its order."""

    block: Block
    ops: list[Op]
    key: tuple[Any, ...]
    inputs: list[Value]  #: from outside, by first use; no constants

    def made(self) -> list[Value]:
        """The results of its ops; equal parts have them in the same order."""
        return [value for op in self.ops for value in op.results]


class Structures:
    """Makes keys; remembers the constants and attributes that it has read."""

    def __init__(self) -> None:
        self._constants: dict[int, tuple[Any, Any]] = {}
        self._attributes: dict[int, tuple[Any, Any]] = {}

    def part(self, block: Block, ops: list[Op]) -> Part:
        """The ops with their joint key, which includes how values flow between ops."""
        reading = _Reading(self)
        key = reading.ops(ops)
        return Part(block, ops, key, reading.inputs)

    def op(self, op: Op) -> tuple[Any, ...]:
        """The key of one op, regardless of where its operands come from."""
        return _Reading(self).ops([op])

    def constant(self, value: Value) -> Any:
        const = value.const
        assert const is not None
        if value.is_splat:
            return first(const).tobytes()
        known = self._constants.get(id(const))
        if known is None:
            digest = blake2b(np.ascontiguousarray(const).tobytes()).digest()
            known = self._constants[id(const)] = (const, digest)
        return known[1]

    def attributes(self, attrs: dict[str, Any]) -> Any:
        if not attrs:
            return ()
        items = ((name, item) for name, item in sorted(attrs.items()) if name != SALT)
        return tuple(
            (name, item[1:] if name == ROUNDING else self._frozen(item)) for name, item in items
        )

    def _frozen(self, item: Any) -> Any:
        if isinstance(item, (str, int, float, bool)):
            return item
        known = self._attributes.get(id(item))  # equal attributes of a module are one object
        if known is None:
            known = self._attributes[id(item)] = (item, self._read(item))
        return known[1]

    def _read(self, item: Any) -> Any:
        """An item by value; items that cannot be read by value only equal themselves."""
        if isinstance(item, (tuple, list)):
            return tuple(map(self._frozen, item))
        if isinstance(item, dict):
            return self.attributes(item)
        if isinstance(item, SimpleNamespace):
            return self.attributes(vars(item))
        if isinstance(item, np.ndarray):
            return item.shape, item.dtype.str, item.tobytes()
        return item if item is None or isinstance(item, bytes) else id(item)


class _Reading:
    """Reads ops in order and gives their values numbers."""

    def __init__(self, structures: Structures):
        self.structures = structures
        self.numbers: dict[Value, int] = {}
        self.inputs: list[Value] = []

    def ops(self, ops: Iterable[Op]) -> tuple[Any, ...]:
        return tuple(self._op(op) for op in ops)

    def _op(self, op: Op) -> tuple[Any, ...]:
        key = (
            op.name,
            self.structures.attributes(op.attrs),
            op.ipu,
            op.source.options,
            tuple(map(self._use, op.operands)),
            tuple(map(self._region, op.regions)),
            tuple((value.shape, value.dtype, value.ipu) for value in op.results),
        )
        self._define(op.results)
        return key

    def _region(self, region: Block) -> tuple[Any, ...]:
        self._define(region.args)
        arguments = tuple((value.shape, value.dtype, value.ipu) for value in region.args)
        return arguments, self.ops(region.ops), tuple(map(self._use, region.results))

    def _define(self, values: Iterable[Value]) -> None:
        for value in values:
            self.numbers[value] = len(self.numbers)

    def _use(self, value: Value) -> Any:
        if value.const is not None:
            return value.shape, value.dtype, self.structures.constant(value)
        number = self.numbers.get(value)
        if number is None:
            self._define([value])
            self.inputs.append(value)
            return len(self.inputs) - 1, value.shape, value.dtype, value.ipu
        return number
