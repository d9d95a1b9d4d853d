"""Progress of compilations: a line on the terminal, and callbacks.

The line has the stage and the seconds so far, and what is tried if a program is compiled several
times. Unless the option `progress_bar` says otherwise, it is drawn only on terminals and in
notebooks, for compilations that take over two seconds.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ipujax.host.logs import TRACE, logger_of

logger = logger_of("compiler")

_QUIET_SECONDS = 2.0
_REFRESH_SECONDS = 0.2
_BAR_CELLS = 20
_NOTE_CELLS = 60

#: Notes on compilations, not kept per thread, as JAX compiles on threads of its own.
_notes: list[str] = []


@contextmanager
def compile_note(text: str) -> Iterator[None]:
    """Shows a text beside the progress of the compilations inside."""
    _notes.append(text)
    try:
        yield
    finally:
        _notes.remove(text)


class CompileStage(NamedTuple):
    """The current stage of a compilation."""

    stage: str  #: as the compiler's stages are named: "1_ingest" to "8_build"
    position: int  #: of the stage, from 1
    num_stages: int
    seconds: float  #: since the compilation began
    note: str  #: what is tried, if a program is compiled several times; or empty


#: Functions called with each stage that begins.
_watchers: list[Callable[[CompileStage], object]] = []


@contextmanager
def watch_compilations(callback: Callable[[CompileStage], object]) -> Iterator[None]:
    """Calls a function with each stage of the compilations inside, on the thread that compiles.

    Args:
        callback: gets a `CompileStage`. An exception in it is logged and does not end the
            compilation.

    Source: PopART's `compilationProgressLogger`, PopTorch's `showCompilationProgressBar`.

    Example:
        >>> stages = []
        >>> with ipu.watch_compilations(lambda each: stages.append(each.stage)):
        ...     y = jax.jit(lambda x: x * 17)(jnp.ones(3))
        >>> "1_ingest" in stages and "8_build" in stages
        True
    """
    _watchers.append(callback)
    try:
        yield
    finally:
        _watchers.remove(callback)


class CompileProgress:
    """State of one compilation, written by the compiling thread and drawn by another."""

    def __init__(self, stages: tuple[str, ...]):
        self._stages = stages
        self._stage = ""
        self._note = _notes[-1] if _notes else ""
        self._done = threading.Event()
        self._started = time.monotonic()

    def stage(self, name: str) -> None:
        """Records that a stage begins, or what is tried next."""
        if name in self._stages:
            self._stage = name
        else:
            self._note = name
        logger.log(TRACE, "[compile] %s", name)
        self._tell()

    def _tell(self) -> None:
        position = self._stages.index(self._stage) + 1 if self._stage in self._stages else 0
        seconds = time.monotonic() - self._started
        event = CompileStage(self._stage, position, len(self._stages), seconds, self._note)
        for callback in list(_watchers):
            try:
                callback(event)
            except Exception:  # a user's function; the compilation is not at fault
                logger.exception("[compile] a callback of ipu.watch_compilations failed")

    def line(self) -> str:
        """The text to draw."""
        position = self._stages.index(self._stage) + 1 if self._stage in self._stages else 0
        cells = round(_BAR_CELLS * position / max(len(self._stages), 1))
        bar = "#" * cells + "." * (_BAR_CELLS - cells)
        note = f": {self._note[:_NOTE_CELLS]}" if self._note else ""
        return f"compiling [{bar}] {self._stage} {time.monotonic() - self._started:.0f} s{note}"

    def finish(self) -> None:
        self._done.set()

    def draw(self, quiet_seconds: float) -> None:
        """Redraws until finished, then clears the line; draws nothing if that is soon."""
        if self._done.wait(quiet_seconds):
            return
        clear = "" if _is_notebook() else "\r\x1b[K"
        while True:
            line = self.line()
            print(f"{clear}{line}", end="", file=sys.stderr, flush=True)
            if _is_notebook():  # it ignores escape sequences that erase
                clear = f"\r{' ' * len(line)}\r"
            if self._done.wait(_REFRESH_SECONDS):
                break
        print(clear, end="", file=sys.stderr, flush=True)


def _is_notebook() -> bool:
    """Whether standard error is shown below a cell of a notebook, by IPython's kernel."""
    return type(sys.stderr).__module__.partition(".")[0] == "ipykernel"


@contextmanager
def compile_progress(stages: tuple[str, ...], bar: str = "auto") -> Iterator[CompileProgress]:
    """Shows progress during the `with` block.

    Args:
        stages: the names of all stages, in order.
        bar: "on" and "off" draw it or not; "auto" draws it if standard error is a terminal or a
            notebook's.
    """
    progress = CompileProgress(stages)
    drawer = None
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    if bar == "on" or (bar == "auto" and (is_terminal or _is_notebook())):
        quiet = _QUIET_SECONDS if bar == "auto" else 0.0
        drawer = threading.Thread(
            target=progress.draw, args=(quiet,), name="ipujax-progress", daemon=True
        )
        drawer.start()
    try:
        yield progress
    finally:
        progress.finish()
        if drawer is not None:
            drawer.join()
