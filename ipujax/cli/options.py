"""Prints the options in force, with what set each; with --markdown, the page docs/options.md."""

from __future__ import annotations

import argparse

from ipujax.config import options as config
from ipujax.config import page
from ipujax.errors import ConfigError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "word", nargs="?", help="explain the options with this word in name or description"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--markdown", action="store_true", help="print docs/options.md")


def run(arguments: argparse.Namespace) -> int:
    if arguments.markdown:
        print(page.table(), end="")
        return 0
    if arguments.word is not None:
        found = page.explained(arguments.word, config.from_environment(), config.sources())
        if not found:
            raise ConfigError(
                f"[options] needs a word of an option's name or description; got "
                f"{arguments.word!r}, which is in none. Run python -m ipujax options for all."
            )
        print(found, end="")
        return 0
    show = page.as_json if arguments.json else page.in_force
    print(show(config.from_environment(), config.sources()), end="")
    return 0
