"""Levels by component, where messages go, and progress of compilations."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import ipujax as ipu
from ipujax.errors import ConfigError
from ipujax.host import logs


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    ipu.set_log_level("")


def test_levels_of_components():
    ipu.set_log_level("ERR,compiler=TRACE")
    assert not logs.logger_of("devices").isEnabledFor(logging.WARNING)
    assert logs.logger_of("compiler").isEnabledFor(logs.TRACE)
    ipu.set_log_level("trace_all")  # PopTorch's lowest level
    assert logs.logger_of("api").isEnabledFor(logs.TRACE)
    ipu.set_log_level("OFF")
    assert not logs.logger_of("compiler").isEnabledFor(logging.CRITICAL)
    ipu.set_log_level("")
    assert logging.getLogger("ipujax").handlers == []
    assert logs.logger_of("compiler").level == logging.NOTSET


@pytest.mark.parametrize("level", ["LOUD", "WARN,engine=DEBUG", "compiler=", "=WARN", ",", "WARN,"])
def test_other_levels_are_refused(level: str):
    with pytest.raises(
        ConfigError, match="a level needs levels TRACE_ALL, TRACE, DEBUG, INFO, WARN, ERR, OFF"
    ):
        ipu.set_log_level(level)


def test_messages_go_to_a_file_once(tmp_path: Path):
    path = tmp_path / "log"
    for _ in range(2):
        ipu.set_log_level("INFO", str(path))
    logs.logger_of("devices").info("hello")
    logs.logger_of("devices").debug("unseen")
    (line,) = path.read_text().splitlines()
    assert line.endswith("[ipujax.devices] [INFO] hello")
    with pytest.raises(ConfigError, match="a destination needs stderr, stdout, or a file"):
        ipu.set_log_level("INFO", str(tmp_path / "no" / "log"))


def test_the_variable_sets_levels_of_a_process(run_python: Callable[..., object], tmp_path: Path):
    code = "import jax, jax.numpy as jnp; jax.jit(lambda x: x + 1)(jnp.ones(2))"
    path = tmp_path / "log"
    env = {"IPUJAX_LOG_LEVEL": "OFF,compiler=TRACE", "IPUJAX_LOG_DESTINATION": str(path)}
    run = run_python("-c", code, env=env)
    text = path.read_text()
    assert run.returncode == 0  # type: ignore[attr-defined]
    assert "[ipujax.compiler] [TRACE] [compile] 1_ingest" in text
    assert "[ipujax.compiler] [INFO] [compile] 'jit__lambda" in text


def test_each_compilation_is_a_line_as_jax_logs_its_own(caplog: pytest.LogCaptureFixture, device):
    caplog.set_level(logging.INFO)

    def lines() -> list[logging.LogRecord]:
        mine = [r for r in caplog.records if r.name == "ipujax.compiler"]
        caplog.clear()
        return [r for r in mine if "took" in r.getMessage()]

    jax.jit(lambda x: x * 3.5)(jnp.ones(3))
    assert {r.levelname for r in lines()} == {"INFO"}
    jax.config.update("jax_log_compiles", True)  # as JAX_LOG_COMPILES does, for all threads
    try:
        jax.jit(lambda x: x * 4.5)(jnp.ones(3))
    finally:
        jax.config.update("jax_log_compiles", False)
    found = lines()
    assert {r.levelname for r in found} == {"WARNING"}
    assert all("1_ingest 0." in r.getMessage() for r in found)


def test_callbacks_see_all_stages_and_may_fail(caplog: pytest.LogCaptureFixture, device):
    seen: list[ipu.CompileStage] = []

    def fail(stage: ipu.CompileStage) -> None:
        raise ValueError("mine")

    x = jnp.ones(3)
    with ipu.watch_compilations(seen.append), ipu.watch_compilations(fail):
        jax.jit(lambda x: x * 5.5)(x)
    assert [each.position for each in seen] == list(range(1, 9))
    assert {each.num_stages for each in seen} == {8}
    assert [each.seconds for each in seen] == sorted(each.seconds for each in seen)
    assert "a callback of ipu.watch_compilations failed" in caplog.text
    seen.clear()
    jax.jit(lambda x: x * 6.5)(x)
    assert seen == []
