"""Type checkers see the types of functions through our transforms, and the choices of arguments."""

from __future__ import annotations

from collections.abc import Callable

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

staged = ipu.stage(train, ipu=0)
rematerialised = ipu.remat(train)
cast = ipu.autocast(train)
sharded = ipu.ShardedExecution(ipu.Stage("a", ipu=0)).apply(train)

@ipu.remat(mode="then")
def decorated_remat(batch: jax.Array) -> jax.Array:
    return batch

@ipu.autocast(enabled=True)
def decorated_cast(batch: jax.Array) -> jax.Array:
    return batch

@ipu.block("head")
def head(batch: jax.Array) -> jax.Array:
    return batch

@ipu.precision(partials_type="half")
def precise(batch: jax.Array) -> jax.Array:
    return batch

def use(state: State, x: jax.Array) -> None:
    reveal_type(direct(state, x)[0].step)
    reveal_type(decorated(state, x)[1])
    reveal_type(plain(x))
    reveal_type(outlined(x))
    reveal_type(staged(state, x)[0].step)
    reveal_type(rematerialised(state, x)[0].step)
    reveal_type(cast(state, x)[0].step)
    reveal_type(sharded(state, x)[0].step)
    reveal_type(decorated_remat(x))
    reveal_type(decorated_cast(x))
    reveal_type(head(x))
    reveal_type(precise(x))
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
    "staged(x, x)": 'incompatible type "Array"; expected "State"',
    "rematerialised(state)": 'Missing positional argument "batch"',
    "cast(state, x, speed=1.0)": 'Unexpected keyword argument "speed"',
    "sharded(x, x)": 'incompatible type "Array"; expected "State"',
    "decorated_remat(3)": 'incompatible type "int"; expected "Array"',
    "decorated_cast(3)": 'incompatible type "int"; expected "Array"',
    "head(3)": 'incompatible type "int"; expected "Array"',
    "precise(3)": 'incompatible type "int"; expected "Array"',
    "direct.lower(state, 3)": 'incompatible type "int"; expected "Array"',
}
CHOICES = """
from typing import Any
import jax
import ipujax as ipu

def use(train: ipu.Report, x: jax.Array, weights: Any) -> None:
    WRONG
"""
#: Calls with a text that is no choice, each with one that is.
CHOSEN = {
    "ipu.stage(jax.jit, remat={})": ("than", "then"),
    "ipu.pipeline([jax.jit], micro_batches=4, schedule={})": ("group", "grouped"),
    "ipu.pipeline([jax.jit], micro_batches=4, reduction={})": ("average", "mean"),
    "ipu.remat(mode={})": ("than", "then"),
    "ipu.autocast(results={})": ("half", "computed"),
    "ipu.nn.softmax(x, kind={})": ("stabil", "stable"),
    "ipu.nn.lstm(x, weights, activation={})": ("tan", "tanh"),
    "ipu.nn.gru(x, weights, partials={})": ("double", "half"),
    "ipu.ops.serialized_matmul(x, x, 2, {})": ("rows", "b_rows"),
    "ipu.ops.top_k(x, 2, order={})": ("up", "ascending"),
    "ipu.ops.embedding_lookup(x, x, update={})": ("sum", "sorted"),
    "ipu.ops.cast_to_float8(x, {})": ("F144", "F143"),
    "ipu.ops.identity_loss(x, {})": ("max", "none"),
    "ipu.reset_device({})": ("reset", "full_reset"),
    "ipu.cost(jax.jit, x, fetched={})": ("some", "all"),
    "ipu.reduce_scatter(x, {})": ("plus", "add"),
    "ipu.shard_weights(x, {})": ("sum", "mean"),
    "ipu.Outfeed({})": ("first", "last"),
    "ipu.verify(oracles=[{}])": ("gpu", "cpu"),
    "ipu.testing.inject({})": ("fire", "ecc"),
    "ipu.training.Checkpoint('a', every=1, backend={})": ("zip", "orbax"),
    "ipu.training.EarlyStop('loss', 3, mode={})": ("least", "min"),
    "ipu.data.Synthetic(x, {})": ("noise", "normal"),
    "train.by({})": ("lines", "line"),
}
REVEALED = (*("int", "Array", "Array", "Array"), *("int",) * 4, *("Array",) * 4)


Check = Callable[[str], list[str]]


@pytest.fixture(scope="module")
def check(tmp_path_factory, run_python: RunPython) -> Check:
    """What mypy says of a program."""
    folder = tmp_path_factory.mktemp("types")

    def checked(program: str) -> list[str]:
        path = folder / "program.py"
        path.write_text(program)
        # Errors of the package itself are not those of this program.
        arguments = ("--follow-imports=silent", "--no-error-summary", "--cache-dir", str(folder))
        return run_python("-m", "mypy", *arguments, str(path)).stdout.splitlines()

    return checked


@pytest.fixture(scope="module")
def said(check: Check) -> list[str]:
    """What mypy says of the program with all wrong lines."""
    return check(PROGRAM.replace("WRONG", "\n    ".join(WRONG)))


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


def test_choices_are_known(check):
    """Each wrong choice is an error of its own, and no right one is."""
    lines = [call.format(repr(text)) for call, texts in CHOSEN.items() for text in texts]
    first = CHOICES[: CHOICES.index("WRONG")].count("\n") + 1
    errors = check(CHOICES.replace("WRONG", "\n    ".join(lines)))
    found = {int(each.split(":")[1]) - first for each in errors if ": error: " in each}
    wrong = {2 * i for i in range(len(CHOSEN))}
    assert [lines[i] for i in sorted(found ^ wrong)] == [], "\n".join(errors)
