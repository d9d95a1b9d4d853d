"""Runs JAX's test harnesses on "ipu" against JAX's CPU backend and writes what works."""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from pathlib import Path

from ipujax.conformance.page import bad, page, summary
from ipujax.conformance.runner import Record, run_harnesses


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--group", help="only this group, mostly a primitive's name")
    parser.add_argument("--contains", help="only harnesses with this text in their names")
    parser.add_argument("--shard", default="0/1", help="i/n: the i-th of n parts (default 0/1)")
    parser.add_argument("--limit", type=int, help="at most so many of each group")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="child processes")
    parser.add_argument("--seconds", type=float, default=120, help="a longer harness hangs")
    parser.add_argument("--results", type=Path, help="write one JSON record a line to this file")
    parser.add_argument("--from-results", type=Path, nargs="+", help="run nothing; read these")
    parser.add_argument("--page", type=Path, help="write the page here (docs/conformance.md)")
    parser.add_argument("--show", type=int, default=20, help="print so many failures")


def run(arguments: argparse.Namespace) -> int:
    if arguments.from_results:
        records = [
            json.loads(line)
            for path in arguments.from_results
            for line in path.read_text(encoding="utf-8").splitlines()
        ]
    else:
        records = _run(arguments)
    if arguments.results and not arguments.from_results:
        arguments.results.write_text("".join(map(_line, records)), encoding="utf-8")
    if arguments.page:
        arguments.page.write_text(page(records), encoding="utf-8")
    failures = [record for record in records if bad(record)]
    for record in failures[: arguments.show]:
        print(f"{record['status']}: {record['name']}: {record.get('reason', '')}")
    print(summary(records))
    return 1 if failures else 0


def _run(arguments: argparse.Namespace) -> list[Record]:
    from ipujax.conformance.harnesses import all_harnesses, chosen

    # This process only reads names; the children compute.
    os.environ["JAX_PLATFORMS"] = "cpu"
    harnesses = all_harnesses()
    part, parts = (int(each) for each in arguments.shard.split("/"))
    positions = chosen(
        harnesses, arguments.group, arguments.contains, (part, parts), arguments.limit
    )
    done, lock, start = [0], threading.Lock(), time.monotonic()
    results: Path | None = arguments.results
    if results:
        results.write_text("", encoding="utf-8")

    def on_record(record: Record) -> None:
        with lock:
            done[0] += 1
            if done[0] % 100 == 0:
                print(f"{done[0]}/{len(positions)} in {time.monotonic() - start:.0f} s", flush=True)
            if results:
                with results.open("a", encoding="utf-8") as lines:
                    lines.write(_line(record))

    return run_harnesses(harnesses, positions, arguments.jobs, arguments.seconds, on_record)


def _line(record: Record) -> str:
    return json.dumps(record) + "\n"
