"""The words that measure ipujax itself: their code is in tests/ of the source tree."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

from ipujax.errors import ConfigError

#: The source tree, where ipujax runs from one.
ROOT = Path(__file__).resolve().parents[2]


def command(word: str) -> ModuleType:
    """The module that runs the word.

    Raises:
        ConfigError: ipujax was not imported from a source tree; a wheel holds no tests.
    """
    if not (ROOT / "tests" / word / "command.py").is_file():
        raise ConfigError(
            f"[{word}] needs the source tree of ipujax; got the installed package in {ROOT}. "
            f"Clone the repository and run python -m ipujax {word} there."
        )
    if sys.path[0] != str(ROOT):
        sys.path.insert(0, str(ROOT))
    return importlib.import_module(f"tests.{word}.command")
