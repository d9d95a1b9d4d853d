"""`python -m tests.fuzz --kind library --show SEED`: the call, its mode and what differs."""

from __future__ import annotations

import sys

from tests.fuzz.library.compare import compared, from_seed


def show(seed: int) -> int:
    """Prints them."""
    run = from_seed(seed)
    print(run)
    found = compared(run)
    for text in found:
        print(f"# {text}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(show(int(sys.argv[-1])))
