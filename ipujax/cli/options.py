"""Prints the options in force, with what set each; with --markdown, the page docs/options.md."""

from __future__ import annotations

import argparse

from ipujax import config
from ipujax.configuration import page


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--markdown", action="store_true", help="print docs/options.md")


def run(arguments: argparse.Namespace) -> int:
    if arguments.markdown:
        print(page.table(), end="")
        return 0
    show = page.as_json if arguments.json else page.in_force
    print(show(config.from_environment(), config.sources()), end="")
    return 0
