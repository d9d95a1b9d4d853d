"""The built extension's modules, imported when the first program is lowered.

So that the stages before lowering, and their tests, need no built extension.
"""

from __future__ import annotations

import importlib
from typing import Any

_NAMES = ("poplar", "popops", "poplin", "popnn", "poprand", "popx", "gcl", "engine")


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(name)
    extension = importlib.import_module("ipujax._poplar._poplar")
    for each in _NAMES:
        module = getattr(extension, each, None)
        if module is not None:
            globals()[each] = module
    return globals()[name]
