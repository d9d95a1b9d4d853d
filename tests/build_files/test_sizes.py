"""Files of at most 500 lines, functions of at most 60, in C++ and in Python.

What has a reason to be longer says so: a comment `Long: reason` in the first ten lines of a file,
or in the two lines above a function or its first two lines.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MOST_LINES = 500
MOST_FUNCTION_LINES = 60
_REASON = re.compile(r"(?://|#) *Long: \w")
_PIECE = re.compile(
    r"//[^\n]*|/\*.*?\*/|R\"\((?:.*?)\)\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])+'|[{};]|\n"
    r"|^#(?:[^\n]*\\\n)*[^\n]*",
    re.S | re.M,
)


def cpp_functions(text: str) -> Iterator[tuple[int, int]]:
    """First and last line of each function: a block with parentheses in a namespace or a class."""
    scopes: list[tuple[str, int]] = []
    line = start = 1
    head = ""
    at = 0
    for piece in _PIECE.finditer(text):
        between = text[at : piece.start()]
        if not head.strip() and between.strip():
            start = line
        head += between
        at = piece.end()
        token = piece[0]
        if token == "{":
            outside = all(kind == "scope" for kind, _ in scopes)
            is_scope = re.search(r"\b(namespace|class|struct|union|enum|extern)\b", head)
            if outside and ")" in head and not (is_scope and "(" not in head.split(")")[0]):
                scopes.append(("function", start))
            else:
                scopes.append(("scope" if outside and is_scope else "block", start))
            head = ""
        elif token == "}":
            kind, begin = scopes.pop() if scopes else ("block", line)
            if kind == "function":
                yield begin, line
            head = ""
        elif token == ";":
            head = ""
        line += token.count("\n")


def python_functions(text: str) -> Iterator[tuple[int, int]]:
    """First and last line of each function's code, without its docstring."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            is_doc = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
            doc_lines = (first.end_lineno or 0) - first.lineno + 1 if is_doc else 0
            yield node.lineno + doc_lines, node.end_lineno or node.lineno


def too_long(path: Path) -> list[str]:
    """The parts of a file that are too long and give no reason."""
    text = path.read_text()
    lines = text.splitlines()
    name = path.relative_to(ROOT)
    found = []
    if len(lines) > MOST_LINES and not any(map(_REASON.search, lines[:10])):
        found.append(f"{name} has {len(lines)} lines")
    functions = python_functions(text) if path.suffix == ".py" else cpp_functions(text)
    for first, last in functions:
        around = lines[max(0, first - 3) : first + 2]
        if last - first + 1 > MOST_FUNCTION_LINES and not any(map(_REASON.search, around)):
            found.append(f"{name}:{first} has a function of {last - first + 1} lines")
    return found


def sources() -> list[Path]:
    """All C++ and Python that is ours: the product's and its tests'."""
    return sorted(
        path
        for room in ("cpp", "xla_plugin", "ipujax", "tests")
        for path in (ROOT / room).rglob("*")
        if path.suffix in (".cpp", ".hpp", ".py") and "__pycache__" not in path.parts
    )


def test_nothing_is_longer_than_it_may_be_without_a_reason():
    found = [line for path in sources() for line in too_long(path)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(("lines", "is_long"), [(MOST_FUNCTION_LINES, False), (70, True)])
def test_the_check_sees_long_functions(lines: int, is_long: bool):
    body = "\n".join("  x();" for _ in range(lines - 2))
    text = f"namespace n {{\nstruct S {{\n}};\nvoid f(int a) {{\n{body}\n}}\n}}\n"
    ((first, last),) = cpp_functions(text)
    assert (first, last) == (4, lines + 3)
    assert (last - first + 1 > MOST_FUNCTION_LINES) == is_long
