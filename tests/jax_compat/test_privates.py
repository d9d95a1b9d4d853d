"""Only ipujax/jax_compat touches private parts of jax and jaxlib, and everything in it is used."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "ipujax" / "jax_compat"
#: The only stable part of jaxlib is `jaxlib.mlir`, which is MLIR's own interface.
PRIVATE = re.compile(r"jax(\.\w+)*\._\w+|jaxlib\.(?!mlir\b|__version__)\w+")


def imported(tree: ast.Module) -> Iterator[str]:
    """Dotted names of all that a file imports, wherever in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield ast.unparse(node)


def test_private_parts_of_jax_are_touched_in_one_package_only():
    found = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in (ROOT / "ipujax").rglob("*.py")
        if PACKAGE not in path.parents
        for name in imported(ast.parse(path.read_text()))
        if PRIVATE.match(name)
    }
    assert found == set()


def test_every_public_name_is_used():
    exported = re.findall(r" import (\w+) as \1$", (PACKAGE / "__init__.py").read_text(), re.M)
    assert "watch_calls" in exported
    users = "".join(
        path.read_text()
        for folder in ("ipujax", "tests")
        for path in (ROOT / folder).rglob("*.py")
        if PACKAGE not in path.parents
    )
    assert [name for name in exported if not re.search(rf"\b{name}\b", users)] == []
