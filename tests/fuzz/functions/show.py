"""`python -m tests.fuzz --kind functions --show SEED` (or training, dtypes): what differs."""

from __future__ import annotations

import sys

from tests.fuzz import dtypes
from tests.fuzz.functions import calls
from tests.fuzz.functions.compare import compared


def show(kind: str, seed: int) -> int:
    """Prints them."""
    if kind == "training":
        from tests.fuzz.functions.training import from_seed as drawn
    elif kind == "dtypes":
        drawn = dtypes.from_seed
    else:
        drawn = calls.from_seed
    made = drawn(seed)
    print(made.text if made else "no form fits")
    for number, array in enumerate(made.arrays if made else ()):
        print(f"array {number}: {array.tolist()}")
    found = dtypes.compared(seed) if kind == "dtypes" else compared(seed, drawn)
    print(found.get("mode", ""))
    for text in found["differences"]:
        print(f"# {text}")
    return 1 if found["differences"] else 0


if __name__ == "__main__":
    sys.exit(show(sys.argv[1], int(sys.argv[-1])))
