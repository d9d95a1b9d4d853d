"""JAX on Graphcore IPUs. `import jax` is enough: JAX finds the plugin by its entry point.

The names are those of `__init__.pyi`. Each is imported at its first use, so that
`import ipujax.runtime` does not import JAX.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

__version__ = "0.1.0"


def _homes() -> dict[str, str]:
    """The module of each public name: of lines `from module import name as name`."""
    lines = Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8").splitlines()
    words = [line.split() for line in lines if line.startswith("from ")]
    return {name: module for _, module, _, name, *_ in words}


_HOMES = _homes()
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    inside = home == __name__
    found = (
        importlib.import_module(f"{home}.{name}")
        if inside
        else getattr(importlib.import_module(home), name)
    )
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
