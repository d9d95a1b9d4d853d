"""The first programs of `python -m tests.fuzz --kind meshes`, and those that failed once."""

from __future__ import annotations

from collections import Counter

import jax.numpy as jnp
import pytest

from tests.fuzz import chunks
from tests.fuzz.meshes.compare import compared
from tests.fuzz.meshes.place import Place
from tests.fuzz.meshes.program import MODES, Program, from_seed
from tests.fuzz.meshes.steps import STEPS


@pytest.mark.parametrize(("first", "count"), [(0, 6)])
def test_programs_by_seed(first: int, count: int):
    found = chunks.run_chunk(first, count, "meshes", "cpu")
    assert [o["seed"] for o in found] == list(range(first, first + count))
    assert {o["seed"]: o["differences"] for o in found if o["differences"]} == {}


def test_equal_seeds_make_equal_programs():
    assert from_seed(3).text == from_seed(3).text
    assert from_seed(3).text != from_seed(4).text


def test_everything_is_drawn():
    """Each step and mode, and values of every sharding at the edges of programs."""
    drawn: Counter[str] = Counter()
    for program in map(from_seed, range(40)):
        drawn.update(part.mode for part in program.parts)
        drawn.update(step.name for part in program.parts for step in part.steps)
        for spec in program.specs:
            drawn.update(kind for kind in ("unreduced", "reduced") if getattr(spec, kind))
    assert {*STEPS, *MODES, "unreduced", "reduced"} - set(drawn) == set()


def test_a_wrong_result_is_seen(monkeypatch: pytest.MonkeyPatch):
    """As if each device's part were the whole."""
    program = next(p for p in map(from_seed, range(100)) if any(s.unreduced for s in p.specs))
    run = Program.run

    def wrong(self: Program, place: Place) -> list:
        found = run(self, place)
        return found if place.mesh is None else [jnp.cos(place.whole(x)) for x in found]

    monkeypatch.setattr(Program, "run", wrong)
    assert compared(program)["differences"]
