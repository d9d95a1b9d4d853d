"""The benchmark runs the repository's own examples and data, which a wheel does not hold."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import ipujax
from ipujax.errors import ConfigError

ROOT = Path(ipujax.__file__).resolve().parent.parent


def path(relative: str) -> Path:
    """A file of the source tree.

    Raises:
        ConfigError: ipujax was not imported from a source tree.
    """
    found = ROOT / relative
    if not found.exists():
        raise ConfigError(
            f"[bench] needs the source tree of ipujax; got a package without {relative}. "
            "Clone the repository and run make bench."
        )
    return found


def example(name: str) -> ModuleType:
    """A module of examples/models."""
    folder = str(path("examples/models"))
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module(name)
