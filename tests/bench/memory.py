"""Resident memory of this process, from /proc."""

from __future__ import annotations

import re
from pathlib import Path

_STATUS = Path("/proc/self/status")


def _field_bytes(name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+) kB", _STATUS.read_text(), re.MULTILINE)
    assert found is not None, f"{_STATUS} has no {name}"
    return int(found[1]) * 1024


def resident_bytes() -> int:
    return _field_bytes("VmRSS")


def peak_bytes() -> int:
    """The largest `resident_bytes` since the process began or `forget_peak`."""
    return _field_bytes("VmHWM")


def forget_peak() -> None:
    """The peak begins anew at what is resident now (proc(5), clear_refs)."""
    Path("/proc/self/clear_refs").write_text("5")
