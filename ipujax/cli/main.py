"""Finds the word's module and runs it."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from ipujax import __version__, config
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
#: Words that run programs; the others work wherever Python does.
COMPUTING = frozenset({"devices", "conformance", "bench"})


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
        if parsed.word in COMPUTING:
            _check_installation()
        code = int(importlib.import_module(f"ipujax.cli.{parsed.word}").run(parsed))
        sys.stdout.flush()
        return code
    except IpuError as error:
        print(error, file=sys.stderr)
    except BrokenPipeError:
        # Whoever read our output has left, such as `head`; nothing is left to flush at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        print(f"[{parsed.word}] needs files that it can use; got: {error}", file=sys.stderr)
    return 1


def _check_installation() -> None:
    """What would otherwise be found late, or reported by JAX with a traceback.

    Raises:
        IpuError: a wrong value of an environment variable, or no extension.
    """
    config.check_process_variables(os.environ)  # the extension reads some as it is loaded
    try:
        importlib.import_module("ipujax._poplar._poplar")
    except ImportError as error:
        raise IpuError(
            f"[plugin] needs its built extension; got: {error}. Run make build in the source tree, "
            "or install the wheel."
        ) from None
    config.from_environment()
