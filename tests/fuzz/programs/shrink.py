"""Makes a failing program small: values become arguments, zeros or each other; the rest goes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from tests.fuzz.programs.program import Program, plain

Fails = Callable[[Program], bool]


def shrunk(program: Program, fails: Fails, most: int = 400) -> Program:
    """The smallest program that still fails, found in a limited number of tries."""
    tries = 0
    progress = True
    while progress:
        progress = False
        for smaller in candidates(program):
            tries += 1
            if tries > most:
                return program
            if _still(smaller, fails):
                program, progress = smaller, True
                break
    return program


def _still(program: Program, fails: Fails) -> bool:
    try:
        return fails(program)
    except Exception:  # not a program any more
        return False


def candidates(program: Program) -> Iterator[Program]:
    """Smaller programs, the smallest first."""
    alive = ast.unparse(_alive(ast.parse(program.source))) + "\n"
    if len(alive) < len(program.source):
        yield replace(program, source=alive)
    yield from _fewer_results(program)
    if program.donated:
        yield replace(program, donated=())
    tree = ast.parse(program.source)
    for name in reversed(_assigned(tree)):
        for value in _substitutes(program, name):
            source = _without(program.source, name, value)
            if source is not None and len(source) < len(program.source):
                yield replace(program, source=source)
    yield from _promoted(program)
    yield from _fewer_arguments(program)
    yield from _plain_arguments(program)


def _fewer_results(program: Program) -> Iterator[Program]:
    """Half of the results, then one less."""
    count = len(program.exact)
    top = _program(ast.parse(program.source))
    last = top.body[-1]
    if not isinstance(last, ast.Return) or not isinstance(last.value, ast.Tuple) or count < 2:
        return
    for keep in (range(count // 2), range(count // 2, count), *_all_but_one(count)):
        tree = ast.parse(program.source)
        result = _program(tree).body[-1]
        assert isinstance(result, ast.Return)
        assert isinstance(result.value, ast.Tuple)
        result.value.elts = [result.value.elts[k] for k in keep]
        exact = [program.exact[k] for k in keep]
        yield replace(program, source=ast.unparse(_alive(tree)) + "\n", exact=exact)


def _all_but_one(count: int) -> list[list[int]]:
    return [[k for k in range(count) if k != gone] for gone in range(count)]


def _program(tree: ast.Module) -> ast.FunctionDef:
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    return function


def _assigned(tree: ast.AST) -> list[str]:
    """Names that simple assignments give, in order."""
    return [
        node.targets[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    ] + [
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple)
        for name in ast.walk(node.targets[0])
        if isinstance(name, ast.Name)
    ]


def _substitutes(program: Program, name: str) -> list[str]:
    """What could stand for a value: earlier ones of its type, or a constant."""
    if name not in program.types:
        return []
    shape, dtype = program.types[name]
    kind = "bool_" if dtype == "bool" else dtype
    same = [
        other
        for other, type_ in program.types.items()
        if type_ == (shape, dtype) and other != name and int(other[1:]) < int(name[1:] or 0)
    ]
    return [*same[:3], f"jnp.ones({shape}, jnp.{kind})"]


def _without(source: str, name: str, value: str) -> str | None:
    """The source with uses of a name replaced, and unused code removed."""
    tree = ast.parse(source)
    replacement = ast.parse(value, mode="eval").body

    class Replace(ast.NodeTransformer):
        count = 0

        def visit_Name(self, node: ast.Name) -> ast.expr:
            if node.id == name and isinstance(node.ctx, ast.Load):
                self.count += 1
                return replacement
            return node

    replacing = Replace()
    tree = replacing.visit(tree)
    return ast.unparse(_alive(tree)) + "\n" if replacing.count else None


def _alive(tree: ast.Module) -> ast.Module:
    """Removes unused assignments and functions until none is left."""
    removed = True
    while removed:
        removed = False
        used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and _loads(n)}
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if not isinstance(body, list) or node is tree:
                continue
            kept = [line for line in body if _needed(line, used)]
            removed |= len(kept) < len(body)
            node.body = kept  # type: ignore[attr-defined]
    return tree


def _loads(name: ast.Name) -> bool:
    return isinstance(name.ctx, ast.Load)


def _needed(line: ast.stmt, used: set[str]) -> bool:
    if isinstance(line, ast.FunctionDef):
        return line.name in used
    if isinstance(line, ast.Assign):
        return any(n.id in used for t in line.targets for n in ast.walk(t) if hasattr(n, "id"))
    return True


def _promoted(program: Program) -> Iterator[Program]:
    """A value of the outermost lines becomes an argument of small numbers."""
    tree = ast.parse(program.source)
    top = _program(tree)
    for line in top.body:
        if not (isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)):
            continue
        name = line.targets[0].id
        if name not in program.types or isinstance(line.value, ast.Constant):
            continue
        shape, dtype = program.types[name]
        again = ast.parse(program.source)
        function = _program(again)
        function.body = [n for n in function.body if ast.unparse(n) != ast.unparse(line)]
        function.args.args.append(ast.arg(name))
        source = ast.unparse(_alive(again)) + "\n"
        if len(source) < len(program.source):
            arguments = [*program.arguments, plain(shape, dtype)]
            yield replace(program, source=source, arguments=arguments)


def _fewer_arguments(program: Program) -> Iterator[Program]:
    """Removes one that is unused."""
    tree = ast.parse(program.source)
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    names = [a.arg for a in _program(tree).args.args]
    for k, name in enumerate(names):
        if name in used or len(names) == 1:
            continue
        del _program(tree).args.args[k]
        arguments = program.arguments[:k] + program.arguments[k + 1 :]
        yield replace(program, source=ast.unparse(tree) + "\n", arguments=arguments, donated=())
        return


def _plain_arguments(program: Program) -> Iterator[Program]:
    """With arguments that are quickly written."""
    for k, old in enumerate(program.arguments):
        new = plain(old.shape, old.dtype.name)
        if old.size > 8 and not (old == new).all():
            arguments = [*program.arguments[:k], new, *program.arguments[k + 1 :]]
            yield replace(program, arguments=arguments)


def kind_of(differences: Sequence[str]) -> str:
    """What must stay the same while a program is made smaller: who differs, or which error."""
    if not differences:
        return ""
    first = differences[0]
    return first.split(": ")[0] if not first.startswith("ipu: ") else first.split("\n")[0][:90]
