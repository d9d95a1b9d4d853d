"""Published programs ran, or ran out of memory, and the model says the same.

Those of one GC200 are compiled here; `make verdicts` compiles all.
"""

from __future__ import annotations

import pytest

from tests.stages.verdicts import FACTS, Fact, Verdict

#: Whose verdict is not the published one, and why. `make verdicts` names more.
WRONG = {"products": "Poplar keeps the matrix as it was mapped beside its rearranged copy"}


def _parameters() -> list[object]:
    own = [fact for fact in FACTS if fact.ipus == 1 and fact.machine == "gc200"]
    marks = {name: [pytest.mark.xfail(reason=why, strict=True)] for name, why in WRONG.items()}
    return [pytest.param(fact, id=fact.name, marks=marks.get(fact.name, ())) for fact in own]


@pytest.mark.parametrize("fact", _parameters())
def test_the_model_agrees(fact: Fact) -> None:
    found = fact.lower().compile().cost_analysis()["worst tile bytes"]
    assert Verdict(found).fits == fact.fits, f"{found:,.0f} bytes"


def test_published_facts_are_many_and_of_both_kinds() -> None:
    assert len({fact.name for fact in FACTS}) == len(FACTS) >= 20
    assert sum(not fact.fits for fact in FACTS) >= 4
    for fact in FACTS:
        assert fact.source
        if fact.tile_bytes is not None:
            assert Verdict(fact.tile_bytes).fits == fact.fits
