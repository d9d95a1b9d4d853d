"""Runs JAX's test harnesses or tests of optax and flax on "ipu" and on JAX's CPU backend."""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from pathlib import Path

from tests.api.argument_types import shard, whole_number
from tests.conformance.page import bad, page, summary
from tests.conformance.runner import GRADIENT_WORKER, WORKER, Record, run_harnesses

#: Their own tests are suites too.
LIBRARIES = ("optax", "flax")
#: The longest of optax's modules takes minutes, also on the CPU.
MODULE_SECONDS = 3600.0
#: Number of harnesses of each group whose derivatives are checked.
GRADIENTS_EACH = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    suites = ("harnesses", "gradients", *LIBRARIES)
    parser.add_argument("--suite", choices=suites, default="harnesses")
    parser.add_argument("--group", help="only this group, usually the name of a primitive")
    parser.add_argument("--contains", help="only harnesses with this text in their names")
    parser.add_argument(
        "--shard", type=shard, default=(0, 1), help="i/n: part i of n (default 0/1)"
    )
    parser.add_argument(
        "--limit", type=whole_number(1), help="at most this many harnesses of each group"
    )
    parser.add_argument(
        "--platforms", nargs="+", default=("cpu", "ipu"), help="platforms of libraries' tests"
    )
    parser.add_argument(
        "--jobs", type=whole_number(1), default=os.cpu_count(), help="child processes"
    )
    parser.add_argument(
        "--seconds", type=float, default=120, help="a harness that takes longer hangs"
    )
    parser.add_argument("--results", type=Path, help="write one JSON record per line to this file")
    parser.add_argument(
        "--from-results", type=Path, nargs="+", help="run nothing; read these files"
    )
    parser.add_argument("--page", type=Path, help="write the page here (docs/conformance.md)")
    parser.add_argument(
        "--show", type=whole_number(0), default=20, help="print at most this many failures"
    )


def run(arguments: argparse.Namespace) -> int:
    if arguments.suite in LIBRARIES:
        return _run_library(arguments)
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
    from tests.conformance.gradients import chosen_for_gradients
    from tests.conformance.harnesses import all_harnesses, chosen

    # This process only reads names; the children compute.
    os.environ["JAX_PLATFORMS"] = "cpu"
    harnesses = all_harnesses()
    part, parts = arguments.shard
    gradients = arguments.suite == "gradients"
    limit = None if gradients else arguments.limit
    positions = chosen(harnesses, arguments.group, arguments.contains, (part, parts), limit)
    if gradients:
        wanted = set(chosen_for_gradients(harnesses, arguments.limit or GRADIENTS_EACH))
        positions = [position for position in positions if position in wanted]
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

    worker = GRADIENT_WORKER if gradients else WORKER
    return run_harnesses(harnesses, positions, arguments.jobs, arguments.seconds, on_record, worker)


def _run_library(arguments: argparse.Namespace) -> int:
    from tests.conformance import library_suites as libraries

    part, parts = arguments.shard
    suite = libraries.suite(arguments.suite)
    names = [n for n in suite.modules if arguments.contains is None or arguments.contains in n]

    def on_result(result: libraries.ModuleResult) -> None:
        print(libraries.table([result]).splitlines()[0], flush=True)
        if arguments.results:
            with arguments.results.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(result._asdict()) + "\n")

    seconds = max(arguments.seconds, MODULE_SECONDS)
    results = libraries.run_modules(
        suite, names[part::parts], arguments.platforms, arguments.jobs, seconds, on_result
    )
    lost = libraries.differences(results)
    for name in lost[: arguments.show]:
        print(f"passes on cpu only: {name}")
    print("\n".join(libraries.table(results).splitlines()[-len(arguments.platforms) :]))
    return 1 if lost else 0


def _line(record: Record) -> str:
    return json.dumps(record) + "\n"
