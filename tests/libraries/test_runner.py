"""The runner finds what goes wrong in a program: here in programs that need only JAX."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.libraries import __main__ as command
from tests.libraries.program import read
from tests.libraries.runner import difference, outcomes

PROGRAMS = """
import os
import time

import jax
import jax.numpy as jnp

from tests.libraries.program import program

LIBRARIES = ("jax",)
ON_IPU = jax.default_backend() == "ipu"


@program(1e-6, "one product")
def good():
    print("what a library prints")
    return {"y": jnp.arange(3.0) * 2, "key": jax.random.key(1), "half": jnp.ones(2, jnp.bfloat16)}


@program(1e-12, "64-bit sums", x64=True)
def wide():
    return jnp.full(3, 0.1).sum()


@program(1e-2, "one rounding of bfloat16")
def narrow():
    return jnp.full(2, 1 + ON_IPU * 2.0**-7, jnp.bfloat16)


@program(1e-3, "none")
def wrong():
    return jnp.arange(1, 4.0) * (1.002 if ON_IPU else 1)


@program(1e-3, "none", unrepaired="wrong on purpose")
def known_to_be_wrong():
    return jnp.arange(1, 4.0) * (2 if ON_IPU else 1)


@program(1e-3, "none", unrepaired="no longer true")
def repaired():
    return jnp.ones(2)


@program(1e-3, "none")
def raises():
    raise KeyError("nothing there")


@program(1e-3, "none")
def ends_the_process():
    if ON_IPU:
        os._exit(7)
    return jnp.ones(2)


@program(1e-3, "none")
def elsewhere():
    return jax.device_put(jnp.ones(2), jax.devices("cpu")[0])


@program(1e-3, "none")
def last():
    return jnp.ones(2)
"""


@pytest.fixture
def file(tmp_path: Path):
    path = tmp_path / "with_jax.py"
    path.write_text(PROGRAMS)
    return read(path)


def test_what_goes_wrong_is_found_and_the_rest_still_runs(file):
    found = {outcome.program.name: outcome for outcome in outcomes(file, timeout=60)}
    verdicts = {name: outcome.passed for name, outcome in found.items()}
    failing = {"wrong", "repaired", "raises", "ends_the_process", "elsewhere"}
    assert verdicts == {name: name not in failing for name in verdicts}
    assert list(verdicts) == [program.name for program in file.programs]
    assert "differs by 2.0e-03; tolerated are 1e-03" in found["wrong"].problem
    assert "nothing there" in found["raises"].problem
    assert found["ends_the_process"].problem.startswith("on ipu: process ended with 7: ")
    assert "got results on cpu" in found["elsewhere"].problem
    table = "\n".join(command.lines(file, list(found.values())))
    assert "known defect: wrong on purpose" in table
    assert table.count("FAILED") == len(failing)
    assert "delete its `unrepaired`" in command.why(file, found["repaired"])


def test_a_program_that_hangs_ends_at_the_time_limit(tmp_path: Path):
    path = tmp_path / "hanging.py"
    beginning = PROGRAMS[: PROGRAMS.index("@program")]
    path.write_text(f'{beginning}@program(0, "none")\ndef hangs():\n    time.sleep(600)\n')
    (outcome,) = outcomes(read(path), timeout=3)
    assert outcome.problem == "on ipu: no result within 3 s\non cpu: no result within 3 s"
    assert not outcome.passed


def test_a_file_that_cannot_be_imported_fails_in_all_its_programs(tmp_path: Path):
    path = tmp_path / "without.py"
    path.write_text("import no_such_library\n" + PROGRAMS)
    found = outcomes(read(path), timeout=60)
    assert len(found) == PROGRAMS.count("@program")
    assert all("No module named 'no_such_library'" in outcome.problem for outcome in found)


def test_differences_are_relative_to_an_arrays_largest_number():
    wanted = {"x": np.array([0.0, 4.0]), "n": np.array([1, 2])}
    assert difference({"x": np.array([0.0, 4.004]), "n": np.array([1, 2])}, wanted) == (
        pytest.approx(1e-3)
    )
    assert difference({**wanted, "x": np.array([np.nan, 4.0])}, wanted) == np.inf
    assert difference({**wanted, "n": np.array([1, 3])}, wanted) == np.inf
    assert difference(wanted, wanted) == 0


@pytest.mark.parametrize(
    ("got", "wanted", "message"),
    [
        ({"x": np.ones(2)}, {"y": np.ones(2)}, r"needs results \['y'\]; got \['x'\]"),
        ({"x": np.ones(2)}, {"x": np.ones(3)}, r"x needs float64\(3,\); got float64\(2,\)"),
        ({"x": np.ones(1)}, {"x": np.array([np.inf])}, "needs finite numbers from the CPU"),
        ({"x": np.zeros(1)}, {"x": np.zeros(1)}, "needs a result that is not zero"),
    ],
)
def test_results_that_do_not_compare(got, wanted, message):
    with pytest.raises(ValueError, match=message):
        difference(got, wanted)
