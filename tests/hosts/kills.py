"""Kills processes of trainings at random moments: `python -m tests.hosts.kills <number> <seed>`.

`ipujax launch --restarts` must end each training with the bits of one that nobody disturbed.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.hosts.jobs import ROOT

PROCESSES = 4
#: Seconds that each of eight calls waits, so that kills meet them.
_DELAY = 0.15


def run(folder: Path, kill: random.Random | None = None) -> tuple[list[str], bool]:
    """What all ranks end with, and whether one was killed."""
    folder.mkdir(parents=True)
    result = folder / "result"
    program = [sys.executable, "-m", "tests.hosts.training_loop", str(folder / "checkpoints")]
    options = ["-n", str(PROCESSES), "--replicas", str(PROCESSES), "--restarts", "3"]
    command = [sys.executable, "-m", "ipujax", "launch", "--logs", str(folder / "logs"), *options]
    with (folder / "launch.log").open("wb") as log:
        job = subprocess.Popen(
            [*command, *program, str(result), str(_DELAY)],
            cwd=ROOT,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        killed = kill is not None and _kill_one(kill, str(result))
        code = job.wait(timeout=240)
    assert code == 0, (folder / "launch.log").read_text()[-4000:]
    return [Path(f"{result}.{rank}").read_text() for rank in range(PROCESSES)], killed


def _kill_one(drawn: random.Random, marker: str) -> bool:
    """Kills the process of a random rank once there has been one for a random time."""
    rank = drawn.randrange(PROCESSES)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        found = _process(marker, rank)
        if found is not None:
            time.sleep(drawn.uniform(0.5, 4.0))  # from the start of Python to the end
            try:
                os.kill(found, 9)
            except ProcessLookupError:
                return False
            return True
        time.sleep(0.02)
    return False


def _process(marker: str, rank: int) -> int | None:
    for path in Path("/proc").glob("[0-9]*"):
        try:
            words = (path / "cmdline").read_bytes().split(b"\0")
            variables = (path / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if marker.encode() in words and f"RANK={rank}".encode() in variables:
            return int(path.name)
    return None


def main(number: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        wanted, _ = run(Path(name, "whole"))
        kills = 0
        for k in range(number):
            found, killed = run(Path(name, str(k)), random.Random(seed + k))
            assert found == wanted, f"seed {seed + k}"
            kills += killed
            print(f"run {k}: equal" + (", a process was killed" if killed else ""), flush=True)
    print(f"{number} trainings, {kills} kills: all end with the same bits")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
