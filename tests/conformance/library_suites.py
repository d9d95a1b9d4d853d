"""Tests of optax and flax themselves, on JAX's CPU backend and on "ipu".

optax ships its tests in its wheel, flax in its source distribution, which pip brings in the version
that is installed. (equinox ships them in neither.) Every module runs unchanged in a child process,
once with `JAX_PLATFORMS=cpu` and once with `JAX_PLATFORMS=ipu,cpu`, where "ipu" is the default.
Tests that pass on the CPU must pass on IPUs. Some tests need 64-bit types, so these are emulated.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tarfile
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from tests.conformance.runner import environment

#: The environment of each platform's runs.
PLATFORMS = {
    "cpu": {"JAX_PLATFORMS": "cpu"},
    "ipu": {"JAX_PLATFORMS": "ipu,cpu", "IPUJAX_X64": "emulate"},
}


#: Where source distributions are unpacked.
SOURCES = Path(__file__).resolve().parents[2] / "build" / "suites"
#: flax's own script of tests asks for four devices.
FLAX = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
#: They need TensorFlow, which has no part in what is tested.
FLAX_LEFT_OUT = ("io_test", "tensorboard_test")
#: Tests, by module, that count operations of XLA's program before it is optimised. On IPUs
#: `lowered.cost_analysis()` is that of the compiled program (docs/guides/limits.md), in which an
#: addition of zeros, for one, is none.
COUNTS_OF_XLA = {
    "linen/summary_test": {
        ".SummaryTest::test_module_reuse",
        ".SummaryTest::test_partitioned_params",
    }
}


class ModuleResult(NamedTuple):
    """The results of one test module on one platform: names of tests, in order."""

    module: str
    platform: str
    passed: list[str]
    failed: list[str]
    skipped: list[str]
    note: str = ""


class Suite(NamedTuple):
    """A library's tests: names of modules, and what pytest is given for one of them."""

    modules: list[str]
    target: Callable[[str], list[str]]
    environment: dict[str, str]


def suite(library: str) -> Suite:
    """optax's or flax's tests.

    Raises:
        RuntimeError: the library is not installed, or pip cannot bring its sources.
    """
    spec = importlib.util.find_spec(library)
    if spec is None or not spec.submodule_search_locations:
        raise RuntimeError(
            f"[conformance] needs {library}; got none. Install it with pip install {library}."
        )
    if library == "optax":
        root = Path(spec.submodule_search_locations[0])
        return Suite(_tests(root, root.parent, "."), lambda name: ["--pyargs", name], {})
    root = _sources(library) / "tests"
    names = [n for n in _tests(root, root, "/") if not n.endswith(FLAX_LEFT_OUT)]
    return Suite(names, lambda name: [str(root / f"{name}.py")], FLAX)


def _tests(folder: Path, root: Path, between: str) -> list[str]:
    found = sorted(path.relative_to(root) for path in folder.rglob("*_test.py"))
    return [between.join(path.with_suffix("").parts) for path in found]


def _sources(library: str) -> Path:
    """The unpacked source distribution of the installed version, from pip."""
    name = f"{library}-{version(library)}"
    if (SOURCES / name).is_dir():
        return SOURCES / name
    SOURCES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SOURCES) as folder:
        # Only the library: what builds its metadata may come as wheels.
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary"]
        run = subprocess.run(
            [*command, library, f"{library}=={version(library)}", "-d", folder],
            capture_output=True,
            text=True,
            check=False,
        )
        found = list(Path(folder).glob("*.tar.gz"))
        if run.returncode or not found:
            raise RuntimeError(
                f"[conformance] needs the sources of {name}; got {run.stderr[-300:]}. Connect to "
                "a package index."
            )
        with tarfile.open(found[0]) as archive:
            archive.extractall(folder, filter="data")
        Path(folder, name).rename(SOURCES / name)
    return SOURCES / name


def run_modules(
    suite: Suite,
    names: Sequence[str],
    platforms: Sequence[str],
    jobs: int,
    seconds_each: float,
    on_result: Callable[[ModuleResult], None],
) -> list[ModuleResult]:
    """Runs each module on each platform; the results by module, then platform."""

    def run(pair: tuple[str, str]) -> ModuleResult:
        result = run_module(suite, *pair, seconds_each)
        on_result(result)
        return result

    pairs = [(name, platform) for name in names for platform in platforms]
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        return list(pool.map(run, pairs))


def run_module(suite: Suite, name: str, platform: str, seconds: float) -> ModuleResult:
    """Runs one module in a child process; one that times out or crashes has no passed tests."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        command += ["-c", "/dev/null", "--rootdir", folder]
        command += [f"--junitxml={report}", *suite.target(name)]
        env = environment() | PLATFORMS[platform] | suite.environment
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
    """Sorts tests by outcome; a test with failing subtests occurs several times, and failed."""
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
    """Tests that pass on the CPU and not on "ipu", without COUNTS_OF_XLA."""
    by_key = {(result.module, result.platform): result for result in results}
    lost = []
    for (module, platform), cpu in by_key.items():
        ipu = by_key.get((module, "ipu"))
        if platform == "cpu" and ipu is not None:
            passes = set(ipu.passed) | COUNTS_OF_XLA.get(module, set())
            lost += [f"{module} {test}" for test in cpu.passed if test not in passes]
    return lost


def table(results: Sequence[ModuleResult]) -> str:
    """Counts by module and in total, as text."""
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
