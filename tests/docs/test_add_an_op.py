"""Follows docs/add-an-op.md literally, on a copy of the Python package."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(python|diff) (\S+)\n(.*?)^```", flags=re.M | re.S)


def apply_diff(path: Path, diff: str) -> None:
    """Takes out each line with a minus, and adds each with a plus at the end."""
    lines = path.read_text().splitlines()
    for change in diff.splitlines():
        if change.startswith("-"):
            assert change[1:] in lines, f"{path.name} has no line {change[1:]!r}"
            lines.remove(change[1:])
        elif change.startswith("+"):
            lines.append(change[1:])
    path.write_text("\n".join(lines) + "\n")


def test_the_page_followed_literally_adds_an_op(run_python, tmp_path: Path):
    shutil.copytree(
        ROOT / "ipujax", tmp_path / "ipujax", ignore=shutil.ignore_patterns("__pycache__")
    )
    blocks = BLOCK.findall((ROOT / "docs" / "add-an-op.md").read_text())
    assert [name for _, name, _ in blocks] == [
        "refused.py",
        "ipujax/compiler/rules/column_cholesky.py",
        "ipujax/compiler/rules/__init__.py",
        "check.py",
    ]
    for kind, name, text in blocks:
        target = tmp_path / name
        if kind == "diff":
            apply_diff(target, text)
            continue
        target.write_text(text)
        if "/" not in name:
            run = run_python(target, env={"PYTHONPATH": f"{tmp_path}{os.pathsep}"})
            assert run.returncode == 0, f"{name}: {run.stdout}{run.stderr}"
