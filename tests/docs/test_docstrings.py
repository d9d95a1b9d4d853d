"""Examples in docstrings run and print what they say; every public function has one."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import ipujax as ipu

#: What examples may use without importing it.
NAMES = {"ipu": ipu, "jax": jax, "jnp": jnp, "np": np, "optax": optax}


def docstrings() -> Iterator[doctest.DocTest]:
    """Of all modules, classes and functions of the package."""
    finder = doctest.DocTestFinder()
    for module in pkgutil.walk_packages(ipu.__path__, "ipujax."):
        if not module.name.endswith(("__main__", "._poplar")):
            yield from finder.find(importlib.import_module(module.name), extraglobs=NAMES)


DOCSTRINGS = list(docstrings())
EXAMPLES = [found for found in DOCSTRINGS if found.examples]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_examples_print_what_they_say(
    example: doctest.DocTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)  # for those that write files
    said: list[str] = []
    outcome = doctest.DocTestRunner(verbose=False).run(example, out=said.append)
    assert outcome.failed == 0, "".join(said)


@pytest.mark.parametrize("package", [ipu, ipu.nn, ipu.ops, ipu.optim], ids=lambda x: x.__name__)
def test_every_public_function_has_an_example(package):
    functions = {
        f"{function.__module__}.{name}"
        for name in dir(package)
        if inspect.isfunction(function := getattr(package, name)) and not name.startswith("_")
    }
    assert functions
    assert functions - {example.name for example in EXAMPLES} == set()


def test_no_example_is_skipped():
    """Lines under "Example:" are run only if they start with `>>>`."""
    announced = {d.name for d in DOCSTRINGS if re.search(r"^ *Examples?:$", d.docstring, re.M)}
    assert announced
    assert announced - {example.name for example in EXAMPLES} == set()
