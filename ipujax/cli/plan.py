"""Prints what a training step costs on more and more IPUs, none of which need be there.

The program is FILE:NAME, a function without arguments that returns what ipu.scaling takes: the loss
(or a list of stages), its parameters, the batch of one replica, and an optimizer.

Example: python -m ipujax plan --ipus 16..256 train.py:step
"""

from __future__ import annotations

import argparse
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ipujax.errors import ConfigError
from ipujax.training.scaling import scaling


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("program", help="FILE:NAME of a function, such as train.py:step")
    parser.add_argument(
        "--ipus", default="1..64", help="numbers of IPUs: 1,4,16, or 16..256, doubled each time"
    )
    parser.add_argument("--machine", default="", help="kind of IPU, such as bow")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(arguments: argparse.Namespace) -> int:
    given = _function(arguments.program)()
    if not isinstance(given, (tuple, list)) or len(given) != 4:
        raise ConfigError(
            f"[plan] needs {arguments.program} to return the loss, its parameters, a batch and an "
            f"optimizer; got {type(given).__name__}. Return these four."
        )
    loss, params, batch, optimizer = given
    found = scaling(
        loss, params, batch, optimizer, ipus=_counts(arguments.ipus), machine=arguments.machine
    )
    print(found.to_json() if arguments.json else found)
    return 0


def _function(program: str) -> Callable[[], Any]:
    path, _, name = program.rpartition(":")
    if not Path(path).is_file():
        raise ConfigError(
            f"[plan] needs a program such as train.py:step; got {program!r}, whose file does not "
            "exist. Correct it."
        )
    names = runpy.run_path(path)
    if not callable(names.get(name)):
        raise ConfigError(
            f"[plan] needs a function {name!r} in {path}; got none. Correct the name."
        )
    return names[name]


def _counts(text: str) -> list[int]:
    """Numbers between commas, or the doublings of the first up to the second."""
    parts = text.split("..") if ".." in text else text.split(",")
    try:
        numbers = [int(part) for part in parts]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1 or (".." in text and len(numbers) != 2):
        raise ConfigError(
            f"[plan] needs numbers of IPUs such as 1,4,16 or 16..256; got {text!r}. Correct --ipus."
        )
    if ".." not in text:
        return numbers
    counts = []
    while numbers[0] <= numbers[1]:
        counts.append(numbers[0])
        numbers[0] *= 2
    return counts
