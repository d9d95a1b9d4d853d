"""Follows docs/add-an-op.md literally, on a copy of the source tree."""

from __future__ import annotations

import re
from pathlib import Path

from tests.changes.tree import ROOT, Tree

BLOCK = re.compile(r"^```(python|cpp|diff) (\S+)\n(.*?)^```", flags=re.M | re.S)


def apply_diff(path: Path, diff: str) -> None:
    """Takes out lines with a minus; adds lines with a plus after the line before, or at the end."""
    lines, at = path.read_text().splitlines(), None
    for change in diff.splitlines():
        if change.startswith("+"):
            at = len(lines) if at is None else at + 1
            lines.insert(at, change[1:])
            continue
        assert lines.count(change[1:]) == 1, f"{path.name} needs one line {change[1:]!r}"
        at = lines.index(change[1:])
        if change.startswith("-"):
            del lines[at]
            at -= 1
    path.write_text("\n".join(lines) + "\n")


def follow(section: str, tree: Tree, run_python) -> None:
    """Writes each block to the file that it names, and runs those that stand in no folder."""
    for kind, name, text in BLOCK.findall(section):
        if kind == "diff":
            apply_diff(tree.root / name, text)
        else:
            tree.write(name, text)
        if "/" not in name:
            if any(path.startswith("cpp/") for path in tree.changed()):
                tree.build()
            run = run_python(tree.root / name, env=tree.environment())
            assert run.returncode == 0, f"{name}: {run.stdout}{run.stderr}"


def sections() -> list[str]:
    return (ROOT / "docs" / "add-an-op.md").read_text().split("\n# ")


def test_the_page_followed_literally_adds_an_op(run_python, tmp_path: Path):
    tree = Tree(tmp_path)
    follow(sections()[0], tree, run_python)
    assert tree.changed() == [
        "ipujax/compiler/rules/__init__.py",
        "ipujax/compiler/rules/column_cholesky.py",
    ]


def test_the_page_followed_literally_adds_a_poplibs_function(run_python, tmp_path: Path):
    tree = Tree(tmp_path)
    follow(sections()[1], tree, run_python)
    assert tree.changed() == [
        "cpp/bindings/bind_move.cpp",
        "cpp/popops/RunningSum.cpp",
        "cpp/popops/RunningSum.hpp",
    ]
