"""The origin of a report: the version of ipujax, the machine, the options and the date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from ipujax.config.options import PER_CALL_PREFIX, from_environment
from ipujax.reporting.model import Report


def with_origin(report: Report, machine: str, options: Mapping[str, Any]) -> Report:
    """The report with its origin.

    Args:
        report: report of a program that was just compiled.
        machine: the kind of IPU, such as "IPU Mk2 (GC200) Model".
        options: compiler options of the program, such as {"ipu_outline": "auto"}.
    """
    return replace(
        report,
        version=version("ipujax"),
        machine=_described(report, machine),
        options=_in_force(options),
        date=datetime.now(UTC).isoformat(sep=" ", timespec="seconds"),
    )


def _described(report: Report, machine: str) -> str:
    tiles = len(report.ipus[0].tile_bytes[0])
    ipus = "1 IPU" if len(report.ipus) == 1 else f"{len(report.ipus)} IPUs"
    return (
        f"{machine}: {ipus} of {tiles} tiles with {report.tile_capacity_bytes} bytes each, "
        f"{report.clock_hz / 1e9:g} GHz"
    )


def _in_force(options: Mapping[str, Any]) -> tuple[str, ...]:
    """Options that differ from the defaults: those of the process, then of the program."""
    own = {name.removeprefix(PER_CALL_PREFIX): value for name, value in options.items()}
    return tuple(f"{name}={value}" for name, value in (from_environment().changes() | own).items())
