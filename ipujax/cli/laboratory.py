"""Commands that measure ipujax itself: their code is in tests/ of the source tree."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from ipujax.errors import ConfigError

#: The source tree, if ipujax was imported from one.
ROOT = Path(__file__).resolve().parents[2]


def command(word: str) -> ModuleType:
    """The module of the command `word`.

    Raises:
        ConfigError: ipujax was not imported from a source tree; wheels do not contain tests.
    """
    if not (ROOT / "tests" / word / "command.py").is_file():
        raise ConfigError(
            f"[{word}] needs the source tree of ipujax; got the installed package in {ROOT}. "
            f"Clone the repository and run python -m ipujax {word} there."
        )
    if sys.path[0] != str(ROOT):
        sys.path.insert(0, str(ROOT))
    return importlib.import_module(f"tests.{word}.command")
