"""One program on the IPU, on the IPU with mechanisms of the engine switched off, and elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from ipujax import jax_compat
from ipujax.config.program import mechanisms
from ipujax.errors import OracleError
from tests.fuzz import check
from tests.fuzz.generator import RandomProgram
from tests.fuzz.programs.program import Program
from tests.fuzz.programs.second_opinion import NAMES, in_float64
from tests.fuzz.values import FLOATS

#: Rounded results may differ so far in units of their largest element; beyond it, float64 decides.
_CLOSE = {"float32": 1e-5, "float16": 0.01, "bfloat16": 0.06, "complex64": 1e-5}
#: The part of a result's elements that may lie beside ties.
_TIES = 0.01
#: Elements that the interpreter computes in less time than XLA compiles a program.
INTERPRETED_WORK = 30_000

Run = Callable[[bytes, Sequence[np.ndarray]], list[Any]]


@dataclass
class Outcome:
    """The outcome of one program.

    Attributes:
        differences: one line for each result that is wrong.
        refused: names of oracles that did not run it or are wrong alone, and why; "jax" where JAX
            cannot lower it.
    """

    seed: int
    differences: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)


def on_ipu(without: str = "") -> Run:
    """Runs with these mechanisms of the engine switched off."""
    options = {"ipu_engine_without": without} if without else {}

    def run(code: bytes, arguments: Sequence[np.ndarray]) -> list[Any]:
        device = jax.devices("ipu")[0]
        return jax_compat.load_program(code, device, options)([a.copy() for a in arguments])

    return run


def oracles(program: Program, interpreter: Run, cpu: bool) -> dict[str, Run]:
    """Who is asked, in this order: the interpreter first where it is done sooner than XLA compiles.

    What differs from one is decided by the others (`_judge`).
    """
    if not cpu:
        return {"interpreter": interpreter}
    found = {"interpreter": interpreter, "cpu": check.on_platform("cpu")}
    small = program.work < INTERPRETED_WORK and not beyond_interpreter(program)
    return found if small and program.seed % 4 else {"cpu": found["cpu"], **found}


def beyond_interpreter(program: Program) -> bool:
    """Whether NaN or an infinity may be sorted: it compares as if no total order were asked for."""
    return check.beyond_interpreter(program.lowered[1], program.arguments)


def switched_off(seed: int) -> tuple[str, ...]:
    """All mechanisms at once, and one of them alone."""
    names = mechanisms()
    if not names:  # built against an SDK folder
        return ()
    return (",".join(names), names[seed % len(names)])


def compare(
    program: Program, without: Sequence[str], interpreter: Run, cpu: bool = True
) -> Outcome:
    """All comparisons of one program; a refusal of the IPU is a difference too.

    Args:
        without: what is switched off, for each run that must give the same bits.
        cpu: whether JAX's CPU backend is asked.
    """
    outcome = Outcome(program.seed)
    try:
        code, _ = program.lowered
    except Exception as error:  # as when a checkpoint returns a constant, which has no `.at`
        outcome.refused["jax"] = f"{type(error).__name__}: {_short(error)}"
        return outcome
    try:
        ours = on_ipu()(code, program.arguments)
        for mechanisms in without:
            outcome.differences += _with_and_without(program, ours, mechanisms)
    except Exception as error:
        outcome.differences.append(f"ipu: {type(error).__name__}: {_short(error)}")
        return outcome
    asked = oracles(program, interpreter, cpu)
    for name, run in asked.items():
        try:
            theirs = run(code, [a.copy() for a in program.arguments])
        except (OracleError, jax.errors.JaxRuntimeError) as error:
            outcome.refused[name] = str(error)
            continue
        one_by_one = [check.one_by_one(asked["cpu"])] if cpu else []
        others = [*one_by_one, *(r for n, r in asked.items() if n != name)]
        _judge(program, ours, name, theirs, others, outcome)
        break
    return outcome


def _short(error: Exception) -> str:
    """Its message's first line, and the last one where a traceback follows."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    return lines[0] if len(lines) == 1 else f"{lines[0][:300]} ... {lines[-1][:200]}"


