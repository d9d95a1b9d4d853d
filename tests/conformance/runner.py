"""Runs harnesses in child processes: one that crashes or stands still costs itself only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TextIO

from tests.conformance.harnesses import Harness

#: Harnesses to one child: enough to make its start cheap, few enough to keep its memory small.
CHUNK = 200
#: Reads positions from stdin and appends records to the file named in its argument.
WORKER = ("-m", "tests.conformance.worker")
GRADIENT_WORKER = ("-m", "tests.conformance.gradients")
IMPORT_SECONDS = 60.0
Record = dict[str, Any]


def run_harnesses(
    harnesses: Sequence[Harness],
    positions: Sequence[int],
    jobs: int,
    seconds_each: float,
    on_record: Callable[[Record], None],
    worker: Sequence[str] = WORKER,
) -> list[Record]:
    """One record for each position, in their order.

    Args:
        worker: what Python runs in a child, for tests of this file.
        jobs: child processes at one time.
        seconds_each: a harness that takes longer hangs.
        on_record: called for each record as it comes, from several threads.
    """
    chunks = [positions[i : i + CHUNK] for i in range(0, len(positions), CHUNK)]

    def run(chunk: Sequence[int]) -> list[Record]:
        return _run_chunk(harnesses, chunk, seconds_each, on_record, worker)

    with ThreadPoolExecutor(max(1, jobs)) as pool:
        return [record for records in pool.map(run, chunks) for record in records]


def _run_chunk(
    harnesses: Sequence[Harness],
    positions: Sequence[int],
    seconds_each: float,
    on_record: Callable[[Record], None],
    worker: Sequence[str],
) -> list[Record]:
    records: list[Record] = []
    while len(records) < len(positions):
        rest = positions[len(records) :]
        found, stopped = _one_child(rest, seconds_each, on_record, worker)
        records += found
        if stopped is not None and len(records) < len(positions):
            harness = harnesses[positions[len(records)]]
            record = {"name": harness.name, "group": harness.group, "dtype": harness.dtype}
            records.append(record | stopped)
            on_record(records[-1])
    return records


def _one_child(
    positions: Sequence[int],
    seconds_each: float,
    on_record: Callable[[Record], None],
    worker: Sequence[str],
) -> tuple[list[Record], Record | None]:
    """Records of what one child finished, and how it ended on what it did not."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        out.touch()
        with err.open("wb") as errors, out.open(encoding="utf-8") as lines:
            child = subprocess.Popen(
                [sys.executable, *worker, str(out)],
                stdin=subprocess.PIPE,
                stdout=errors,
                stderr=errors,
                env=environment(),
            )
            assert child.stdin is not None
            child.stdin.write("\n".join(map(str, positions)).encode())
            child.stdin.close()
            records: list[Record] = []
            begun = in_time = True
            try:
                begun, in_time = _watch(child, lines, seconds_each, records, on_record)
            finally:
                child.kill()
                child.wait()
        tail = err.read_bytes().decode(errors="replace").strip()[-400:]
    if not in_time:
        return records, {"status": "hang", "reason": f"over {seconds_each:g} s"}
    if len(records) == len(positions):
        return records, None
    if not begun:
        raise RuntimeError(
            f"[conformance] needs a child that starts; got:\n{tail}\nRun make build."
        )
    return records, {"status": "crash", "reason": f"exit code {child.returncode}: {tail}"}


def _watch(
    child: subprocess.Popen[bytes],
    lines: TextIO,
    seconds_each: float,
    records: list[Record],
    on_record: Callable[[Record], None],
) -> tuple[bool, bool]:
    """Follows a child until it ends: whether it began any harness, and was in time."""
    # The first harness waits for the imports too.
    last, begun, line = time.monotonic() + IMPORT_SECONDS, False, ""
    while True:
        ended = child.poll() is not None
        line += lines.readline()
        if line.endswith("\n"):
            record, line = json.loads(line), ""
            last, begun = time.monotonic(), True
            if "begin" not in record:
                records.append(record)
                on_record(record)
        elif ended:
            return begun, True
        elif time.monotonic() - last > seconds_each:
            return begun, False
        else:
            time.sleep(0.02)


def environment() -> dict[str, str]:
    """No settings of whoever runs this decide what the harnesses see."""
    return {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "IPUJAX_"))}
