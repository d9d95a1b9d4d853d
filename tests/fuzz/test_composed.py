"""The first compositions of `python -m tests.fuzz --kind composed`."""

from __future__ import annotations

from tests.fuzz import chunks
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
