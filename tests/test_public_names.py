"""The public names: imported at their first use, all of them, and those of the stub alone."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import ipujax as ipu
from tests.conftest import RunPython


def test_each_name_of_the_stub_is_there():
    stub = ast.parse(Path(ipu.__file__).with_suffix(".pyi").read_text())
    named = [
        alias.asname
        for node in ast.walk(stub)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    ]
    assert named == ipu.__all__
    assert [name for name in named if getattr(ipu, name) is None] == []
    assert set(named) <= set(dir(ipu))


def test_other_names_are_refused():
    with pytest.raises(AttributeError, match="'ipujax' has no attribute 'no_such_name'"):
        ipu.no_such_name  # noqa: B018


@pytest.mark.parametrize("code", ["import ipujax", "import ipujax; ipujax.ConfigError"])
def test_errors_need_no_jax(run_python: RunPython, code: str):
    assert run_python("-c", f"{code}\nimport sys\nprint('jax' in sys.modules)").stdout == "False\n"


def test_a_star_imports_all(run_python: RunPython):
    code = "from ipujax import *\nprint(pipeline.__name__, nn.__name__)"
    assert run_python("-c", code).stdout == "pipeline ipujax.nn\n"
