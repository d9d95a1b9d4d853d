"""optax's own tests, as its wheel ships them, on JAX's CPU backend and on "ipu".

Every module runs unchanged in a process of its own, once with `JAX_PLATFORMS=cpu` and once with
`JAX_PLATFORMS=ipu,cpu`, where "ipu" is the default; what passes on one must pass on the other. Some
tests are about 64 bits, so 64-bit types are emulated instead of refused.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.conformance.runner import environment

#: The environment of each platform's runs.
PLATFORMS = {
    "cpu": {"JAX_PLATFORMS": "cpu"},
    "ipu": {"JAX_PLATFORMS": "ipu,cpu", "IPUJAX_X64": "emulate"},
}


class ModuleResult(NamedTuple):
    """How the tests of one module went on one platform: names, in the module's order."""

    module: str
    platform: str
    passed: list[str]
    failed: list[str]
    skipped: list[str]
    note: str = ""


def modules() -> list[str]:
    """The test modules of the installed optax.

    Raises:
        RuntimeError: optax is not installed.
    """
    spec = importlib.util.find_spec("optax")
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError(
            "[conformance] needs optax; got none. Install it with pip install optax."
        )
    root = Path(spec.submodule_search_locations[0])
    found = sorted(path.relative_to(root.parent) for path in root.rglob("*_test.py"))
    return [".".join(path.with_suffix("").parts) for path in found]


def run_modules(
    names: Sequence[str],
    platforms: Sequence[str],
    jobs: int,
    seconds_each: float,
    on_result: Callable[[ModuleResult], None],
) -> list[ModuleResult]:
    """Runs each module on each platform; the results by module, then platform."""

    def run(pair: tuple[str, str]) -> ModuleResult:
        result = run_module(*pair, seconds_each)
        on_result(result)
        return result

    pairs = [(name, platform) for name in names for platform in platforms]
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        return list(pool.map(run, pairs))


def run_module(name: str, platform: str, seconds: float) -> ModuleResult:
    """One module in a child process; one that is stopped or dies has no passed tests."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["-c", "/dev/null", "--rootdir", folder]
        command += [f"--junitxml={report}", "--pyargs", name]
        env = environment() | PLATFORMS[platform]
        try:
            run = subprocess.run(
                command, cwd=folder, env=env, capture_output=True, text=True, timeout=seconds
            )
        except subprocess.TimeoutExpired:
            return ModuleResult(name, platform, [], [], [], f"stopped after {seconds:g} s")
        if not report.exists():
            note = f"exit code {run.returncode}: {(run.stdout + run.stderr)[-300:]}"
            return ModuleResult(name, platform, [], [], [], note)
        return _read(name, platform, report)


def _read(name: str, platform: str, report: Path) -> ModuleResult:
    """Sorts tests by outcome; one with failing subtests is listed more than once, and failed."""
    outcome: dict[str, str] = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        test = f"{case.get('classname')}::{case.get('name')}"
        kinds = {child.tag for child in case}
        if kinds & {"failure", "error"} or outcome.get(test) == "failed":
            outcome[test] = "failed"
        else:
            outcome[test] = "skipped" if "skipped" in kinds else "passed"
    passed, failed, skipped = (
        [test for test, how in outcome.items() if how == wanted]
        for wanted in ("passed", "failed", "skipped")
    )
    return ModuleResult(name, platform, passed, failed, skipped)


def differences(results: Sequence[ModuleResult]) -> list[str]:
    """Tests that pass on the CPU and not on "ipu"."""
    by_key = {(result.module, result.platform): result for result in results}
    lost = []
    for (module, platform), cpu in by_key.items():
        ipu = by_key.get((module, "ipu"))
        if platform == "cpu" and ipu is not None:
            passes = set(ipu.passed)
            lost += [f"{module} {test}" for test in cpu.passed if test not in passes]
    return lost


def table(results: Sequence[ModuleResult]) -> str:
    """Counts by module and in all, as text."""
    lines = []
    for result in results:
        counts = f"{len(result.passed)} passed, {len(result.failed)} failed"
        lines.append(f"{result.platform} {result.module}: {counts} {result.note}".rstrip())
    for platform in dict.fromkeys(result.platform for result in results):
        mine = [result for result in results if result.platform == platform]
        passed, failed, skipped = (
            sum(len(each) for each in lists)
            for lists in zip(*((r.passed, r.failed, r.skipped) for r in mine), strict=True)
        )
        counts = f"{passed} passed, {failed} failed, {skipped} skipped"
        lines.append(f"{platform}: {counts} in {len(mine)} modules")
    return "\n".join(lines)
