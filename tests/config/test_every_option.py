"""Every option and variable that is accepted acts, is reported once, or is refused.

The lists come from the tables of the code: an option without a row here fails.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import ipujax as ipu
from ipujax._poplar import _poplar
from ipujax.compiler.engine_options import VARIABLE, with_engine_options
from ipujax.config import options as config
from ipujax.config.engine import OF_REPORTS, OF_RUNS
from ipujax.config.options import SPECS, CompileConfig
from ipujax.config.process_variables import (
    BUILD_VARIABLES,
    OF_SDK_BUILDS,
    PROCESS_VARIABLES,
    UNREAD_VARIABLES,
)
from ipujax.config.product_options import COLLECTIVES_IGNORE, PRODUCTS_IGNORE
from ipujax.errors import ConfigError
from tests.config import machine_walk
from tests.config.process_walk import PROCESS
from tests.config.walk import PROGRAMS, compiled, spec

ROOT = Path(__file__).resolve().parents[2]
WITHOUT_EFFECT = [name for name, each in SPECS.items() if each.metadata["no_effect"]]
ROWS = PROGRAMS | PROCESS
ENGINE = _poplar.engine.engineOptionNames()


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    config.forget_what_was_said()
    yield
    ipu.reset_config(keep_devices=True)


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged since the last time."""
    messages = [record.getMessage() for record in caplog.records]
    caplog.clear()
    return [text for text in messages if text.startswith("[config]")]


def test_each_option_has_a_row() -> None:
    rows = [*ROWS, *machine_walk.ROWS, *WITHOUT_EFFECT]
    assert sorted(rows) == sorted(SPECS)


@pytest.mark.parametrize("name", ROWS)
def test_two_values_of_an_option_differ(name: str, tmp_path: Path) -> None:
    row = ROWS[name]
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    first, second = (
        row.observe(name, value, folder) for value, folder in zip(row.values, folders, strict=True)
    )
    assert first != second


