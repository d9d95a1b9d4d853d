"""Prints every option, as the Markdown page docs/options.md."""

from __future__ import annotations

import argparse

from ipujax import config


def run(arguments: argparse.Namespace) -> int:
    del arguments
    print(config.table(), end="")
    return 0
