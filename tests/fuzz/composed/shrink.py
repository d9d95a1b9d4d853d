"""Makes a failing composition small: fewer transforms and layers, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tests.fuzz.composed.spec import Spec


def shrunk(spec: Spec, fails: Callable[[Spec], bool]) -> Spec:
    """The smallest composition that still fails and has nothing more to leave out."""
    smaller = next(filter(fails, candidates(spec)), None)
    return spec if smaller is None else shrunk(smaller, fails)


def candidates(spec: Spec) -> Iterator[Spec]:
    """Compositions with one part less: names keep their numbers, and so what is drawn for them."""
    for i in range(len(spec.transforms)):
        yield replace(spec, transforms=(*spec.transforms[:i], *spec.transforms[i + 1 :]))
    for i in range(len(spec.layers)):
        if len(spec.layers) > 1:
            yield replace(spec, layers=(*spec.layers[:i], *spec.layers[i + 1 :]))
