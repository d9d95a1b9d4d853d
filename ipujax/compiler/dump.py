"""Writes the result of each stage to a folder, as text."""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable
from pathlib import Path

from ipujax import jax_compat

_count = itertools.count()


class Dump:
    """One compilation's files: `0003_jit_f.2_normalise.txt`. Without a folder it does nothing.

    In a job of several processes, names begin with the rank: `rank1_0003_jit_f...`.
    """

    def __init__(self, folder: str, name: str):
        self._folder = Path(folder) if folder else None
        if self._folder is not None:
            rank = jax_compat.rank()
            whose = "" if rank is None else f"rank{rank}_"
            self._prefix = f"{whose}{next(_count):04d}_{re.sub(r'[^A-Za-z0-9_.-]', '_', name)[:80]}"

    def write(self, stage: str, text: Callable[[], str]) -> None:
        """Writes one stage. If the folder is not writable, warns once and goes on."""
        if self._folder is None:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / f"{self._prefix}.{stage}.txt").write_text(text(), encoding="utf-8")
        except OSError as error:
            warnings.warn(
                f"[dump] needs a writable folder; got {self._folder}: {error.strerror}. "
                "Set IPUJAX_DUMP_DIR to another folder; this compilation writes no dumps.",
                stacklevel=2,
            )
            self._folder = None
