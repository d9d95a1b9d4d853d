"""JAX on Graphcore IPUs. `import jax` is enough: JAX finds the plugin by its entry point.

The names are those of `__init__.pyi`. Each is imported at its first use, so that
`import ipujax.runtime` does not import JAX.
"""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

__version__ = "0.1.0"


def _homes() -> dict[str, str]:
    """Maps each public name to its module, read from `from module import name as name`."""
    stub = ast.parse(Path(__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    imports = [statement for statement in stub.body if isinstance(statement, ast.ImportFrom)]
    return {alias.name: str(each.module) for each in imports for alias in each.names}


_HOMES = _homes()
__all__ = [*_HOMES]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    package = importlib.import_module(home)
    is_name = home != __name__ and hasattr(package, name)
    found = getattr(package, name) if is_name else importlib.import_module(f"{home}.{name}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
