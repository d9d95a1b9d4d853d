"""Published programs ran, or ran out of memory, and the model says the same.

Those of one GC200 are compiled here; `make verdicts` compiles all.
"""

from __future__ import annotations

import pytest

from tests.stages.verdicts import FACTS, Fact, Verdict

#: Programs of one GC200.
OWN = [fact for fact in FACTS if fact.ipus == 1 and fact.machine == "gc200"]


@pytest.mark.parametrize("fact", OWN, ids=lambda fact: fact.name)
def test_the_model_agrees(fact: Fact) -> None:
    found = fact.verdict()
    assert found.fits == fact.fits, f"{found.tile_bytes:,.0f} bytes"
    if fact.tile_bytes is not None:
        assert found.tile_bytes == pytest.approx(fact.tile_bytes, rel=0.1)


def test_published_facts_are_many_and_of_both_kinds() -> None:
    assert len({fact.name for fact in FACTS}) == len(FACTS) >= 20
    assert sum(not fact.fits for fact in FACTS) >= 4
    for fact in FACTS:
        assert fact.source
        if fact.tile_bytes is not None:
            assert Verdict(fact.tile_bytes).fits == fact.fits
