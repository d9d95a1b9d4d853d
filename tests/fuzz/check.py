"""Runs one random program everywhere and says where the results differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from ipujax import jax_compat
from ipujax.errors import OracleError
from tests.fuzz.generator import RandomProgram

Run = Callable[[bytes, Sequence[np.ndarray]], list[Any]]


@dataclass
class Outcome:
    """What became of one program.

    Attributes:
        differences: one line for each result that differs from an oracle's.
        refused: names of oracles that did not run it, and why.
    """

    seed: int
    differences: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


def on_platform(platform: str) -> Run:
    """Compiles and runs in this process."""

    def run(code: bytes, arguments: Sequence[np.ndarray]) -> list[Any]:
        return jax_compat.load_program(code, jax.devices(platform)[0])(arguments)

    return run


def check(
    program: RandomProgram, oracles: Mapping[str, Run], referee: Run | None = None
) -> Outcome:
    """Compares the IPU with each oracle; a refusal of the IPU is a difference too.

    Args:
        referee: the reference interpreter. Where it agrees with the IPU, another oracle that does
            not is wrong itself, and is counted as one that did not run the program.
    """
    outcome = Outcome(program.seed)
    try:
        ours = on_platform("ipu")(program.code, program.arguments)
    except Exception as error:
        outcome.differences.append(f"ipu: {type(error).__name__}: {str(error)[:600]}")
        return outcome
    for name, run in oracles.items():
        if name == "interpreter" and beyond_interpreter(program):
            outcome.refused[name] = "it compares NaN in no total order"
            continue
        try:
            found = _differences(program, ours, run)
        except (OracleError, jax.errors.JaxRuntimeError) as error:
            outcome.refused[name] = str(error)
            continue
        if found and referee is not None and _agrees(program, ours, referee):
            outcome.refused[name] = f"it is wrong alone: {found[0]}"
            continue
        outcome.differences += [f"{name}: {text}" for text in found]
    return outcome


def _differences(program: RandomProgram, ours: Sequence[Any], run: Run) -> list[str]:
    theirs = run(program.code, program.arguments)
    pairs = zip(ours, theirs, program.errors, strict=True)
    texts = [unequal(a, b, allowed) for a, b, allowed in pairs]
    return [f"result {k}: {text}" for k, text in enumerate(texts) if text]


def _agrees(program: RandomProgram, ours: Sequence[Any], referee: Run) -> bool:
    if beyond_interpreter(program):
        return False
    try:
        return not _differences(program, ours, referee)
    except OracleError:
        return False


def beyond_interpreter(program: RandomProgram) -> bool:
    """Whether NaN may be sorted: the interpreter compares as if no total order were asked for."""
    finite = all(np.isfinite(a.astype(np.float64)).all() for a in program.arguments)
    return "TOTALORDER" in program.text and not finite


def unequal(ours: np.ndarray, theirs: np.ndarray, allowed: float) -> str:
    """Empty where no element differs by more than `allowed`; NaN equals NaN, and 0 equals -0."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{ours.dtype}{ours.shape} instead of {theirs.dtype}{theirs.shape}"
    kind = np.float64 if ours.dtype.kind in "fV" else np.int64
    a, b = ours.astype(kind), theirs.astype(kind)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.abs(a - b) <= 2 * allowed)
    if kind is np.float64:
        same |= np.isnan(a) & np.isnan(b)
    if same.all():
        return ""
    at = tuple(np.argwhere(~same)[0])
    return (
        f"{(~same).sum()} of {same.size} elements of {ours.dtype}{list(ours.shape)} differ, "
        f"at {[int(i) for i in at]}: {ours[at]} instead of {theirs[at]} (allowed {allowed:.3g})"
    )
