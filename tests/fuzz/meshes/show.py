"""`python -m tests.fuzz --kind meshes --show SEED`: the program, smaller if it fails."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace

from tests.fuzz.meshes.compare import compared
from tests.fuzz.meshes.program import Program, from_seed


def show(seed: int) -> int:
    program = from_seed(seed)
    failure = _kind(program)
    smaller: Program | None = program
    while failure and smaller is not None:
        program = smaller
        smaller = next((p for p in _smaller(program) if _kind(p) == failure), None)
    print(program.text)
    outcome = compared(program)
    for text in outcome["differences"]:
        print(f"# {text}")
    for name, text in outcome["refused"].items():
        print(f"# {name}: {text}")
    return 1 if outcome["differences"] else 0


def _smaller(program: Program) -> Iterator[Program]:
    """Without the last part; the last one with fewer outputs, or as one of its steps."""
    *parts, last = program.parts
    if parts:
        yield replace(program, parts=parts)
    for k in range(len(last.outputs)):
        fewer = last.outputs[:k] + last.outputs[k + 1 :]
        specs = last.out_specs[:k] + last.out_specs[k + 1 :]
        if fewer:
            yield replace(program, parts=[*parts, replace(last, outputs=fewer, out_specs=specs)])
    if not last.out_specs and len(last.outputs) == 1:
        for k, step in enumerate(last.steps):
            count = len(last.inputs) + k
            if count < last.outputs[0]:
                shorter = replace(last, steps=last.steps[: k + 1], outputs=(count,))
                yield replace(program, parts=[*parts, shorter])
            del step


def _kind(program: Program) -> str:
    """How it fails, in few words; empty if it does not."""
    try:
        found = compared(program)["differences"]
    except Exception as error:
        return type(error).__name__
    return found[0].split(" at ")[0].rpartition("result")[2][2:30] if found else ""


if __name__ == "__main__":
    sys.exit(show(int(sys.argv[-1])))
