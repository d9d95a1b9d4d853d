"""Programs as text, for dumps and tests."""

from __future__ import annotations

from ipujax.compiler.ir.program import Block, Op, Program, Value


def to_text(program: Program) -> str:
    """The program as text: one op per line."""
    names: dict[Value, str] = {}
    functions = program.functions

    def name(value: Value) -> str:
        if value.const is not None:
            if value.is_splat:
                scalar = value.const.reshape(-1)[0] if value.const.size else "empty"
                return f"{scalar}:{value.dtype}"
            return f"const{value!r}"
        return names.setdefault(value, f"%{len(names)}")

    def shown(key: str, item: object) -> str:
        if isinstance(item, Op):
            return item.name
        if isinstance(item, Block):
            return f"{key}={functions.index(item)}"
        if isinstance(item, list) and item and isinstance(item[0], Op):
            return f"{key}=[" + ", ".join(op.name for op in item) + "]"
        return f"{key}={item}"

    lines: list[str] = []

    def write(block: Block, depth: int) -> None:
        pad = "  " * depth
        arguments = ", ".join(f"{name(a)}: {a!r}" for a in block.args)
        lines.append(f"{pad}({arguments})")
        for op in block.ops:
            left = ", ".join(f"{name(r)}: {r!r}" for r in op.results)
            attrs = ", ".join(shown(k, v) for k, v in op.attrs.items() if not k.startswith("_"))
            right = ", ".join(name(v) for v in op.operands)
            where = f"  // {op.source.name} {op.source.line}" if op.source.name else ""
            lines.append(f"{pad}  {left} = {op.name}({right}) {{{attrs}}}{where}")
            for region in op.regions:
                write(region, depth + 2)
        lines.append(f"{pad}  return {', '.join(name(v) for v in block.results)}")

    lines.append(f"program {program.name} alias={program.output_alias}")
    write(program.main, 0)
    for index, function in enumerate(functions):
        lines.append(f"function {index}")
        write(function, 0)
    return "\n".join(lines) + "\n"
