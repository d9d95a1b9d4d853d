"""`python -m tests.fuzz --kind composed --show SEED`: the composition, smaller if it fails."""

from __future__ import annotations

import sys

from tests.fuzz.composed.compare import compared
from tests.fuzz.composed.shrink import shrunk
from tests.fuzz.composed.spec import Spec, from_seed


def show(seed: int) -> int:
    """Prints the composition; the smallest one that still fails the same way, where it fails."""
    spec = from_seed(seed)
    kind = _kind(spec)
    if kind:
        spec = shrunk(spec, lambda smaller: _kind(smaller) == kind)
    outcome = compared(spec)
    print(spec)
    for text in [*outcome.differences, *outcome.refused.values()]:
        print(f"# {text}")
    return 1 if outcome.differences else 0


def _kind(spec: Spec) -> str:
    """How it fails, in few words; empty if it does not."""
    return next((text.partition(":")[0] for text in compared(spec).differences), "")


if __name__ == "__main__":
    sys.exit(show(int(sys.argv[-1])))
