"""Finds the module of a command and runs it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ipujax import __version__
from ipujax.cli import laboratory
from ipujax.cli.installation import check_installation
from ipujax.errors import IpuError

#: Each command and what it does; the module of the same name implements it.
WORDS = {
    "doctor": "report what is installed and found, and whether it works",
    "devices": "list the IPUs that JAX sees",
    "ops": "print how each StableHLO op is lowered, or why it is not supported",
    "run": "run an exported program on inputs from files, expressions or examples",
    "convert": "change an exported program: precision, IPUs, pipelines, single ops",
    "options": "print the options in force and what set each",
    "report": "show or compare where time and memory of programs go, of files or saved reports",
    "conformance": "run JAX's test harnesses and compare results with its CPU backend",
    "bench": "compare speed with JAX's CPU backend, and cycles with published measurements",
}
#: Commands whose code is in tests/ of the source tree.
LABORATORY = frozenset({"conformance", "bench"})
#: Commands that run programs; the others work without the extension.
COMPUTING = LABORATORY | {"devices", "run", "convert"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    word = next((each for each in given if each in WORDS), "ipujax")
    try:
        command = _module(word)
        parsed = _parser(word, command).parse_args(given)
        if word in COMPUTING:
            check_installation()
        code = int(command.run(parsed))
        sys.stdout.flush()
        return code
    except IpuError as error:
        print(error, file=sys.stderr)
    except BrokenPipeError:
        # The reader of our output has exited, as `head` does; nothing may be flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(
            f"[{word}] needs files that it can read and write; got: {error}. Check their paths.",
            file=sys.stderr,
        )
    return 1


def _module(word: str) -> Any:
    """The module of a command; None for anything else."""
    if word in LABORATORY:
        return laboratory.command(word)
    return import_module(f"ipujax.cli.{word}") if word in WORDS else None


def _parser(asked: str, command: Any) -> argparse.ArgumentParser:
    """Knows all commands, and the arguments of the one that is asked for."""
    parser = argparse.ArgumentParser("ipujax", description="JAX on Graphcore IPUs.")
    parser.add_argument("--version", action="version", version=__version__)
    words = parser.add_subparsers(dest="word", required=True, metavar="command")
    for word, help_text in WORDS.items():
        description = command.__doc__ if word == asked else None
        arguments = words.add_parser(word, help=help_text, description=description)
        if word == asked and hasattr(command, "add_arguments"):
            command.add_arguments(arguments)
    return parser
