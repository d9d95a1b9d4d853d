"""Runs the programs of one file on each platform, in child processes, and compares results."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tests.libraries.program import File, Program

ROOT = Path(__file__).resolve().parents[2]
#: Platform -> JAX_PLATFORMS. Callbacks of programs on "ipu" need the CPU backend too.
PLATFORMS = {"ipu": "ipu,cpu", "cpu": "cpu"}
Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Run:
    """What one platform made of one program: `arrays` by path, or an error."""

    seconds: float
    error: str
    arrays: Arrays


@dataclass(frozen=True)
class Outcome:
    """One program on both platforms; `problem` is empty where they agree."""

    program: Program
    seconds: Mapping[str, float]
    difference: float
    problem: str

    @property
    def passed(self) -> bool:
        """A program with a known defect has to show it: else its mark is out of date."""
        return bool(self.problem) == bool(self.program.unrepaired)


def outcomes(file: File, timeout: float) -> list[Outcome]:
    """Runs all programs of a file; `timeout` is of one program, in seconds."""
    runs = {platform: _runs(file, platform, timeout) for platform in PLATFORMS}
    return [
        _outcome(program, {platform: runs[platform][program.name] for platform in PLATFORMS})
        for program in file.programs
    ]


def _outcome(program: Program, runs: Mapping[str, Run]) -> Outcome:
    seconds = {platform: run.seconds for platform, run in runs.items()}
    errors = [f"on {platform}: {run.error}" for platform, run in runs.items() if run.error]
    found, problem = np.inf, "\n".join(errors)
    if not errors:
        try:
            found = difference(runs["ipu"].arrays, runs["cpu"].arrays)
            if not found <= program.tolerance:
                problem = f"differs by {found:.1e}; tolerated are {program.tolerance:.0e}"
        except ValueError as wrong:
            problem = str(wrong)
    return Outcome(program, seconds, found, problem)


def difference(got: Arrays, wanted: Arrays) -> float:
    """The largest difference of a number, relative to the largest of its array."""
    if got.keys() != wanted.keys():
        raise ValueError(f"[libraries] needs results {list(wanted)}; got {list(got)}.")
    if not any(np.any(array) for array in wanted.values()):
        raise ValueError("[libraries] needs a result that is not zero; got zeros only.")
    return max(_of_array(path, got[path], wanted[path]) for path in wanted)


def _of_array(path: str, got: np.ndarray, wanted: np.ndarray) -> float:
    if (got.shape, got.dtype) != (wanted.shape, wanted.dtype):
        raise ValueError(
            f"[libraries] {path} needs {wanted.dtype}{wanted.shape}; got {got.dtype}{got.shape}."
        )
    if wanted.dtype.kind not in "fc":
        return 0.0 if np.array_equal(got, wanted) else np.inf
    if not np.isfinite(wanted).all():
        raise ValueError(f"[libraries] {path} needs finite numbers from the CPU; got {wanted}.")
    if not np.isfinite(got).all():
        return np.inf
    largest = float(np.abs(wanted).max(initial=0))
    return float(np.abs(got - wanted).max(initial=0)) / (largest or 1.0)


def _runs(file: File, platform: str, timeout: float) -> dict[str, Run]:
    """Name -> run. Where a program ends or blocks its process, the others get another one."""
    runs: dict[str, Run] = {}
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder)
        while len(runs) < len(file.programs):
            before = len(runs)
            why = _process(file, platform, results, list(runs), timeout)
            begun = ""
            for event in _events(results):
                begun = event.get("begin", begun)
                if "name" in event:
                    runs[event["name"]] = _run(event, results)
            if begun and begun not in runs:
                runs[begun] = Run(0.0, why, {})
            if len(runs) == before:  # it ended before it began a program
                missing = [p.name for p in file.programs if p.name not in runs]
                runs |= {name: Run(0.0, why, {}) for name in missing}
    return runs


def _run(event: dict, results: Path) -> Run:
    if event["error"]:
        return Run(event["seconds"], event["error"], {})
    with np.load(results / f"{event['name']}.npz") as stored:
        return Run(event["seconds"], "", dict(stored))


def _events(results: Path) -> Iterator[dict]:
    file = results / "events"
    return map(json.loads, file.read_text().splitlines() if file.exists() else [])


def _process(file: File, platform: str, results: Path, without: list[str], timeout: float) -> str:
    """Runs a worker; returns why it ended, for the case that it ended early."""
    command = [sys.executable, "-m", "tests.libraries.worker", str(file.path), platform]
    command += [str(results), "--without", *without]
    limit = timeout * (len(file.programs) - len(without))
    try:
        run = subprocess.run(
            command, cwd=ROOT, env=_environment(platform), capture_output=True, timeout=limit
        )
    except subprocess.TimeoutExpired:
        return f"no result within {limit:.0f} s"
    text = (run.stdout + run.stderr).decode(errors="replace")
    return f"process ended with {run.returncode}: {text[-2000:]}"


def _environment(platform: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("IPUJAX_", "JAX_"))}
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "TQDM_DISABLE": "1"}
    checked = {"IPUJAX_VERIFY": "1", "JAX_PLATFORMS": PLATFORMS[platform]}
    return {**kept, **quiet, **checked}
