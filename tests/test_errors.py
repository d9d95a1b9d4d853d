"""Error types carry the status code that JAX shows, and texts that help."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipujax import errors

ROOT = Path(__file__).resolve().parents[1]


def _error_types() -> list[type[errors.IpuError]]:
    members = inspect.getmembers(errors, inspect.isclass)
    return [kind for _, kind in members if issubclass(kind, errors.IpuError)]


@pytest.mark.parametrize("kind", _error_types(), ids=lambda kind: kind.__name__)
def test_every_error_has_a_status_code(kind: type[errors.IpuError]):
    codes = {v for k, v in vars(errors.PjrtCode).items() if not k.startswith("_")}
    assert kind.pjrt_code in codes


def test_unsupported_ops_are_listed_all_at_once():
    error = errors.UnsupportedOpError(
        [("stablehlo.fft", "no rule yet", "train.py:31"), ("stablehlo.cholesky", "no rule yet", "")]
    )
    assert error.found[0] == ("stablehlo.fft", "no rule yet", "train.py:31")
    text = str(error)
    assert "got 2 that have none" in text
    assert "stablehlo.fft: no rule yet (at train.py:31)" in text
    assert "stablehlo.cholesky: no rule yet\n" in text


def _messages(path: Path) -> Iterator[str]:
    """The texts in a Python file that begin with "[where] " and say what is needed."""
    tree = ast.parse(path.read_text())
    parts = {
        id(part)
        for node in ast.walk(tree)
        if isinstance(node, (ast.JoinedStr, ast.BinOp))
        for part in ast.walk(node)
        if part is not node
    }
    for node in ast.walk(tree):
        text = "" if id(node) in parts else _text(node)
        if re.match(r"\[[^\]]+\] ", text) and " needs " in text:
            yield text


def _text(node: ast.AST) -> str:
    """A string with `{}` for every value in it; empty where the node is none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) or "{}" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return (_text(node.left) or "{}") + (_text(node.right) or "{}")
    return ""


#: The first sentence of a longer report.
HEADINGS = {"[verify] needs {} to agree with {}; got {}."}


def test_texts_say_what_is_needed_what_came_and_what_to_do():
    """`[where] needs X; got Y. Use Z.`"""
    shape = re.compile(r"\[[^\]]+\] .*needs .+; got.+[.:}\n] ?[A-Z{].*[.}\n]", flags=re.S)
    texts = {text for path in (ROOT / "ipujax").rglob("*.py") for text in _messages(path)}
    assert len(texts) > 60
    assert {text for text in texts - HEADINGS if not shape.fullmatch(text)} == set()


#: Unidiomatic imperatives and words.
UNNATURAL = r"(?:\bDo|\\nDo) (?!not\b)[a-z]|\. Take |\bshall\b|\bso many\b|\bthat are none\b"


def test_texts_are_plain_imperatives():
    """`Use one of these.`, not `Do use one of these.`"""
    found = []
    for pattern in ("ipujax/**/*.py", "cpp/**/*.[ch]pp", "xla_plugin/*.[ch]pp"):
        for path in ROOT.glob(pattern):
            literals = re.findall(r'"[^"\n]*"', path.read_text())
            found += [f"{path.name}: {text}" for text in literals if re.search(UNNATURAL, text)]
    assert found == []
