"""Another series of jax is refused with a message that names the ones that work; JAX goes on."""

from __future__ import annotations

import logging
import re
import tomllib
from pathlib import Path

import pytest

import ipujax
from ipujax import jax_compat, plugin
from ipujax.errors import VersionError


def test_the_tested_series_passes():
    jax_compat.check_versions("0.10.0", "0.10.99")


@pytest.mark.parametrize(
    ("jax_version", "jaxlib_version", "text"),
    [
        ("0.11.0", "0.10.2", "needs jax 0.10.x; got jax 0.11.0"),
        ("0.10.2", "0.9.1", "needs jaxlib 0.10.x; got jaxlib 0.9.1"),
    ],
)
def test_another_series_is_refused(jax_version: str, jaxlib_version: str, text: str):
    with pytest.raises(VersionError) as caught:
        jax_compat.check_versions(jax_version, jaxlib_version)
    assert text in str(caught.value)
    assert 'pip install "jax~=0.10.0"' in str(caught.value)


def test_initialize_logs_and_goes_on(monkeypatch, caplog):
    monkeypatch.setattr(jax_compat, "is_registered", lambda: False)
    monkeypatch.setattr(jax_compat.versions, "TESTED", ((0, 9),))
    with caplog.at_level(logging.WARNING, "ipujax"):
        plugin.initialize()
    assert "needs jax 0.9.x" in caplog.text


def test_initialize_twice_registers_once(monkeypatch):
    calls = []
    monkeypatch.setattr(jax_compat, "is_registered", lambda: bool(calls))
    monkeypatch.setattr(plugin, "_register", lambda: calls.append(1))
    plugin.initialize()
    plugin.initialize()
    assert calls == [1]


def test_the_version_is_the_same_everywhere():
    root = Path(__file__).resolve().parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    settings = root / "cpp" / "model" / "cmake" / "settings.cmake"
    (cmake,) = re.findall(r'IPUJAX_VERSION "([\d.]+)"', settings.read_text())
    assert project["version"] == ipujax.__version__ == cmake
