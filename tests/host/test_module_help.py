"""`help` of a public package lists each of its names with one line."""

from __future__ import annotations

import importlib
import inspect
import pydoc
import types

import pytest

PACKAGES = ("data", "nn", "ops", "optim", "runtime", "tile", "training")


@pytest.mark.parametrize("package", PACKAGES)
def test_help_lists_each_name_with_one_line(package: str):
    module = importlib.import_module(f"ipujax.{package}")
    public = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not isinstance(value, types.ModuleType)
        and getattr(value, "__module__", "").startswith("ipujax.")
    ]
    assert public
    text = pydoc.plain(pydoc.render_doc(module))
    lines = {line.strip() for line in text.splitlines()}
    for name in public:
        (line,) = {each for each in lines if each.startswith(f"{name}: ")}
        told = line.removeprefix(f"{name}: ").split()
        assert told
        assert told == inspect.getdoc(getattr(module, name)).split()[: len(told)]
