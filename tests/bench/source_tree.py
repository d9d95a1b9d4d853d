"""The repository's own examples and data, which the benchmark runs."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]


def example(name: str) -> ModuleType:
    """A module of examples/models."""
    folder = str(ROOT / "examples" / "models")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)
