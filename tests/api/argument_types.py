"""Types of command line arguments: bounded whole numbers, and shards."""

from __future__ import annotations

import argparse
from collections.abc import Callable


def whole_number(least: int, most: int | None = None) -> Callable[[str], int]:
    """An argparse type, whose error names the bounds."""

    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            number = least - 1
        if number < least or (most is not None and number > most):
            bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
            raise argparse.ArgumentTypeError(f"needs a whole number {bounds}; got {text!r}")
        return number

    return parse


def shard(text: str) -> tuple[int, int]:
    """`i/n`: part i of n."""
    first, _, second = text.partition("/")
    if not (first.isdecimal() and second.isdecimal()) or int(first) >= int(second):
        raise argparse.ArgumentTypeError(f"needs i/n with i from 0 to n - 1; got {text!r}")
    return int(first), int(second)
