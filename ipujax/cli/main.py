"""Finds the module of a command and runs it."""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ipujax import __version__
from ipujax.cli import laboratory
from ipujax.cli.installation import check_installation
from ipujax.errors import (
    FitError,
    IpuError,
    OutOfMemoryError,
    RecoverableError,
    UnrecoverableError,
    printable,
)

#: Each command and what it does; the module of the same name implements it.
WORDS = {
    "doctor": "report what is installed and found, and whether it works",
    "devices": "list the IPUs that JAX sees",
    "ops": "print how each StableHLO op is lowered, or why it is not supported",
    "run": "run an exported program on inputs from files, expressions or examples",
    "launch": "run a program in several processes, on this host or several",
    "plan": "print what a training step costs on more and more IPUs",
    "convert": "change an exported program: precision, IPUs, pipelines, single ops",
    "options": "print the options in force and what set each",
    "report": "show or compare where time and memory of programs go, of files or saved reports",
    "completion": "print a script that completes commands and options in a shell",
    "conformance": "run JAX's test harnesses and compare results with its CPU backend",
    "bench": "compare speed with JAX's CPU backend, and cycles with published measurements",
}
#: Commands whose code is in tests/ of the source tree.
LABORATORY = frozenset({"conformance", "bench"})
#: Commands that run programs; the others work without the extension.
COMPUTING = LABORATORY | {"devices", "run", "plan", "convert"}


#: Exit codes besides 0, for success, and 2, which argparse uses for wrong arguments.
FAILED, RECOVERABLE, UNRECOVERABLE, DOES_NOT_FIT = 1, 3, 4, 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code. Restores the environment afterwards."""
    before = dict(os.environ)  # commands put options there for the programs that they run
    try:
        return _run(sys.argv[1:] if arguments is None else list(arguments))
    finally:
        for name in os.environ.keys() - before:
            del os.environ[name]
        os.environ.update(before)


def _run(given: Sequence[str]) -> int:
    word = next((each for each in given if each in WORDS), "ipujax")
    try:
        command = _module(word)
        parser = _parser(word, command)
        _suggest(parser, given)
        parsed = parser.parse_args(given)
        if word in COMPUTING:
            check_installation()
        code = int(command.run(parsed))
        sys.stdout.flush()
        return code
    except IpuError as error:
        print(printable(str(error)), file=sys.stderr)
        return _code_of(error)
    except BrokenPipeError:
        # The reader of our output has exited, as `head` does: nothing may be flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(
            f"[{word}] needs files that it can read and write; got: {error}. Check their paths.",
            file=sys.stderr,
        )
    return FAILED


def _suggest(parser: argparse.ArgumentParser, given: Sequence[str]) -> None:
    """Ends with a suggestion of the nearest command if there is none of that name."""
    first = next((each for each in given if not each.startswith("-")), None)
    near = difflib.get_close_matches(first or "", WORDS, n=1)
    if first is not None and first not in WORDS and near:
        parser.error(f"needs a command; got {first!r}. Did you mean {near[0]!r}?")


def _code_of(error: IpuError) -> int:
    """The exit code; tells job schedulers whether to reset the device or choose another one."""
    kinds: tuple[tuple[type[IpuError], int], ...] = (
        (RecoverableError, RECOVERABLE),
        (UnrecoverableError, UNRECOVERABLE),
        (OutOfMemoryError, DOES_NOT_FIT),
        (FitError, DOES_NOT_FIT),
    )
    return next((code for kind, code in kinds if isinstance(error, kind)), FAILED)


def _module(word: str) -> Any:
    """The module of a command; None for anything else."""
    if word in LABORATORY:
        return laboratory.command(word)
    return import_module(f"ipujax.cli.{word}") if word in WORDS else None


def whole_parser() -> argparse.ArgumentParser:
    """A parser that knows all commands with their arguments."""
    return _parser(None, None)


def _parser(asked: str | None, command: Any) -> argparse.ArgumentParser:
    """A parser that knows all commands, and the arguments of the requested one; of all for None."""
    parser = argparse.ArgumentParser("ipujax", description="JAX on Graphcore IPUs.")
    parser.add_argument("--version", action="version", version=__version__)
    words = parser.add_subparsers(dest="word", required=True, metavar="command")
    for word, help_text in WORDS.items():
        if asked is None and word not in LABORATORY:
            command = _module(word)
        is_asked = word == asked or (asked is None and word not in LABORATORY)
        description = command.__doc__ if is_asked else None
        arguments = words.add_parser(word, help=help_text, description=description)
        if is_asked and hasattr(command, "add_arguments"):
            command.add_arguments(arguments)
    return parser
