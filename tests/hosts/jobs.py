"""Runs programs in several processes, as `ipujax launch` does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
#: Seconds that a job may take on a busy machine.
_LONGEST = 240


def launch(
    arguments: Sequence[object], folder: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Runs `ipujax launch` with its arguments; stdout has the lines of all ranks."""
    given = [sys.executable, "-m", "ipujax", "launch", "--logs", folder / "logs", *arguments]
    return subprocess.run(
        list(map(str, given)),
        cwd=ROOT,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=_LONGEST,
        check=False,
    )


def script(folder: Path, text: str) -> list[str]:
    """The command that runs a text as a program."""
    path = folder / "job.py"
    path.write_text(text)
    return [sys.executable, str(path)]


def digests(folder: Path, processes: int, kind: str, first: int, count: int) -> dict[str, Any]:
    """What `tests.hosts.digests` finds with so many processes: of each seed, all shards."""
    path = folder / f"{kind}{processes}"
    module = [sys.executable, "-m", "tests.hosts.digests", path, kind, first, count]
    options = ["-n", processes, "--replicas", 8, "--ipus-per-replica", 2]
    ended = launch([*options, *module], folder)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    whole: dict[str, Any] = {}
    for rank in range(processes):
        for seed, found in json.loads(Path(f"{path}.{rank}").read_text()).items():
            assert not isinstance(found, str), f"{kind} {seed} on rank {rank}: {found}"
            whole.setdefault(seed, {}).update(found)
    return whole
