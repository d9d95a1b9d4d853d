"""Kills a training at random moments: `python -m tests.training.kills <number> <seed>`."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PROGRAM = "tests.training.regression"


def run(folder: Path, result: Path, kill_after: int | None, delay: float = 0.0) -> bool:
    """Whether it ended by itself; killed so many lines, and then seconds, after it started."""
    command = [sys.executable, "-m", PROGRAM, str(folder), str(result)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for number, _ in enumerate(process.stdout, 1):
            if number == kill_after:
                time.sleep(delay)
                process.kill()
                break
        process.stdout.read()
    assert process.returncode in (0, -9), process.returncode
    return process.returncode == 0


def killed_often(folder: Path, number: int, seed: int) -> tuple[dict[str, Any], int]:
    """What the training gives that was killed so often, and how often it was."""
    drawn = random.Random(seed)
    result, kills = folder / "result.json", 0
    while kills < number:
        if run(folder / "checkpoints", result, drawn.randint(1, 8), drawn.uniform(0, 0.02)):
            if kills:
                break
            continue
        kills += 1
    if not result.exists():
        run(folder / "checkpoints", result, None)
    return json.loads(result.read_text()), kills


def undisturbed(folder: Path) -> dict[str, Any]:
    run(folder / "whole", folder / "whole.json", None)
    return json.loads((folder / "whole.json").read_text())


def main(number: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        wanted, kills, round_ = undisturbed(Path(name)), 0, 0
        while kills < number:
            folder = Path(name) / str(round_)
            folder.mkdir()
            found, more = killed_often(folder, number - kills, seed + round_)
            kills, round_ = kills + more, round_ + 1
            assert found == wanted, (found, wanted)
            print(f"{kills} kills in {round_} trainings: all ended bit-equal", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
