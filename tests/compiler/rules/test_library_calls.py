"""Rules call the public functions of Poplar's libraries, and docs/ops.md says which."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import ipujax.compiler.rules  # noqa: F401
from ipujax._poplar import _poplar
from ipujax.compiler.rules import poplar as ipu
from ipujax.compiler.rules.library_calls import HARDWARE, LIBRARIES, calls_of
from ipujax.compiler.rules.registry import RULES

POPX = Path(__file__).parents[3] / "cpp" / "popx"


class Recorder:
    """A library that notes which of its functions are called."""

    def __init__(self, library: str, calls: list[str]) -> None:
        self._library, self._calls = library, calls
        self._module = getattr(ipu, library)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        if callable(value) and not isinstance(value, type):
            self._calls.append(f"{self._library}.{name}")
        return value


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    calls: list[str] = []
    recorders = {library: Recorder(library, calls) for library in LIBRARIES}
    for library, recorder in recorders.items():
        monkeypatch.setattr(ipu, library, recorder)
    return calls


X = np.arange(21.0, dtype=np.float32).reshape(3, 7)


@pytest.mark.parametrize(
    ("function", "op", "call"),
    [
        (lambda x: jnp.tan(x), "tan", "popops.map"),
        (lambda x: x.sum(1), "reduce", "popops.reduce"),
        (lambda x: x.max(0), "reduce", "popops.reduce"),
        (lambda x: x.argmin(0), "reduce", "popx.reduce"),
        (lambda x: x @ x.T, "dot_general", "poplin.matMulGrouped"),
        (lambda x: jnp.sort(x, 1), "sort", "popx.sort"),
        (lambda x: x[np.array([2, 0, 1])], "gather", "popx.gather"),
    ],
)
def test_rules_call_what_the_page_says(
    function: Callable[[Any], Any], op: str, call: str, recorded: list[str]
) -> None:
    np.testing.assert_allclose(jax.jit(lambda x: function(x))(X), function(X), rtol=1e-6)
    assert call in recorded
    assert call in calls_of(RULES[op])


def test_a_reduction_from_another_value_is_the_one_of_popx(recorded: list[str]) -> None:
    def from_one(x: Any) -> Any:
        return jax.lax.reduce(x, np.float32(1), jax.lax.add, (0,))

    np.testing.assert_allclose(jax.jit(from_one)(X), X.sum(0) + 1, rtol=1e-6)
    assert "popx.reduce" in recorded
    assert "popops.reduce" not in recorded


def test_each_function_of_popx_says_what_it_is_on_hardware() -> None:
    functions = {
        name
        for name in dir(ipu.popx)
        if not name.startswith("_") and callable(value := getattr(ipu.popx, name))
        if not isinstance(value, type)
    }
    assert functions == set(HARDWARE)


def test_functions_of_popx_are_composed_of_what_exists() -> None:
    composed = {c for calls in HARDWARE.values() if not isinstance(calls, str) for c in calls}
    codelets = {call for call in composed if call.startswith("codelets/")}
    assert codelets == {f"codelets/{path.name}" for path in POPX.glob("codelets/*.cpp")}
    for call in composed - codelets:
        library, *names = call.split(".")
        assert library != "popx", call
        if library == "poplar" and (names[0][:1].isupper() or names[0] == "program"):
            assert callable(functools.reduce(getattr, names, _poplar.poplar)), call
        else:  # not all are bound
            headers = (POPX.parent / "model" / library).glob("*.hpp")
            text = "".join(path.read_text() for path in headers)
            assert re.search(rf"\b{names[-1]}\(\s*(?:poplar::)?Graph& ", text), call


def test_functions_of_popx_that_hardware_has_are_in_its_sources() -> None:
    text = "".join(path.read_text() for path in POPX.glob("hardware/*.cpp"))
    first = r"(?:const )?(?:\w+::)?(?:Graph|Tensor|DataStream|RemoteBuffer)& "
    for name in HARDWARE:
        assert re.search(rf"^\S.*\b{name}\({first}", text, re.MULTILINE), name


def test_every_call_of_a_rule_is_of_a_function_that_exists() -> None:
    for op, rule in RULES.items():
        for call in calls_of(rule):
            library, name = call.split(".")
            assert hasattr(getattr(ipu, library), name), (op, call)
