"""The first programs of `python -m tests.fuzz --kind meshes`, and those that failed once."""

from __future__ import annotations

from collections import Counter

import jax.numpy as jnp
import numpy as np
import pytest

from tests.fuzz import chunks
from tests.fuzz.meshes.compare import compared
from tests.fuzz.meshes.place import MeshSpec, P, Place
from tests.fuzz.meshes.program import MODES, Part, Program, Step, from_seed
from tests.fuzz.meshes.steps import STEPS


@pytest.mark.parametrize(("first", "count"), [(0, 6)])
def test_programs_by_seed(first: int, count: int):
    found = chunks.run_chunk(first, count, "meshes", "cpu")
    assert [o["seed"] for o in found] == list(range(first, first + count))
    assert {o["seed"]: o["differences"] for o in found if o["differences"]} == {}


@pytest.mark.parametrize("place", ["one device", "mesh"])
def test_an_array_that_two_values_are_is_not_donated(place: str):
    """A part that returns its argument, and one to which the argument is donated."""
    mesh = MeshSpec((2,), True, (0, 1))
    arrays, specs = [np.arange(8, dtype=np.float32)], [P("a")]
    steps = (Step("transpose", (0,), ((0,),)),)
    same = Part("eager", (0,), steps, (1,))
    donated = Part("donate", (0, 1), (Step("jit", (0, 1), ()),), (2,))
    program = Program(0, mesh, arrays, specs, [same, donated])
    on = Place(None, False) if place == "one device" else Place(mesh.of("cpu"), True)
    found = [np.asarray(x) for x in program.run(on)]
    assert [x.tolist() for x in found] == [arrays[0].tolist(), (2 * arrays[0]).tolist()]


@pytest.mark.parametrize("with_cpu", [True, False])
def test_what_jax_refuses_of_unreduced_values_is_no_fault(with_cpu: bool):
    """Outside of jit JAX has no zeros of them, which the gradient of a selection needs."""
    found = compared(from_seed(61001004), with_cpu)
    assert found["differences"] == []
    assert "device_indices_map" in found["refused"]["jax"]


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
