"""`python -m tests.fuzz --kind functions --show SEED`: the call, its mode and what differs."""

from __future__ import annotations

import sys

from tests.fuzz.functions.calls import from_seed
from tests.fuzz.functions.compare import compared


def show(seed: int) -> int:
    """Prints them."""
    made = from_seed(seed)
    print(made.text if made else "no form fits")
    for number, array in enumerate(made.arrays if made else ()):
        print(f"array {number}: {array.tolist()}")
    found = compared(seed)
    print(found.get("mode", ""))
    for text in found["differences"]:
        print(f"# {text}")
    return 1 if found["differences"] else 0


if __name__ == "__main__":
    sys.exit(show(int(sys.argv[-1])))
