"""`python -m tests.fuzz --kind programs --show SEED`: the program, and what is wrong with it."""

from __future__ import annotations

import sys

from ipujax.config.program import mechanisms
from ipujax.verification.oracles import Oracle
from tests.fuzz.programs.compare import compare, switched_off
from tests.fuzz.programs.program import from_seed
from tests.fuzz.programs.shrink import kind_of, shrunk


def show(kind: str, how: str, seed: int) -> int:
    """Prints the program; the smallest one that still fails the same way, where it fails."""
    interpreter = Oracle("interpreter", timeout=20.0)
    without = {"each": mechanisms(), "none": ()}.get(how, switched_off(seed))
    program = from_seed(seed, kind)
    differences = compare(program, without, interpreter.run).differences
    failure = kind_of(differences)
    if failure:
        program = shrunk(
            program, lambda p: kind_of(compare(p, without, interpreter.run).differences) == failure
        )
        differences = compare(program, without, interpreter.run).differences
    interpreter.close()
    print(program.script())
    for text in differences:
        print(f"# {text}")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(show(sys.argv[1], sys.argv[2], int(sys.argv[3])))
