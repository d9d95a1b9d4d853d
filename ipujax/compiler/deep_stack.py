"""Compiles programs that nest deeper than Python's usual recursion limit, on a thread of their own.

Passes recurse over regions and calls, as deep as the program nests: this keeps them simple. Few
programs need more than Python's limit; only those pay for a second start.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future

from ipujax.errors import too_deep

#: Python frames that one compile may have open; a nested call needs 4, a nested branch up to 9.
MAX_FRAMES = 100_000
#: Frames that go through C took less than 1 KiB of stack each (CPython 3.11, measured).
STACK_BYTES = 256 << 20

#: One deep compile at a time: the recursion limit and the stack size hold for the whole process.
_lock = threading.Lock()


def on_deep_stack(function: Callable[[], bytes]) -> bytes:
    """Calls the function with room for `MAX_FRAMES` frames; returns or raises what it does.

    Raises:
        NestingError: it needs more.
    """
    outcome: Future[bytes] = Future()

    def run() -> None:
        try:
            outcome.set_result(function())
        except BaseException as error:  # raised in the caller below
            outcome.set_exception(error)

    with _lock:
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(max(limit, MAX_FRAMES))
        try:
            _run_on_thread(run)
        finally:
            sys.setrecursionlimit(limit)
    try:
        return outcome.result()
    except RecursionError:
        raise too_deep(f"one that takes more than {MAX_FRAMES} Python frames") from None


def _run_on_thread(run: Callable[[], None]) -> None:
    usual = threading.stack_size(STACK_BYTES)
    try:
        thread = threading.Thread(target=run, name="ipujax-deep-compile")
        thread.start()
    finally:
        threading.stack_size(usual)
    thread.join()
