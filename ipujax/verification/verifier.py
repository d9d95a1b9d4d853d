"""Compares a program that ran on the IPU with the oracles; raises if it is wrong."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from ipujax import jax_compat
from ipujax.errors import IpuError, MismatchError, OracleError
from ipujax.verification.compare import difference, tolerance_of
from ipujax.verification.locate import Finding, Run, locate
from ipujax.verification.oracles import Oracle
from ipujax.verification.reproduce import write_reproducer

OURS = "ipu"


@dataclass
class VerifiedProgram:
    """A checked program.

    Attributes:
        name: the name of the jitted function, or of the op that ran eagerly.
        max_error: by oracle, the largest difference of any element of the results.
        notes: by oracle, why it was not used, or how it differs from the IPU and another oracle.
    """

    name: str
    max_error: dict[str, float] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        errors = ", ".join(f"{name} {error:.3g}" for name, error in self.max_error.items())
        notes = "".join(f"\n    {name}: {note}" for name, note in self.notes.items())
        return f"{self.name}: {'max error to ' + errors if errors else 'not compared'}{notes}"


class Verifier:
    """Owns the processes of the oracles; `close` ends them. Not thread-safe.

    Args:
        oracles: their names; reports of a mismatch show the first one.
        rtol: relative tolerance by dtype name; overrides the defaults of `compare`.
        folder: for reproducers; None writes none.
        timeout: seconds for each program on each oracle.
    """

    def __init__(
        self, oracles: Sequence[str], rtol: Mapping[str, float], folder: str | None, timeout: float
    ):
        self._oracles = [Oracle(name, timeout) for name in oracles]
        self._rtol = dict(rtol)
        self._folder = folder

    def close(self) -> None:
        for oracle in self._oracles:
            oracle.close()

    def check(self, call: jax_compat.WatchedCall) -> VerifiedProgram:
        """Compares the results of one call.

        They are accepted if any oracle agrees; the notes mention oracles that differ.

        Raises:
            MismatchError: they differ from those of every oracle that can run the program.
        """
        program = VerifiedProgram(call.name)
        reason = _not_checked(call)
        if reason:
            program.notes = {oracle.name: reason for oracle in self._oracles}
            return program
        agrees = ""
        differing: list[tuple[Oracle, list[Any], str]] = []
        for oracle in self._oracles:
            try:
                theirs = self._run(oracle, call)
            except OracleError as error:
                program.notes[oracle.name] = str(error)
                continue
            program.max_error[oracle.name] = _max_error(call.results, theirs)
            differs = self._difference(call.results, theirs)
            if differs:
                differing.append((oracle, theirs, differs))
            else:
                agrees = agrees or oracle.name
        if differing and not agrees:
            raise self._mismatch(call, *differing[0])
        for oracle, _, differs in differing:
            program.notes[oracle.name] = f"differs from both ipu and {agrees}: {differs}"
        return program

    def _run(self, oracle: Oracle, call: jax_compat.WatchedCall) -> list[Any]:
        """Runs the program as lowered for the IPU, or, if that is refused, for the CPU."""
        try:
            return oracle.run(call.lower(OURS), call.arguments)
        except OracleError as error:
            try:
                return oracle.run(call.lower("cpu"), call.arguments)
            except OracleError:
                raise error from None

    def _difference(self, ours: Sequence[Any], theirs: Sequence[Any]) -> str:
        """What differs; empty if all results agree."""
        for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
            rtol = self._rtol.get(b.dtype.name, tolerance_of(b.dtype, whole_program=True))
            found = difference(a, b, rtol)
            if found:
                return f"result {k} of {len(ours)}: {found.what}"
        return ""

    def _mismatch(
        self, call: jax_compat.WatchedCall, oracle: Oracle, theirs: list[Any], differs: str
    ) -> MismatchError:
        code = call.lower(OURS)
        device = jax.local_devices(backend=OURS)[0]

        def ours(code: bytes, arguments: Sequence[np.ndarray]) -> list[Any]:
            return jax_compat.load_program(code, device, call.options)(arguments)

        try:
            finding = locate(code, call.arguments, ours, oracle.run)
        except (IpuError, jax.errors.JaxRuntimeError) as error:
            finding, why = None, f" (the search ended with: {error})"
        else:
            why = ""
        heading = f"[verify] needs {call.name} to agree with {oracle.name}; got {differs}."
        if finding is None:
            worst = _max_error(call.results, theirs)
            text = (
                f"{heading}\nNo op and no piece of the program differs by more than its dtype "
                f"allows{why}{_explained(worst)}"
            )
            values = {OURS: call.results, oracle.name: theirs}
            return MismatchError(text, values=values, max_error=worst)
        return self._report(heading, finding, ours, call.options)

    def _report(
        self, heading: str, finding: Finding, ours: Run, options: Mapping[str, Any]
    ) -> MismatchError:
        values, lines = _everywhere(finding, ours, self._oracles)
        compared = [v for name, v in values.items() if name != OURS]
        errors = [_max_error(values[OURS], v) for v in compared] if OURS in values else []
        path = ""
        if self._folder is not None:
            path = str(write_reproducer(Path(self._folder), finding, heading, options))
        where = f" at {finding.source}" if finding.source else ""
        what = "alone" if finding.num_ops == 1 else f"in a piece of {finding.num_ops} ops"
        inside = "".join(f"\n  inside {around}" for around in finding.inside)
        shown = f"\nRun python {path} to reproduce it." if path else ""
        text = (
            f"{heading}\nThe first op that differs is {finding.op}{where}, {what}.{inside}\n"
            + "\n".join(lines)
            + shown
        )
        worst = errors[0] if errors else float("nan")
        return MismatchError(text, finding.op, finding.source, values, worst, path)


def _not_checked(call: jax_compat.WatchedCall) -> str:
    """Why a call is not checked; empty if it is."""
    if call.platforms != [OURS]:
        return f"ran on {', '.join(call.platforms) or 'no device'}, not on one IPU device"
    if call.effects:
        return "has callbacks or ordered effects, which must not run again"
    return ""


def _explained(max_error: float) -> str:
    """Explains a difference that no piece of the program shows, and what to do about it."""
    if math.isfinite(max_error):
        return (
            ": rounding errors add up over the program. Pass a tolerance, "
            "ipujax.verify(rtol={...}), or compute in a wider dtype."
        )
    return (
        ". One result is infinite or NaN where the other is not, which no tolerance allows. "
        "Compute in a wider dtype if values come near the largest number, or report a bug."
    )


def _everywhere(
    finding: Finding, ours: Run, oracles: Sequence[Oracle]
) -> tuple[dict[str, list[Any]], list[str]]:
    """The results of the piece on the IPU and on each oracle, and a line of text for each."""
    runs: dict[str, Callable[..., list[Any]]] = {OURS: ours, **{o.name: o.run for o in oracles}}
    values: dict[str, list[Any]] = {}
    lines = []
    for name, run in runs.items():
        try:
            values[name] = run(finding.piece.code, finding.inputs)
            lines.append(f"  {name + ':':<13}{_shown(values[name])}")
        except (IpuError, jax.errors.JaxRuntimeError) as error:
            lines.append(f"  {name + ':':<13}{str(error).splitlines()[0]}")
    return values, lines


def _shown(results: Sequence[Any]) -> str:
    """The first result on one line, abbreviated if it is long."""
    array = np.asarray(results[0])
    with np.printoptions(threshold=8, edgeitems=3, linewidth=1000):
        return f"{array.dtype}{list(array.shape)} {' '.join(str(array.ravel()).split())}"


def _max_error(ours: Sequence[Any], theirs: Sequence[Any]) -> float:
    """The largest difference of any element; NaN if shapes or NaNs differ."""
    worst = 0.0
    for a, b in zip(ours, theirs, strict=True):
        found = difference(a, b, 0.0)
        if found is not None:
            worst = max(worst, found.max_error)
    return worst
