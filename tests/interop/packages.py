"""Packages of `make interop`, the extra `interop` of pyproject.toml; without one its tests skip."""

from __future__ import annotations

from typing import Any

import pytest


def needed(name: str) -> Any:
    """The package, or a skip that says how to get it."""
    return pytest.importorskip(name, reason=f"{name} is not installed: run make interop")
