"""The first pipelines of `python -m tests.fuzz --kind pipelines`, and those that failed once."""

from __future__ import annotations

import pytest

from tests.fuzz import chunks
from tests.fuzz.pipelines.layers import LAYERS
from tests.fuzz.pipelines.shrink import shrunk
from tests.fuzz.pipelines.spec import Spec, from_seed
from tests.fuzz.pipelines.transforms import TRANSFORMS

#: Stages at once that read one argument on two IPUs; a result that is a constant; a gradient with
#: respect to what stages at once read; a call of the host in a stage that is computed again; one
#: value that waits, and a stage that is computed again; a call of the host that the CPU leaves out;
#: state that the backward pass reads, too; a sum that two IPUs read at one time; a gradient
#: of GELU of which a stage keeps parts.
FAILED = (4, 12, 101, 9_550_025, 14_000_048, 14_000_108, 14_000_130, 14_001_026, 14_001_238)


def names_of(spec: Spec) -> set[str]:
    stages = [layer.name for s in spec.stages for layer in (*s.layers, *s.beside)]
    return {*stages, spec.transform, spec.schedule, spec.shape.dtype}


@pytest.mark.parametrize(("first", "count"), [(0, 4), *((seed, 1) for seed in FAILED)])
def test_pipelines_by_seed(first: int, count: int) -> None:
    found = chunks.run_chunk(first, count, "pipelines", "cpu")
    assert {o["seed"]: o for o in found if o["differences"] or o["refused"]} == {}


def test_equal_seeds_make_equal_pipelines() -> None:
    assert from_seed(3) == from_seed(3)
    assert from_seed(3) != from_seed(4)


def test_everything_is_drawn() -> None:
    drawn = {name for seed in range(400) for name in names_of(from_seed(seed))}
    assert {*LAYERS, *TRANSFORMS} - drawn == set()


def test_what_fails_is_made_small() -> None:
    """Only one layer stays, in one stage."""
    spec = next(s for s in map(from_seed, range(100)) if "attention" in names_of(s))
    small = shrunk(spec, lambda s: "attention" in names_of(s))
    assert [layer.name for layer in small.stages[0].layers] == ["attention"]
    assert len(small.stages) == 1
    assert (small.transform, small.inputs, small.outputs) == ("value", (), ())
