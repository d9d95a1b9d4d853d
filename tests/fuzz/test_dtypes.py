"""The first calls of `python -m tests.fuzz --kind dtypes`, and what they would see."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import pytest

from ipujax.compiler import bugs, compile
from ipujax.compiler.rules.registry import CUSTOM_CALLS
from ipujax.errors import InternalError
from ipujax.types import ELEMENT_TYPES, ElementType
from tests.fuzz import chunks, dtypes
from tests.fuzz.__main__ import main
from tests.fuzz.library.case import Draw
from tests.fuzz.library.generators import GENERATORS

#: A prime, so that seeds walk through the whole list of functions.
STEP = 53
#: Custom calls that no function of JAX or ipujax makes here.
ELSEWHERE = {
    "Qr": "in programs exported for TPUs",
    "ProductOfElementaryHouseholderReflectors": "in programs exported for TPUs",
    "ipu_custom_op": "a user's library declares its dtypes: tests/api/custom/test_custom_op.py",
    **{f"lapack_{letter}trsm_ffi": "in programs exported for the CPU" for letter in "sdcz"},
}


#: An upper half of int4 that the CPU backend gets wrong; a maximum without infinity to begin with.
JUDGED = [90000551, 90000648]


@pytest.mark.parametrize("seed", [*range(0, 30 * STEP, STEP), *JUDGED])
def test_calls_by_seed(seed: int) -> None:
    assert dtypes.compared(seed)["differences"] == []


@pytest.mark.parametrize("each", ELEMENT_TYPES, ids=lambda each: each.name)
def test_calls_of_ipujax_with_every_dtype(each: ElementType) -> None:
    """Three functions with each dtype, full and empty; the next dtype takes the next three."""
    names = [name for name in dtypes.OURS if not name.startswith("linalg.")]
    first, rng = 3 * ELEMENT_TYPES.index(each), random.Random(each.name)
    for name in (names[(first + k) % len(names)] for k in range(3)):
        for empty in (False, True):
            made = dtypes.of_ours(name, each.numpy, empty, rng)
            assert dtypes.outcome(made, empty)["differences"] == []


def test_every_custom_call_is_made() -> None:
    """A new one needs a row of the table or a generator of the library; tests have their own."""
    found: set[str] = set()
    for function, arrays in _calls():
        lowered = jax.jit(function).trace(*arrays).lower(lowering_platforms=("ipu",))
        found |= set(re.findall(r"custom_call @(\w+)", lowered.as_text()))
    ours = {target for target in CUSTOM_CALLS if not target.startswith("ipu_test_")}
    assert sorted(ours - found - ELSEWHERE.keys()) == []
    assert sorted(ELSEWHERE.keys() - set(CUSTOM_CALLS)) == []


def _calls() -> Iterator[tuple[Any, Any]]:
    for name, generate in GENERATORS.items():
        for number in range(4 if dtypes.is_random(name) else 1):  # a distribution each
            draw = Draw(f"{name} {number}")
            case = generate(draw)
            made = dtypes.Call(name, case.function, case.draw(draw.numbers()), False)
            yield made.function, made.arrays
            yield dtypes.gradient(made), made.arrays
    with jax.enable_x64(True):
        for name, (function, shapes) in dtypes.OURS.items():
            for dtype in "fdFD" if name.startswith("linalg.") else "f":
                yield function, [np.ones(shape, dtype) for shape in shapes]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("UNIMPLEMENTED: sort: complex64 has no order (at a.py:1)", ""),
        ("[ipu.ops.sort] needs numbers; got float64. Cast them.", ""),
        ("sort: this dtype is not known, complex64", "a refusal without a line"),
        ("[compile] needs a rule (at a.py:1)", "a refusal without a dtype"),
        (f"[compile] {bugs.TEXT}; got float32 (at a.py:1)", "a bug"),
        ("INTERNAL: too many values to unpack (at a.py:1) float32", "a bug"),
    ],
)
def test_refusals_name_a_dtype_and_a_line(text: str, why: str) -> None:
    assert dtypes.refusal(text) == why


def test_a_wrong_result_is_seen() -> None:
    x = np.arange(6, dtype=np.int8)
    assert dtypes.unequal(x, x, (x,)) == ""
    assert "1 of 6 differ" in dtypes.unequal(x, np.where(x == 3, 4, x).astype(np.int8), (x,))
    half = x.astype(np.float16)
    assert dtypes.unequal(half, half + np.float16(0.01), (half,)) == ""
    assert "instead of" in dtypes.unequal(half, half + np.float16(1), (half,))
    assert "int8[6] instead of float16[6]" in dtypes.unequal(x, half, (x,))


def test_bugs_of_the_compiler_are_failures_of_every_kind(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = {"cpu": "not there", "ipu": f"[compile] {bugs.TEXT}; got KeyError"}
    for kind in chunks.KINDS:
        check = lambda seed: {"differences": [], "refused": refused}  # noqa: E731
        monkeypatch.setitem(chunks.MAKERS, kind, lambda how, check=check: check)
        chunks.chunk_main(3, 1, kind, "cpu")
        outcome = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert outcome["differences"] == [refused["ipu"]]
        assert outcome["bugs"] == 1


def test_refusals_of_ipujax_are_counted_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = [{}, {"cpu": "a"}, {"ipu": "b"}, {"composition": "c", "oracle": "d"}, {"pipeline": "e"}]
    made = [{"seed": i, "differences": [], "refused": each} for i, each in enumerate(found)]
    monkeypatch.setattr(chunks.Log, "outcomes", lambda log, part: made)
    monkeypatch.setattr("sys.argv", ["fuzz", "--count", str(len(made)), "--jobs", "1"])
    assert main() == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert "ipujax with a stated reason: 3; " in line
    assert "wrong there alone: 1; " in line


def test_a_bug_ends_a_test_of_this_folder(no_bugs: list[InternalError]) -> None:
    compile.report(KeyError("x"), "7_lower")
    assert [bugs.TEXT in str(error) for error in no_bugs] == [True]
    no_bugs.clear()
