"""Checks of the list of programs that do not need the libraries."""

from __future__ import annotations

import ast
import re
import tomllib

import pytest

from tests.libraries.program import File, files
from tests.libraries.runner import ROOT

FILES = files()
BY_NAME = pytest.mark.parametrize("file", FILES, ids=lambda file: file.path.stem)


def _extra() -> set[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = project["optional-dependencies"]["libraries"]
    return {re.match(r"[\w-]+", requirement)[0] for requirement in wanted}


def test_the_extra_is_what_the_programs_use():
    assert {library for file in FILES for library in file.libraries} == _extra()


def test_about_sixty_programs():
    assert sum(len(file.programs) for file in FILES) >= 60


@BY_NAME
def test_programs_are_named_once_and_tell_their_tolerance(file: File):
    names = [program.name for program in file.programs]
    assert names
    assert len(names) == len(set(names))
    for program in file.programs:
        assert 0 < program.tolerance <= 2**-6  # two roundings of bfloat16
        assert len(program.why.split()) >= 2


@BY_NAME
def test_programs_return_what_is_compared(file: File):
    functions = {n.name: n for n in ast.parse(file.path.read_text()).body if _is_function(n)}
    for program in file.programs:
        assert not functions[program.name].args.args
        assert isinstance(functions[program.name].body[-1], ast.Return), program.name


@BY_NAME
def test_no_assertion_is_of_a_constant(file: File):
    for node in ast.walk(ast.parse(file.path.read_text())):
        if isinstance(node, ast.Assert):
            assert any(isinstance(part, ast.Name) for part in ast.walk(node.test))


def _is_function(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef)
