"""Type checkers see the types of functions through our transforms, and the choices of arguments."""

from __future__ import annotations

import pytest

from tests.conftest import RunPython

pytest.importorskip("mypy", reason="needs mypy to check types; install the development tools")

PROGRAM = """
from typing import NamedTuple
import jax
import ipujax as ipu

class State(NamedTuple):
    weight: jax.Array
    step: int

def train(state: State, batch: jax.Array, rate: float = 0.1) -> tuple[State, jax.Array]:
    return state, batch

direct = ipu.pmap(train, in_axes=(None, 0), out_axes=(None, 0))

@ipu.pmap(in_axes=(None, 0), out_axes=(None, 0))
def decorated(state: State, batch: jax.Array) -> tuple[State, jax.Array]:
    return state, batch

@ipu.pmap
def plain(batch: jax.Array) -> jax.Array:
    return batch

@ipu.outlined
def outlined(batch: jax.Array) -> jax.Array:
    return batch

def use(state: State, x: jax.Array) -> None:
    reveal_type(direct(state, x)[0].step)
    reveal_type(decorated(state, x)[1])
    reveal_type(plain(x))
    reveal_type(outlined(x))
    WRONG
"""
WRONG = {
    "direct(x, x)": 'incompatible type "Array"; expected "State"',
    "direct(state)": 'Missing positional argument "batch"',
    "direct(state, x, speed=1.0)": 'Unexpected keyword argument "speed"',
    "decorated(state, 3)": 'incompatible type "int"; expected "Array"',
    "plain(x).no_such": 'has no attribute "no_such"',
    "outlined(3)": 'incompatible type "int"; expected "Array"',
    "plain.no_such": 'has no attribute "no_such"',
    "direct.lower(state, 3)": 'incompatible type "int"; expected "Array"',
}
REVEALED = ("int", "Array", "Array", "Array")


@pytest.fixture(scope="module")
def said(tmp_path_factory, run_python: RunPython) -> list[str]:
    """What mypy says of the program with all wrong lines."""
    path = tmp_path_factory.mktemp("types") / "program.py"
    path.write_text(PROGRAM.replace("WRONG", "\n    ".join(WRONG)))
    # Errors of the package itself are not those of this program.
    arguments = ("--follow-imports=silent", "--no-error-summary", "--cache-dir", str(path.parent))
    return run_python("-m", "mypy", *arguments, str(path)).stdout.splitlines()


def test_transforms_keep_the_types_of_results(said):
    revealed = [line.split('"')[1] for line in said if "Revealed type is" in line]
    assert [each.rpartition(".")[2] for each in revealed] == list(REVEALED)


@pytest.mark.parametrize("line", WRONG)
def test_wrong_calls_are_found(said, line):
    number = PROGRAM[: PROGRAM.index("WRONG")].count("\n") + 1 + list(WRONG).index(line)
    found = [each for each in said if f":{number}: error: " in each]
    assert len(found) == 1
    assert WRONG[line] in found[0]


def test_nothing_else_is_found(said):
    assert sum(": error: " in each for each in said) == len(WRONG)
