"""Maps arguments to tiles: where `ipu.tile` puts them, or as the planner of their first matrix
product wants them.

Only the mapping is adopted: memory stays row-major, so that callers' arrays are bound without a
copy. Arguments that a product sees transposed, and all others, are spread evenly.
"""

from __future__ import annotations

from collections.abc import Iterator

from ipujax.compiler.dtypes import DTYPES
from ipujax.compiler.ir import Block, Op, Program, Value, walk_ops
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules import tile
from ipujax.compiler.rules.builder import Builder
from ipujax.compiler.rules.dot_general import grouped_shape
from ipujax.compiler.rules.precision import product_options


def map_parameters(builder: Builder, program: Program) -> dict[Value, ipu.Tensor]:
    """Variables for arguments that are not spread evenly, by argument."""
    mapped = _put_on_tiles(builder, program)
    arguments = {
        value: parameter.name
        for value, parameter in zip(program.main.args, program.parameters, strict=True)
        if value.dtype in DTYPES and DTYPES[value.dtype].kind == "f" and value.num_elements
    }
    for op, (lhs, rhs) in _products(program.main, {}):
        if lhs in arguments or rhs in arguments:
            _allocate(builder, op, lhs, rhs, arguments, mapped)
    return mapped


def _put_on_tiles(builder: Builder, program: Program) -> dict[Value, ipu.Tensor]:
    """Variables for arguments that `ipu.tile.put_sharded` puts on tiles; the first call decides."""
    mapped: dict[Value, ipu.Tensor] = {}
    for op in program.main.ops:
        if tile.keeps_rows(op) and op.operands[0] in program.main.args:
            value = op.operands[0]
            if value not in mapped and DTYPES[value.dtype].poplar == DTYPES[value.dtype].stored:
                with builder.on(op.ipu):
                    mapped[value] = tile.argument(builder, op)
    return mapped


def _products(block: Block, outside: dict[Value, Value]) -> Iterator[tuple[Op, list[Value]]]:
    """Matrix products and their operands; functions' arguments become the values passed."""
    for op in walk_ops(block):
        if op.name == "dot_general":
            yield op, [outside.get(value, value) for value in op.operands]
        elif op.name == "call":
            function = op.attrs["function"]
            passed = [outside.get(value, value) for value in op.operands]
            yield from _products(function, dict(zip(function.args, passed, strict=True)))


def _allocate(
    builder: Builder,
    op: Op,
    lhs: Value,
    rhs: Value,
    arguments: dict[Value, str],
    mapped: dict[Value, ipu.Tensor],
) -> None:
    row = DTYPES[op.results[0].dtype]
    if lhs.dtype != rhs.dtype or lhs.dtype not in ("f16", "f32") or row.kind != "f" or row.wide:
        return
    shape, poplin = grouped_shape(op), ipu.poplin
    for value, order, create in (
        (lhs, shape.left_order, poplin.createMatMulGroupedInputLHS),
        (rhs, shape.right_order, poplin.createMatMulGroupedInputRHS),
    ):
        if value not in arguments or value in mapped or order != tuple(range(len(order))):
            continue
        with builder.at(value):
            operand = create(
                builder.graph,
                builder.type_of(value),
                builder.type_of(op.results[0]),
                shape.left,
                shape.right,
                ipu.poplar.DebugContext(arguments[value], op.source.line),
                product_options(builder, op),
                builder.plans,
            )
        mapped[value] = operand.reshape(list(value.shape))