@pytest.fixture(scope="module")
def machines(
    run_python: Callable[..., subprocess.CompletedProcess[str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, list[object]]:
    env = {"XDG_RUNTIME_DIR": str(tmp_path_factory.mktemp("run")), "JAX_IPU_DEVICE_COUNT": ""}
    done = run_python("-m", "tests.config.machine_walk", env=env)
    assert done.returncode == 0, done.stderr
    found: dict[str, list[object]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("name", machine_walk.ROWS)
def test_two_values_of_an_option_of_the_machine_differ(
    name: str, machines: dict[str, list[object]]
) -> None:
    first, second = machines[name]
    assert first != second


def other_value(name: str) -> Any:
    """A value that is not the default, as text."""
    default, metadata = SPECS[name].default, SPECS[name].metadata
    if isinstance(default, bool):
        return str(not default)
    if metadata["bounds"]:
        return str(next(each for each in metadata["bounds"] if each != default))
    allowed = [each for each in metadata["allowed"] if each != default]
    return allowed[0] if allowed else '{"optimizeForSpeed": true}'


@pytest.mark.parametrize("name", WITHOUT_EFFECT)
def test_an_option_without_effect_is_reported_once(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    variable = SPECS[name].metadata["env"]
    config.from_environment({variable: str(SPECS[name].default)})
    assert said(caplog) == []
    for again in (False, True):
        config.from_environment({variable: other_value(name)})
        lines = said(caplog)
        assert len(lines) == (not again)
        assert again or f"{name} has no effect: {SPECS[name].metadata['no_effect']}." in lines[0]


@pytest.mark.parametrize("name", PROCESS_VARIABLES)
def test_a_wrong_value_of_a_variable_of_the_process_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name} needs "):
        config.from_environment({name: "nonsense"})


@pytest.mark.parametrize("name", [*UNREAD_VARIABLES, *sorted(OF_SDK_BUILDS)])
def test_a_variable_without_effect_is_reported_once(
    name: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    value = "10" if name == "IPUJAX_CALLBACK_TIMEOUT" else str(tmp_path)
    config.from_environment({name: ""})
    assert said(caplog) == []
    for again in (False, True):
        config.from_environment({name: value})
        lines = said(caplog)
        assert len(lines) == (not again)
        assert again or f"{name} has no effect" in lines[0]


def test_variables_that_the_code_reads_or_the_pages_name_are_known() -> None:
    prefixes = "IPUJAX|JAX_IPU|POPLAR|POPLIBS|PVTI|POPTORCH|TF_POPLAR"
    patterns = {
        "*.md": rf"`((?:{prefixes})_[A-Z_]+)\b",
        "*.py": rf'environ(?:\.get\(|\.setdefault\(|\[)"((?:{prefixes})_[A-Z_]+)"',
        "*.cpp": rf'(?:getenv\(|withEnvironment\(\w+, )"((?:{prefixes})_[A-Z_]+)"',
    }
    folders = [ROOT / name for name in ("docs", "ipujax", "cpp", "xla_plugin")]
    left_out = (ROOT / "docs" / "decisions", ROOT / "cpp" / "model" / "tests")
    found = {
        name
        for kind, pattern in patterns.items()
        for folder in folders
        for path in folder.rglob(kind)
        if not any(each in path.parents for each in left_out)
        for name in re.findall(pattern, path.read_text())
    }
    assert {VARIABLE, "PVTI_OPTIONS", "IPUJAX_NUM_THREADS"} <= found
    known = {each.metadata["env"] for each in SPECS.values()} | {VARIABLE, "POPLAR_SDK_ENABLED"}
    assert found <= known | {*PROCESS_VARIABLES, *UNREAD_VARIABLES, *BUILD_VARIABLES}


#: What the engine's options that act on JAX's programs are given: each differs from none.
ACT = {
    "debug.outOfMemory": "error",
    "debug.allowOutOfMemory": "false",
    "debug.floatPointOpException": "true",
}


@pytest.mark.parametrize("name", ACT)
def test_an_engine_option_that_acts_changes_the_options(name: str) -> None:
    given = CompileConfig(engine_options=json.dumps({name: ACT[name]}))
    assert with_engine_options(given) != given


@pytest.mark.parametrize("name", sorted(each for each in ENGINE if each not in ACT))
def test_another_engine_option_asks_for_a_report_or_is_reported_once(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    given = CompileConfig(engine_options=json.dumps({name: "true"}))
    if name.startswith("autoReport.") and name not in OF_REPORTS | OF_RUNS:
        if with_engine_options(given).profile:
            return
        assert not ENGINE[name]
    for again in (False, True):
        with pytest.MonkeyPatch.context() as patch:
            if again:  # from the variable
                patch.setenv(VARIABLE, given.engine_options)
            value = {"streamCallbacks.multiThreadMode": "dedicated"}.get(name, "true")
            with_engine_options(CompileConfig(engine_options=json.dumps({name: value})))
        assert [f"the engine option {name} has no effect" in line for line in said(caplog)] == (
            [] if again else [True]
        )


@pytest.mark.parametrize("name", sorted(ENGINE))
@pytest.mark.parametrize("in_variable", [False, True])
def test_a_misspelt_engine_option_is_refused(
    name: str, in_variable: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = json.dumps({name[:-1]: "true"})
    if in_variable:
        monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(ConfigError, match=f"Did you mean '{re.escape(name)}'"):
        with_engine_options(CompileConfig(engine_options="" if in_variable else text))


def test_the_variable_of_the_engine_writes_reports(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = {"autoReport.all": True, "autoReport.directory": str(tmp_path / "reports")}
    monkeypatch.setenv(VARIABLE, json.dumps(options))

    def walked(x: Any) -> Any:
        return jnp.tanh(x) @ x

    for _ in range(2):
        ipu.precompile(walked, spec(8, 8))
    ipu.precompile(jnp.sin, spec(8))
    written = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*.pop"))
    assert written == [f"reports/jit_{name}/profile.pop" for name in ("sin", "walked-2", "walked")]
    report = (tmp_path / written[2]).read_bytes()
    assert report.startswith(b"ipujax profile 1\n0 jit_walked\n\nIPUJAXEX")
    image = report[report.index(b"IPUJAXEX") :]
    assert len(_poplar.engine.profileImage(image)["steps"]) > 0
    assert said(caplog) == []


def test_reports_that_cannot_be_written_are_said_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    options = {"autoReport.all": "true", "autoReport.directory": str(tmp_path / "file")}
    monkeypatch.setenv(VARIABLE, json.dumps(options))
    for _ in range(2):
        ipu.precompile(jnp.sin, spec(8))
    (line,) = said(caplog)
    assert "autoReport.directory needs a writable folder" in line


@pytest.mark.parametrize("name", ["IPUJAX_OUTLNE", "JAX_IPU_DEVICE_CUONT"])
def test_a_misspelt_variable_is_reported_once(name: str, caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(2):
        config.from_environment({name: "1"})
    (line,) = said(caplog)
    assert "is not known. Did you mean" in line


PRODUCTS = ROOT / "cpp" / "model" / "poplin" / "internal" / "PlanOptions.cpp"
COLLECTIVES = ROOT / "cpp" / "model" / "gcl" / "internal" / "Options.cpp"
PRODUCTS_HEED = {
    "partialsType",
    "availableMemoryProportion",
    "fullyConnectedPass",
    "pass",
    "planConstraints",
    "tilesPerIPU",
    "numTilesPerIPU",
    "use128BitConvUnitLoad",
    "enableMultiStageReduce",
    "disableTransformations",
}
COLLECTIVES_HEED = {"method", "syncful.maxBroadcastSize"}


def names_in(text: str, begin: str, end: str) -> set[str]:
    """Names of options in a part of a C++ file."""
    part = text[text.index(begin) :]
    return set(re.findall(r'\{?"([a-zA-Z][\w.]+)"', part[: part.index(end)]))


def test_the_tables_of_ignored_options_are_those_of_the_libraries() -> None:
    products = PRODUCTS.read_text()
    lists = [("& truths()", "return names"), ("& ignored()", "return names")]
    lists.append(("names() {", "};"))
    known = set[str]().union(*(names_in(products, *each) for each in lists))
    assert known - PRODUCTS_HEED == PRODUCTS_IGNORE
    collectives = COLLECTIVES.read_text()
    table = re.findall(r'\{"([\w.]+)",\s+(?:\{|yes_or_no)', collectives)
    others = names_in(collectives, "names() {", "};")
    assert {*table, *others} - COLLECTIVES_HEED == COLLECTIVES_IGNORE


@pytest.mark.parametrize("name", sorted(PRODUCTS_IGNORE))
def test_an_option_of_products_without_effect_is_reported_once(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    value = "half" if "Type" in name or "interTile" in name or "interIPU" in name else "true"
    text = json.dumps({name: value})

    def scoped(a: Any, b: Any) -> Any:
        with ipu.options(matmul_options=text):
            return a @ b

    for fun in (scoped, scoped):
        ipu.precompile(fun, spec(4, 4), spec(4, 4))
    assert said(caplog) == [f"[config] matmul_options: {name} has no effect on the IPU Model."]


def test_options_of_collectives_without_effect_are_reported_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    options = {"ipu_collective_options": '{"link": "auto-link", "maxBytesPerTile": "8"}'}
    for _ in range(2):
        ipu.precompile(jnp.sin, spec(4), options=options)
    assert said(caplog) == [
        f"[config] collective_options: {name} has no effect on the IPU Model."
        for name in ("link", "maxBytesPerTile")
    ]


def lookup(table: Any, i: Any) -> Any:
    return table[i]


LOOKUP = spec(100, 8), spec(20, dtype=jnp.int32)


def test_a_proportion_of_memory_is_reported_where_lookups_ignore_it(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    observe = compiled(lookup, *LOOKUP)
    plain = observe("available_memory_proportion", 0.6, tmp_path)
    assert said(caplog) == []
    assert observe("available_memory_proportion", 0.1, tmp_path) == plain
    (line,) = said(caplog)
    assert "available_memory_proportion has no effect on lookups" in line
    config.forget_what_was_said()

    def scoped(table: Any, i: Any) -> Any:
        with ipu.options(available_memory_proportion=0.1):
            return table[i]

    for _ in range(2):
        ipu.precompile(scoped, *LOOKUP)
    assert said(caplog) == [line]


def test_convolutions_in_one_operation_say_that_they_run_in_turn(
    caplog: pytest.LogCaptureFixture,
) -> None:
    x, w = jnp.ones((1, 2, 4, 4)), jnp.ones((3, 2, 3, 3))

    def convs(options: dict[str, Any] | None = None) -> Any:
        return ipu.ops.multi_conv([ipu.ops.Conv(x, w), ipu.ops.Conv(x, w)], options)

    for options in (None, {"planType": "serial"}):
        jax.jit(convs, static_argnums=0)(options) if options is None else jax.jit(
            lambda options=options: convs(options)
        )()
    (line,) = said(caplog)
    assert "multi_conv runs its convolutions one after the other" in line
    with pytest.raises(jax.errors.JaxRuntimeError, match="Did you mean 'planType'"):
        jax.jit(lambda: convs({"planTpye": "serial"}))()
