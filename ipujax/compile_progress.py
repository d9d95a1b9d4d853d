"""A progress line on the terminal during a long compilation: its stage, and seconds so far.

For a program that is compiled several times it also says what is tried.

Draws nothing unless standard error is a terminal and the compilation takes over two seconds.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_QUIET_SECONDS = 2.0
_REFRESH_SECONDS = 0.2
_BAR_CELLS = 20
_NOTE_CELLS = 60

#: What the compilations of this process are for; JAX compiles on threads of its own.
_notes: list[str] = []


@contextmanager
def compile_note(text: str) -> Iterator[None]:
    """Shows a text beside the progress of the compilations inside."""
    _notes.append(text)
    try:
        yield
    finally:
        _notes.remove(text)


class CompileProgress:
    """State of one compilation, written by the compiling thread and drawn by another."""

    def __init__(self, stages: tuple[str, ...]):
        self._stages = stages
        self._stage = ""
        self._note = _notes[-1] if _notes else ""
        self._done = threading.Event()
        self._started = time.monotonic()

    def stage(self, name: str) -> None:
        """Records that a stage is done, or what is tried next."""
        if name in self._stages:
            self._stage = name
        else:
            self._note = name

    def line(self) -> str:
        """The text that is drawn."""
        position = self._stages.index(self._stage) + 1 if self._stage in self._stages else 0
        cells = round(_BAR_CELLS * position / max(len(self._stages), 1))
        bar = "#" * cells + "." * (_BAR_CELLS - cells)
        note = f": {self._note[:_NOTE_CELLS]}" if self._note else ""
        return f"compiling [{bar}] {self._stage} {time.monotonic() - self._started:.0f} s{note}"

    def finish(self) -> None:
        self._done.set()

    def draw(self) -> None:
        """Redraws until finished, then clears the line."""
        if self._done.wait(_QUIET_SECONDS):
            return
        while True:
            print(f"\r\x1b[K{self.line()}", end="", file=sys.stderr, flush=True)
            if self._done.wait(_REFRESH_SECONDS):
                break
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


@contextmanager
def compile_progress(stages: tuple[str, ...]) -> Iterator[CompileProgress]:
    """Shows progress during the `with` block.

    Args:
        stages: the names of all stages, in order.
    """
    progress = CompileProgress(stages)
    drawer = None
    if sys.stderr is not None and sys.stderr.isatty():
        drawer = threading.Thread(target=progress.draw, name="ipujax-progress", daemon=True)
        drawer.start()
    try:
        yield progress
    finally:
        progress.finish()
        if drawer is not None:
            drawer.join()
