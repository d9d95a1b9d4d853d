"""Ctrl-C while a program runs.

Python's handler only records it, and raises once the main thread is in Python again. The plugin
cancels programs a little later, including those that the main thread waits for outside Python.
"""

from __future__ import annotations

import signal


def watch() -> None:
    """From now on Ctrl-C ends programs, if Python's own handler is in force."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        from ipujax._poplar import _poplar  # ipujax can be imported without it

        _poplar.feeds.watch_interrupts()
