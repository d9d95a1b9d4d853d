"""What the test of a row is: an example with its documented numbers, or why there is none."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Example:
    """An example of the old tool's documents, run under our name.

    Attributes:
        source: the document and its heading.
        run: runs the example and returns a pytree of arrays, or anything that compares.
        documented: what the document says that comes out; where it gives a formula or a rule, what
            that gives, computed by NumPy or by hand.
    """

    source: str
    run: Callable[[], Any]
    documented: Any


@dataclass(frozen=True)
class Setting:
    """An option as a file of the old tool has it, and what it sets here.

    Attributes:
        given: its value in the document.
        ours: options of ours with their values. Defaults of ours are not named.
    """

    given: Any
    ours: dict[str, Any]


@dataclass(frozen=True)
class Reason:
    """Why no example with numbers can be run.

    Attributes:
        why: that; of at least five words.
        test: the file that tests what is here instead, if there is one.
    """

    why: str
    test: str = ""


@dataclass(frozen=True)
class Rows:
    """A theme: its names are those of other rows, which have tests of their own.

    Attributes:
        names: the first name of each, in any table.
    """

    names: tuple[str, ...]


Entry = Example | Setting | Reason | Rows


def rows() -> dict[str, dict[str, tuple[str, str, str]]]:
    """The rows of docs/features.md by table and by the first name of theirs.

    Raises:
        ValueError: two rows of a table have the same first name.
    """
    tables: dict[str, dict[str, tuple[str, str, str]]] = {}
    for line in (ROOT / "docs" / "features.md").read_text().splitlines():
        if line.startswith("## "):
            tables[line.removeprefix("## ")] = table = {}
        elif line.startswith("| ") and not line.startswith("| theirs "):
            cells = [cell.strip() for cell in re.split(r" \| | \|$", line.removeprefix("|"))]
            theirs, ours, more = [*cells, ""][:3]
            first = first_name(theirs)
            if first in table:
                raise ValueError(f"two rows of one table begin with {first}")
            table[first] = (theirs, ours, more)
    return {name: table for name, table in tables.items() if table}


def first_name(theirs: str) -> str:
    """`a` of "`a`, `b`"; "10 to 14" of "10 to 14: replication"."""
    number = re.match(r"(\d[^:]*):", theirs)
    if number:
        return number[1]
    return re.findall(r"`([^`]+)`", theirs)[0]
