"""The first compositions of `python -m tests.fuzz --kind composed`."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from tests.fuzz import chunks
from tests.fuzz.composed.compare import compared
from tests.fuzz.composed.layers import LAYERS
from tests.fuzz.composed.spec import Spec, from_seed
from tests.fuzz.composed.transforms import TRANSFORMS


def rows(spec: Spec) -> set[str]:
    return {name.rpartition("#")[0] for name in (*spec.layers, *spec.transforms)}


def may_follow(inner: str, outer: str) -> bool:
    """JAX has no forward derivative of a function that has only a backward one."""
    return not (TRANSFORMS[outer].is_forward and TRANSFORMS[inner].is_backward)


def test_compositions_by_seed() -> None:
    found = chunks.run_chunk(0, 16, "composed", "cpu")
    assert {o["seed"]: o for o in found if o["differences"]} == {}


#: What jax.jit around a jax.shard_map, and the second derivative of one around a loop, refuse.
REFUSED = [
    Spec(61000592, ("host_table#0",), ("jvp#0", "shard_map#2", "outlined#3"), True),
    Spec(61003631, ("dense#0",), ("scan_of_batches#0", "pmap#1", "update#3"), True),
    Spec(61004136, ("loop#1",), ("replica_mean#1", "update#3"), True),
]


@pytest.mark.parametrize("spec", REFUSED, ids=lambda spec: "-".join(spec.transforms))
def test_what_jax_refuses_of_its_own_transforms_is_no_fault(spec: Spec) -> None:
    found = compared(spec)
    assert found.differences == []
    assert found.refused["oracle"].startswith("JAX refuses its own transforms there: ValueError")


@pytest.mark.parametrize("text", ["", "Primitive mul requires varying axes"])
def test_what_only_ours_refuses_is_a_fault(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row = TRANSFORMS["outlined"]

    def wrong(fun: Any, d: Any) -> Any:
        if d.is_ours:
            raise ValueError(text)
        return row.apply(fun, d)

    monkeypatch.setitem(TRANSFORMS, "outlined", dataclasses.replace(row, apply=wrong))
    spec = Spec(0, ("dense#0",), ("outlined#0",), True)
    assert compared(spec).differences == [f"ValueError: {text}"]


def test_equal_seeds_make_equal_compositions() -> None:
    assert from_seed(3) == from_seed(3)
    assert from_seed(3) != from_seed(4)


def test_everything_is_drawn_in_both_orders() -> None:
    drawn: set[str] = set()
    pairs: set[tuple[str, str]] = set()
    for seed in range(3000):
        spec = from_seed(seed)
        drawn |= rows(spec)
        names = [name.rpartition("#")[0] for name in spec.transforms]
        pairs |= {(a, b) for i, a in enumerate(names) for b in names[i + 1 :]}
    assert {*LAYERS, *TRANSFORMS} - drawn == set()
    turned = {(b, a) for a, b in pairs if may_follow(b, a)}
    assert len(turned - pairs) < len(turned) / 20
