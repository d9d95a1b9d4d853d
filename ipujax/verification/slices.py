"""Extracts pieces of a StableHLO module, with given values as results and parameters.

A piece is a new module with one function `main`. Calls are inlined first, so that the ops of a
program are in one block, and those of a loop's body in another.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func

from ipujax import jax_compat
from ipujax.compiler.composites import rewrite_composites
from ipujax.compiler.modules import functions_of, main_of, ops_in

#: Ops without operands, which are copied into a piece instead of becoming parameters.
_COPIED = frozenset({"stablehlo.constant", "stablehlo.iota"})
_WIDE = re.compile(r"[ui]64|f64")
_SYMBOL = re.compile(r'@"?([\w.$<>-]+)')


@dataclass(frozen=True, slots=True)
class Piece:
    """A module extracted from another one.

    Attributes:
        module: has one public function `main`.
        inputs: the values of the other module that are its parameters.
        ops: the ops of the other module that it contains, in order.
    """

    module: Any
    inputs: list[Any]
    ops: list[Any]

    @property
    def code(self) -> bytes:
        """Bytecode, with locations."""
        buffer = io.BytesIO()
        self.module.operation.write_bytecode(buffer)
        return buffer.getvalue()

    @property
    def text(self) -> str:
        return str(self.module)


def lower_calls(module: Any, legalise: bool = True) -> None:
    """Inlines calls, in place; with `legalise`, composites and CHLO become StableHLO too."""
    if legalise:
        rewrite_composites(module)
    composites = "func.func(stablehlo-legalize-composite-to-call,chlo-legalize-to-stablehlo)"
    jax_compat.run_passes(module, [composites] * legalise + ["inline", "symbol-dce"])


def main_block(module: Any) -> Any:
    """The only block of `main`, after inlining calls in place."""
    lower_calls(module, legalise=False)
    return main_of(module).regions[0].blocks[0]


def function_block(call: Any) -> Any:
    """The block of the called function."""
    name = call.attributes["callee"].value
    return functions_of(module_around(call))[name].regions[0].blocks[0]


def module_around(op: Any) -> Any:
    """The module that an op is in."""
    while op.operation.name != "builtin.module":
        op = op.operation.parent
    return op


def body_ops(block: Any) -> list[Any]:
    """All ops but the terminator."""
    return [op.operation for op in block.operations][:-1]


def returned(block: Any) -> list[Any]:
    """The values that the block returns."""
    return list(list(block.operations)[-1].operands)


def is_array(value: Any) -> bool:
    """Whether pieces can take and return it: not a token or a 64-bit type."""
    kind = str(value.type)
    return kind.startswith("tensor<") and not _WIDE.search(kind)


def is_argument(value: Any) -> bool:
    """Whether it is an argument of a block rather than the result of an op."""
    return isinstance(value.owner, ir.Block)


def piece(block: Any, results: Sequence[Any], cut: Callable[[Any], bool]) -> Piece:
    """The ops in `block` that `results` depend on, as a piece.

    Args:
        block: contains the ops; values from outside it become parameters.
        results: the values that `main` returns.
        cut: whether a value of the block becomes a parameter.
    """
    chosen, inputs = _needed(block, results, cut)
    outer = module_around(block.owner)
    with outer.operation.context, ir.Location.unknown():
        module = ir.Module.create()
        module.operation.attributes["sym_name"] = ir.StringAttr.get("piece")
        with ir.InsertionPoint(module.body):
            _copy_symbols(outer, chosen)
            kinds = ([v.type for v in inputs], [v.type for v in results])
            main = func.FuncOp("main", kinds, visibility="public")
        body = main.add_entry_block()
        known = dict(zip(inputs, body.arguments, strict=True))
        with ir.InsertionPoint(body):
            for op in chosen:
                copy = op.clone()
                _replace(copy, known)
                known.update(zip(op.results, copy.results, strict=True))
            func.ReturnOp([known[v] for v in results])
    return Piece(module, inputs, chosen)


def _needed(
    block: Any, results: Iterable[Any], cut: Callable[[Any], bool]
) -> tuple[list[Any], list[Any]]:
    """The ops that compute `results`, in order, and the values they start from."""
    position = {op.operation: k for k, op in enumerate(block.operations)}
    chosen: dict[int, Any] = {}
    inputs: list[Any] = []
    seen: set[Any] = set()
    # Results are computed even if they could be cut.
    work = [(value, True) for value in results]
    while work:
        value, is_result = work.pop()
        if value in seen:
            continue
        seen.add(value)
        op = None if is_argument(value) else value.owner.operation
        place = position.get(op) if op is not None else None
        if op is None or place is None or (not is_result and _is_cut(op, value, cut)):
            inputs.append(value)
        elif place not in chosen:
            chosen[place] = op
            # No result of a chosen op may become a parameter.
            seen.update(op.results)
            work += [(v, False) for v in used(op)]
    made = {value for op in chosen.values() for value in op.results}
    return [chosen[k] for k in sorted(chosen)], [v for v in inputs if v not in made]


def _is_cut(op: Any, value: Any, cut: Callable[[Any], bool]) -> bool:
    return op.name not in _COPIED and is_array(value) and cut(value)


def results_used_outside(operations: Sequence[Any]) -> list[Any]:
    """The results of these ops that other ops use, or ops in other ops' regions."""
    inside = set(operations)

    def is_inside(op: Any) -> bool:
        while op is not None:
            if op.operation in inside:
                return True
            op = op.operation.parent
        return False

    results = [value for op in operations for value in op.results]
    return [v for v in results if not all(is_inside(use.owner) for use in v.uses)]


def used(op: Any) -> Iterator[Any]:
    """The operands of an op, and the outside values that its regions use."""
    yield from op.operands
    inside = {v for region in op.regions for block in region.blocks for v in block.arguments}
    for inner in ops_in(op):
        inside.update(inner.results)
    for inner in ops_in(op):
        yield from (v for v in used(inner) if v not in inside)


def _replace(op: Any, known: dict[Any, Any]) -> None:
    for k, value in enumerate(op.operands):
        if value in known:
            op.operands[k] = known[value]
    for inner in ops_in(op):
        _replace(inner, known)


def _copy_symbols(module: Any, ops: Iterable[Any]) -> None:
    """Copies the functions and meshes that `ops` refer to, directly or indirectly."""
    functions = functions_of(module) | {
        op.attributes["sym_name"].value: op
        for op in ops_in(module.operation)
        if op.name == "sdy.mesh"
    }
    work, copied = [_symbols(op) for op in ops], set[str]()
    while work:
        for name in work.pop() & functions.keys() - copied:
            copied.add(name)
            functions[name].clone()
            work.append(_symbols(functions[name]))


def _symbols(op: Any) -> set[str]:
    """The symbols in the op's text, which may be functions."""
    text = str(op)
    return set(_SYMBOL.findall(text)) if "@" in text else set()
