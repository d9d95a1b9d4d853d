"""Closes open feeds when Python exits, so that no program waits for them."""

from __future__ import annotations

import atexit
import functools
import threading
import weakref
from collections.abc import Callable
from typing import Any

#: Set when Python exits. Python ends a thread that then requests the GIL, which must not happen
#: inside the extension.
ending = threading.Event()

#: Each feed, how it is closed, and its name in errors.
_open: weakref.WeakKeyDictionary[Any, tuple[Callable[[str], None], str]] = (
    weakref.WeakKeyDictionary()
)


def close(feed: Any, how: Callable[[str], None], name: str) -> None:
    """Closes the feed when Python exits, if it still exists.

    Args:
        how: called with the reason; must not refer to the feed.
    """
    _open[feed] = how, name
    _register()


@functools.cache
def _register() -> None:
    """Registered after the extension's own handler, which waits for programs, to run before it."""
    atexit.register(_close_all)


def _close_all() -> None:
    ending.set()
    feeds = list(_open.items())
    for _, (how, name) in feeds:
        how(f"[{name}] needs Python; got an interpreter that is ending. Stop feeds before.")
    for feed, _ in feeds:
        thread = getattr(feed, "_thread", None)
        if thread is not None:
            thread.join(timeout=0.2)  # it may hang in the user's iterator
