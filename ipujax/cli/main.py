"""Finds the word's module and runs it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ipujax import __version__, config
from ipujax.cli import laboratory
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
#: Words whose code is in tests/ of the source tree.
LABORATORY = frozenset({"conformance", "bench"})
#: Words that run programs; the others work wherever Python does.
COMPUTING = LABORATORY | {"devices"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    word = next((each for each in given if each in WORDS), "ipujax")
    try:
        command = _module(word)
        parsed = _parser(word, command).parse_args(given)
        if word in COMPUTING:
            _check_installation()
        code = int(command.run(parsed))
        sys.stdout.flush()
        return code
    except IpuError as error:
        print(error, file=sys.stderr)
    except BrokenPipeError:
        # Whoever read our output has left, such as `head`; nothing is left to flush at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"[{word}] needs files that it can use; got: {error}", file=sys.stderr)
    return 1


def _module(word: str) -> Any:
    """The module that runs a word; None for what is no word."""
    if word in LABORATORY:
        return laboratory.command(word)
    return import_module(f"ipujax.cli.{word}") if word in WORDS else None


def _parser(asked: str, command: Any) -> argparse.ArgumentParser:
    """Knows all words, and the arguments of the one asked for."""
    parser = argparse.ArgumentParser("ipujax", description="JAX on Graphcore IPUs.")
    parser.add_argument("--version", action="version", version=__version__)
    words = parser.add_subparsers(dest="word", required=True, metavar="word")
    for word, help_text in WORDS.items():
        description = command.__doc__ if word == asked else None
        arguments = words.add_parser(word, help=help_text, description=description)
        if word == asked:
            command.add_arguments(arguments)
    return parser


def _check_installation() -> None:
    """What would otherwise be found late, or reported by JAX with a traceback.

    Raises:
        IpuError: a wrong value of an environment variable, or no extension.
    """
    config.from_environment()
    try:
        import_module("ipujax._poplar._poplar")
    except ImportError as error:
        raise IpuError(
            f"[plugin] needs its built extension; got: {error}. Run make build in the source tree, "
            "or install the wheel."
        ) from None
