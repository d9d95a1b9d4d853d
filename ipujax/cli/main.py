"""Finds the word's module and runs it."""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence

from ipujax import __version__
from ipujax.errors import IpuError

#: Each word and what it does; the module of the same name holds it.
WORDS = {
    "doctor": "say what is installed, what was found, and whether it works",
    "devices": "list the IPUs that JAX sees",
    "ops": "print how each op of StableHLO is lowered, or why it is refused",
    "options": "print every option with its environment variable, default and values",
    "conformance": "run JAX's test harnesses against JAX's CPU backend",
    "bench": "measure against JAX's CPU backend and against published cycle counts",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    parser = argparse.ArgumentParser("ipujax", description="JAX on Graphcore IPUs.")
    parser.add_argument("--version", action="version", version=__version__)
    words = parser.add_subparsers(dest="word", required=True, metavar="word")
    for word, help_text in WORDS.items():
        module = importlib.import_module(f"ipujax.cli.{word}")
        module.add_arguments(words.add_parser(word, help=help_text, description=module.__doc__))
    parsed = parser.parse_args(arguments)
    try:
        return int(importlib.import_module(f"ipujax.cli.{parsed.word}").run(parsed))
    except IpuError as error:
        print(error, file=sys.stderr)
        return 1
