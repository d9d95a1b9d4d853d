"""Runs one random program everywhere and says where the results differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from ipujax import jax_compat
from ipujax.compiler import bugs
from ipujax.errors import OracleError
from ipujax.verification import slices
from tests.fuzz.generator import RandomProgram

Run = Callable[[bytes, Sequence[np.ndarray]], list[Any]]


@dataclass
class Outcome:
    """The outcome of one program.

    Attributes:
        differences: one line for each result that differs from an oracle's.
        refused: names of oracles that did not run it, and why.
    """

    seed: int
    differences: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


def with_bugs(outcome: dict[str, Any]) -> dict[str, Any]:
    """The outcome of any generator; a refusal that is a bug of the compiler is a difference.

    Also counts such texts, as "bugs".
    """
    found = [text for text in outcome["refused"].values() if bugs.TEXT in text]
    differences = [*outcome["differences"], *found]
    count = sum(bugs.TEXT in text for text in differences)
    return {**outcome, "differences": differences, "bugs": count}


def on_platform(platform: str) -> Run:
    """Compiles and runs in this process."""

    def run(code: bytes, arguments: Sequence[np.ndarray]) -> list[Any]:
        return jax_compat.load_program(code, jax.devices(platform)[0])(arguments)

    return run


def one_by_one(run: Run) -> Run:
    """Runs each op of a program as a separate program, so that nothing is fused or folded."""

    def each(code: bytes, arguments: Sequence[np.ndarray]) -> list[Any]:
        module = jax_compat.parse_module(code)  # a block lives as long as its module
        block = slices.main_block(module)
        known = dict(zip(block.arguments, arguments, strict=True))
        for op in slices.body_ops(block):
            alone = slices.piece(block, list(op.results), known.__contains__)
            found = run(alone.code, [known[value] for value in alone.inputs])
            known.update(zip(op.results, map(np.asarray, found), strict=True))
        return [known[value] for value in slices.returned(block)]

    return each


def check(
    program: RandomProgram, oracles: Mapping[str, Run], referee: Run | None = None
) -> Outcome:
    """Compares the IPU with each oracle; a refusal of the IPU is a difference too.

    An oracle that differs counts as one that did not run the program where it is wrong alone:
    another one, or the referee, agrees with the IPU on the results that differ, or it does so
    itself once it runs the ops one by one.

    Args:
        referee: the reference interpreter, asked for results that differ.
    """
    outcome = Outcome(program.seed)
    try:
        ours = on_platform("ipu")(program.code, program.arguments)
    except Exception as error:
        outcome.differences.append(f"ipu: {type(error).__name__}: {str(error)[:600]}")
        return outcome
    for name, run in oracles.items():
        if name == "interpreter" and beyond_interpreter(program.text, program.arguments):
            outcome.refused[name] = "it compares NaN in no total order"
            continue
        try:
            found = differing(program.errors, ours, run(program.code, program.arguments))
        except (OracleError, jax.errors.JaxRuntimeError) as error:
            outcome.refused[name] = str(error)
            continue
        others = [other for key, other in oracles.items() if key != name]
        judges = [*others, *([referee] if referee else []), one_by_one(run)]
        if found and any(agrees(program, ours, sorted(found), judge) for judge in judges):
            outcome.refused[name] = f"it is wrong alone: {next(iter(found.values()))}"
            continue
        outcome.differences += [f"{name}: result {k}: {text}" for k, text in found.items()]
    return outcome


def differing(
    errors: Sequence[float], ours: Sequence[Any], theirs: Sequence[Any]
) -> dict[int, str]:
    """How each differing result is wrong, by its number."""
    texts = [unequal(*pair) for pair in zip(ours, theirs, errors, strict=True)]
    return {k: text for k, text in enumerate(texts) if text}


def agrees(program: RandomProgram, ours: Sequence[Any], which: list[int], referee: Run) -> bool:
    """Whether the referee makes of the program's part that `which` results need what we made."""
    module = jax_compat.parse_module(program.code)  # a block lives as long as its module
    block = slices.main_block(module)
    results = slices.returned(block)
    part = slices.piece(block, [results[k] for k in which], lambda value: False)
    inputs = dict(zip(block.arguments, program.arguments, strict=True))
    arguments = [inputs[value] for value in part.inputs]
    if beyond_interpreter(part.text, arguments):
        return False
    try:
        theirs = referee(part.code, arguments)
    except (OracleError, jax.errors.JaxRuntimeError):
        return False
    return not differing([program.errors[k] for k in which], [ours[k] for k in which], theirs)


def beyond_interpreter(text: str, arguments: Sequence[np.ndarray]) -> bool:
    """Whether NaN may be sorted: the interpreter compares as if no total order were asked for."""
    finite = all(np.isfinite(a.astype(np.float64)).all() for a in arguments)
    return "TOTALORDER" in text and not finite


def unequal(ours: np.ndarray, theirs: np.ndarray, allowed: float) -> str:
    """Empty where no element differs by more than `allowed`; NaN equals NaN, and 0 equals -0."""
    if ours.shape != theirs.shape or ours.dtype != theirs.dtype:
        return f"{ours.dtype}{ours.shape} instead of {theirs.dtype}{theirs.shape}"
    kind = {"f": np.float64, "V": np.float64, "c": np.complex128}.get(ours.dtype.kind, np.int64)
    a, b = ours.astype(kind), theirs.astype(kind)
    with np.errstate(all="ignore"):
        same = (a == b) | (np.abs(a - b) <= 2 * allowed)
    if kind is not np.int64:
        same |= np.isnan(a) & np.isnan(b)
    if same.all():
        return ""
    at = tuple(np.argwhere(~same)[0])
    return (
        f"{(~same).sum()} of {same.size} elements of {ours.dtype}{list(ours.shape)} differ, "
        f"at {[int(i) for i in at]}: {ours[at]} instead of {theirs[at]} (allowed {allowed:.3g})"
    )
