"""What a user program is, and how a file of them is imported, or read without its libraries."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent / "programs"
Tree = Any


def _not_imported() -> Tree:
    raise NotImplementedError("[libraries] needs an imported file to run a program of it.")


@dataclass(frozen=True)
class Program:
    """A function without arguments whose result, a tree of arrays, both platforms agree on.

    Args:
        name: of the function.
        tolerance: largest difference of a number, relative to the largest of its array.
        why: the reason for this tolerance.
        x64: whether the program runs with JAX's 64-bit types enabled.
        unrepaired: why it fails today; it then has to fail.
        run: the function.
    """

    name: str
    tolerance: float
    why: str
    x64: bool = False
    unrepaired: str = ""
    run: Callable[[], Tree] = _not_imported


def program(
    tolerance: float, why: str, *, x64: bool = False, unrepaired: str = ""
) -> Callable[[Callable[[], Tree]], Program]:
    """Registers the function below it as a program of its file. Arguments are literals."""
    return lambda run: Program(run.__name__, tolerance, why, x64, unrepaired, run)


def imported(file: Path) -> list[Program]:
    """The programs of a file, in its order; imports their libraries."""
    spec = importlib.util.spec_from_file_location(f"programs_of_{file.stem}", file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return [value for value in vars(module).values() if isinstance(value, Program)]


@dataclass(frozen=True)
class File:
    """One file of `programs/`, read without importing it."""

    path: Path
    libraries: tuple[str, ...]
    programs: tuple[Program, ...]


def read(path: Path) -> File:
    tree = ast.parse(path.read_text(), path.name)
    libraries = next(ast.literal_eval(n.value) for n in tree.body if _assigns(n, "LIBRARIES"))
    programs = [
        Program(
            function.name,
            *map(ast.literal_eval, call.args),
            **{keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords},
        )
        for function in tree.body
        if isinstance(function, ast.FunctionDef)
        for call in function.decorator_list
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "program"
    ]
    return File(path, libraries, tuple(programs))


def _assigns(node: ast.stmt, name: str) -> bool:
    return isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == [name]


def files(folder: Path = PROGRAMS) -> list[File]:
    return [read(path) for path in sorted(folder.glob("[!_]*.py"))]