def _with_and_without(program: Program, ours: Sequence[Any], mechanism: str) -> Iterator[str]:
    """Bit for bit; any NaN is as good as another."""
    others = on_ipu(mechanism)(program.lowered[0], program.arguments)
    for k, (a, b) in enumerate(zip(ours, others, strict=True)):
        if a.tobytes() == b.tobytes():
            continue
        same = (_bits(a) == _bits(b)).all(-1) | ((a != a) & (b != b))
        if not same.all():
            at = tuple(np.argwhere(~same)[0])
            yield (
                f"without {mechanism}: result {k}: {(~same).sum()} of {same.size} elements of "
                f"{a.dtype}{list(a.shape)} differ, at {[int(i) for i in at]}: {a[at]} with it, "
                f"{b[at]} without"
            )


def _bits(array: np.ndarray) -> np.ndarray:
    """The bytes of each element along one dimension more."""
    data = np.ascontiguousarray(array)
    return data.view(np.uint8).reshape(*array.shape, data.dtype.itemsize)


def _judge(
    program: Program,
    ours: Sequence[Any],
    name: str,
    theirs: Sequence[Any],
    others: Sequence[Run],
    outcome: Outcome,
) -> None:
    """Exact results must be equal; rounded ones close, or no farther from float64 than theirs."""
    code, text = program.lowered
    errors = [0.0 if exact else close(b) for b, exact in zip(theirs, program.exact, strict=True)]
    found = check.differing(errors, ours, theirs)
    found = {
        k: t
        for k, t in found.items()
        if program.exact[k] or not explained(text, program.arguments, ours, theirs, k)
    }
    if not found:
        return
    judged = RandomProgram(program.seed, code, text, program.arguments, errors, [])
    for judge in others:
        try:
            agrees = check.agrees(judged, ours, sorted(found), judge)
        except (OracleError, jax.errors.JaxRuntimeError):
            continue
        if agrees:
            outcome.refused[name] = f"it is wrong alone: {next(iter(found.values()))}"
            return
    outcome.differences += [f"{name}: result {k}: {text}" for k, text in found.items()]


def close(theirs: np.ndarray) -> float:
    """Half of what they may differ by: see `check.unequal`."""
    if theirs.dtype.name not in _CLOSE or not theirs.size:
        return 0.0
    wide = np.abs(theirs.astype(np.complex128 if theirs.dtype.kind == "c" else np.float64))
    largest = wide[np.isfinite(wide)].max(initial=1.0)
    return _CLOSE[theirs.dtype.name] * float(largest) / 2


def explained(
    code: str,
    arguments: Sequence[np.ndarray],
    ours: Sequence[Any],
    theirs: Sequence[Any],
    k: int,
) -> bool:
    """Whether ours is as near to what float64 gives as the CPU's is.

    Args:
        code: the program in StableHLO, as text.
    """
    if theirs[k].dtype.name not in _CLOSE:
        return False
    try:
        truth = in_float64(code, arguments)[k]
    except Exception:  # not every program has a float64 form: nothing is explained then
        return False
    a, b = (x.astype(truth.dtype) for x in (ours[k], theirs[k]))
    with np.errstate(all="ignore"):
        known = np.isfinite(b) & np.isfinite(truth)
        errors = np.abs(a - truth), np.abs(b - truth)[known]
        largest = np.abs(truth[known]).max(initial=1.0)
        allowed = 8 * errors[1].max(initial=0.0) + _coarsest(code) * largest
        wrong = known & ~(errors[0] <= allowed)
    if 0 < wrong.mean() <= _TIES:
        wrong &= ~_beside_a_tie(code, arguments, k, a, allowed)
    return not wrong.any()


def _coarsest(text: str) -> float:
    """What results may differ by where values were rounded to the narrowest float on the way."""
    return max((_CLOSE[name] for mlir, name in NAMES.items() if f"{mlir}>" in text), default=0.0)


def _beside_a_tie(
    code: str, arguments: Sequence[np.ndarray], k: int, ours: Any, allowed: float
) -> Any:
    """Where ours is right for arguments that are larger or smaller by next to nothing.

    The gradient of a maximum jumps where rounding makes or breaks a tie.
    """
    right = np.zeros(ours.shape, bool)
    for nudge in (1e-9, -1e-9):
        nudged = [
            a.astype(np.float64) + nudge * (1 + np.abs(a.astype(np.float64)))
            if a.dtype.name in FLOATS
            else a
            for a in arguments
        ]
        right |= np.abs(ours - in_float64(code, nudged)[k]) <= allowed
    return right
