"""Follows docs/add-an-op.md literally, on a copy of the source tree."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from tests.changes.tree import ROOT, Tree

PAGE = ROOT / "docs" / "add-an-op.md"
BLOCK = re.compile(r"^```(python|cpp|diff) (\S+)\n(.*?)^```", flags=re.M | re.S)
#: By section of the page: the op it adds, a program with it, and the name of its case.
OPS = {1: ("tan", "lax.tan(x)", "tan-float32"), 2: ("reverse", "lax.rev(x, (0,))", "reverse")}

#: Without the op, the gate fails, and a program with it is refused by name.
WITHOUT = """
import jax
import numpy as np
from jax import lax
from tests.compiler.rules import test_cases, test_gate

assert test_gate.dialect_ops() - set(test_gate.TRAITS) == {"@OP@"}
assert "@CASE@" not in {case.name for case in test_cases.CASES}
try:
    jax.jit(lambda x: @PROGRAM@)(np.ones(3, np.float32))
except jax.errors.JaxRuntimeError as error:
    assert "@OP@: it is not known" in str(error), error
else:
    raise AssertionError("@OP@ is not refused")
"""

#: With the op, the gate and the case pass.
WITH = """
from tests.compiler.rules import test_gate

test_gate.test_each_op_of_the_dialect_has_a_row_and_no_other_has()
test_gate.test_each_op_has_a_rule_or_a_reason_to_have_none()
test_gate.test_each_op_is_sharded_or_has_a_reason_not_to_be()
"""

CASE = """
from tests.compiler.rules import test_cases

(case,) = (case for case in test_cases.CASES if case.name == "@CASE@")
for run in case.runs:
    test_cases.test_case(case, run)
"""


def blocks_of(section: int) -> list[tuple[str, str, str]]:
    """(kind, file, text) of a section's blocks that name a file."""
    text = re.split(r"^## \d+\. .*$", PAGE.read_text(), flags=re.M)[section]
    return BLOCK.findall(text)


def change(path: Path, diff: str, undo: bool = False) -> None:
    """Adds the lines with a plus after the line shown before them, or removes them again."""
    lines = path.read_text().splitlines()
    at = 0
    for line in diff.splitlines():
        if not line.startswith("+"):
            at = lines.index(line[1:], at) + 1
        elif undo:
            assert lines[at] == line[1:], f"{path.name}:{at + 1} is not {line[1:]!r}"
            del lines[at]
        else:
            lines.insert(at, line[1:])
            at += 1
    path.write_text("\n".join(lines) + "\n")


def run_in(run_python: Any, tree: Tree, name: str) -> None:
    """Runs a script of the copy, with the copy's packages."""
    run = run_python(tree.root / name, env=tree.environment(), timeout=600)
    assert run.returncode == 0, f"{name}: {run.stdout}{run.stderr}"


def follow(run_python: Any, tree: Tree, section: int) -> None:
    """Writes each block to the file that it names, and runs the scripts, which are in no folder."""
    for kind, name, text in blocks_of(section):
        if kind == "diff":
            change(tree.root / name, text)
        else:
            tree.write(name, text)
        if "/" not in name:
            if any(path.startswith("cpp/") for path in tree.changed()):
                tree.build()
            run_in(run_python, tree, name)


@pytest.mark.parametrize("section", OPS)
def test_a_stablehlo_op_is_added_in_two_files(
    run_python: Any, tmp_path: Path, section: int
) -> None:
    tree = Tree(tmp_path)
    op, program, case = OPS[section]
    blocks = blocks_of(section)
    assert {kind for kind, _, _ in blocks} == {"diff"}
    assert len({name for _, name, _ in blocks}) == 2
    for undo, script in ((True, WITHOUT), (False, WITH + CASE)):
        for _, name, diff in blocks:
            change(tree.root / name, diff, undo)
        text = script.replace("@OP@", op).replace("@CASE@", case)
        tree.write("check.py", text.replace("@PROGRAM@", program))
        run_in(run_python, tree, "check.py")
    assert tree.changed() == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("section", "files", "case"),
    [
        pytest.param(3, ["ipujax/compiler/rules/column_cholesky.py"], "", id="custom-call"),
        pytest.param(
            4,
            [
                "cpp/model/engine/ops/ElementwiseOps.def",
                "cpp/popx/hardware/Formulas.cpp",
                "ipujax/compiler/rules/elementwise.py",
                "tests/cases/elementwise.py",
            ],
            "softsign",
            id="elementwise-operation",
            marks=pytest.mark.rebuild,
        ),
        pytest.param(
            5,
            [
                "cpp/bindings/bind_move.cpp",
                "cpp/model/engine/kernels/RunningSum.cpp",
                "cpp/model/popops/RunningSum.cpp",
                "cpp/model/popops/RunningSum.hpp",
            ],
            "",
            id="poplibs-function",
        ),
    ],
)
def test_a_section_changes_only_the_files_it_names(
    run_python: Any, tmp_path: Path, section: int, files: list[str], case: str
) -> None:
    tree = Tree(tmp_path)
    follow(run_python, tree, section)
    assert tree.changed() == files
    if case:
        tree.write("case.py", CASE.replace("@CASE@", case))
        run_in(run_python, tree, "case.py")
