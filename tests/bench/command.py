"""Measures ipujax and JAX's CPU backend, alternating in one process, and prints each ratio.

The exit code is 1 if a bound is missed. Times are medians; they are steadier on an idle machine.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from ipujax.config.options import MAX_DEVICES
from ipujax.errors import ConfigError
from tests.api.argument_types import whole_number
from tests.bench import threads
from tests.bench.row import HEADING, Row, seconds

if TYPE_CHECKING:
    import jax

    from tests.bench.timing import RunMany

#: Name of the row, function in `tests.bench.programs`, largest allowed ratio to the CPU backend.
TIMED = (
    ("call: x + 1 on 4 floats", "add_one", 1.3),
    ("call and NumPy result", "add_one_to_numpy", 2.0),
    ("compile 1,000 ops", "compile_thousand_ops", 0.5),
    ("elementwise chain, 1M floats", "elementwise", 1.3),
    ("30 cheap elementwise ops, 1M floats", "cheap_elementwise", 1.3),
    ("matmul 1024 x 1024 float32", "matmul", 1.3),
    ("digits MLP step", "digits_mlp", 2.0),
    ("digits CNN step", "digits_cnn", 2.0),
    ("transformer step", "transformer", 2.0),
)
#: The same for programs over several devices, in `tests.bench.sharded`.
SHARDED = (
    ("call: x + 1, sharded", "add_one", 1.3),
    ("psum of 1 MiB", "psum", 1.3),
    ("data-parallel transformer step", "transformer", 1.3),
)
#: Number of devices to compile for, and its largest time relative to that for `--devices`.
MANY_DEVICES = 64
MANY_DEVICES_BOUND = 1.5
#: What is measured for each program that `--all` adds.
KINDS = ("run", "compile", "memory")
SCAN = "scan that stacks, per step"
HOST_MEMORY = ("host memory of transformer step", "growth over 10,000 calls, MiB")
SCAN_LENGTHS = (100, 10_000)
SCAN_BOUND = 1.5
MEMORY_BOUND = 1.5
#: Growth in bytes allowed over 10,000 calls: one page of the allocator's arenas, no leak per call.
GROWTH_BOUND_BYTES = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--quick", action="store_true", help="take few samples: one minute, less steady"
    )
    parser.add_argument(
        "--all", action="store_true", help="take many samples, and measure many more programs"
    )
    parser.add_argument(
        "--devices",
        type=whole_number(1, MAX_DEVICES),
        default=1,
        help="time programs over this many devices",
    )
    parser.add_argument("--threads", type=int, default=None, help="use this many processors")
    parser.add_argument(
        "--measure",
        nargs="+",
        choices=KINDS,
        default=KINDS,
        help="what to measure for the programs of --all (memory: in child processes); default: all",
    )
    parser.add_argument(
        "--points",
        action="store_true",
        help="compare modelled with published throughputs instead; nothing runs",
    )
    parser.add_argument(
        "--ops",
        action="store_true",
        help="time every function of ipu.nn and ipu.ops, and steps of ipu.optim, instead",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object for each row")
    parser.add_argument("--only", default="", help="only rows whose name contains this text")


def _ratio(
    program: Callable[[jax.Device], RunMany], name: str, bound: float, rounds: int, sample: float
) -> Row:
    import jax

    from tests.bench.timing import interleave

    on_ipu, on_cpu = (program(jax.devices(platform)[0]) for platform in ("ipu", "cpu"))
    ipu, cpu = interleave(on_ipu, on_cpu, num_rounds=rounds, sample_seconds=sample)
    return Row(name, ipu / cpu, bound, f"ipu {seconds(ipu)}, cpu {seconds(cpu)}")


def _scan(rounds: int, sample: float) -> Row:
    """The time of one step in stacking scans of 100 and 10,000 steps, the larger over the smaller.

    The fixed cost of a call is measured with a scan of one step, and subtracted: the time per step
    must not grow with the length, and the share of the call's cost falls with it anyway.
    """
    import jax

    from tests.bench.programs import stacking_scan
    from tests.bench.timing import interleave

    device = jax.devices("ipu")[0]
    runs = [stacking_scan(device, length) for length in (1, *SCAN_LENGTHS)]
    call, *totals = interleave(*runs, num_rounds=rounds, sample_seconds=sample)
    per_step = [
        (total - call) / (length - 1) for total, length in zip(totals, SCAN_LENGTHS, strict=True)
    ]
    shown = ", ".join(
        f"{seconds(each)} at {length:,} steps ({seconds(total / length)} with the call)"
        for length, each, total in zip(SCAN_LENGTHS, per_step, totals, strict=True)
    )
    ratio = max(per_step) / min(per_step)
    return Row(SCAN, ratio, SCAN_BOUND, f"{shown}; a call {seconds(call)}")


def _host_memory() -> Iterator[Row]:
    from tests.bench.host_memory import measure

    ipu, cpu = measure("ipu"), measure("cpu")
    yield Row(
        HOST_MEMORY[0],
        ipu.step_bytes / cpu.step_bytes,
        MEMORY_BOUND,
        f"ipu {ipu.step_bytes / 2**20:.1f} MiB, cpu {cpu.step_bytes / 2**20:.1f} MiB",
    )
    yield Row(
        HOST_MEMORY[1],
        ipu.growth_bytes / 2**20,
        GROWTH_BOUND_BYTES / 2**20,
        f"{ipu.growth_bytes:,} bytes",
    )


def _sharded_rows(arguments: argparse.Namespace, rounds: int, sample: float) -> Iterator[Row]:
    """Programs over several devices; neither platform may have been used before."""
    import jax

    from tests.bench import sharded
    from tests.bench.timing import interleave

    count, wanted = arguments.devices, arguments.only.lower()
    os.environ["JAX_IPU_DEVICE_COUNT"] = str(max(count, MANY_DEVICES))
    jax.config.update("jax_num_cpu_devices", count)
    ipus, cpus = jax.devices("ipu"), jax.devices("cpu")
    for what, program, bound in SHARDED:
        name = f"{what}, {count} devices"
        if wanted in name.lower():
            run = getattr(sharded, program)
            times = interleave(
                run(ipus[:count]), run(cpus[:count]), num_rounds=rounds, sample_seconds=sample
            )
            detail = f"ipu {seconds(times[0])}, cpu {seconds(times[1])}"
            yield Row(name, times[0] / times[1], bound, detail)
    name = f"compile for {MANY_DEVICES} over {count} devices"
    if wanted in name:
        runs = [sharded.compile_transformer(ipus[:n]) for n in (MANY_DEVICES, count)]
        many, few = interleave(*runs, num_rounds=rounds, sample_seconds=sample)
        yield Row(name, many / few, MANY_DEVICES_BOUND, f"{seconds(many)}, {seconds(few)}")


def _effort(arguments: argparse.Namespace) -> tuple[int, float]:
    """Number of rounds, and seconds for each sample."""
    return (3, 0.05) if arguments.quick else (21, 0.1) if arguments.all else (9, 0.15)


def _child_rows(arguments: argparse.Namespace, name: str, num_devices: int) -> Iterator[Row]:
    """The rows of a workload over several devices, in a child process with these devices."""
    from tests.bench import children

    command = ["-m", "ipujax", "bench", "--all", "--json", "--devices", str(num_devices)]
    command += ["--quick"] * arguments.quick
    command += ["--only", name, "--measure", *arguments.measure]
    for found in children.json_lines(command, good_codes=(0, 1)):
        del found["passed"]
        yield Row(**found)


def _workload_rows(arguments: argparse.Namespace) -> Iterator[Row]:
    """The programs of `--all` over the requested number of devices, by default over any."""
    from tests.bench import comparisons, summary, workloads

    effort = comparisons.Effort(*_effort(arguments))
    measured = []
    for workload in workloads.workloads():
        if arguments.only.lower() not in workload.name.lower():
            continue
        if workload.num_devices == arguments.devices:
            rows = comparisons.rows(workload, arguments.measure, effort)
        elif arguments.devices == 1:
            rows = _child_rows(arguments, workload.name, workload.num_devices)
        else:
            continue
        for row in rows:
            measured.append(row)
            yield row
    yield from summary.rows(measured)


def _rows(arguments: argparse.Namespace) -> Iterator[Row]:
    if arguments.points:
        from tests.bench import points

        yield from points.rows(arguments.only.lower())
        return
    rounds, sample = _effort(arguments)
    if arguments.ops:
        from tests.bench import comparisons, numerics

        yield from numerics.rows(arguments.only.lower(), comparisons.Effort(rounds, sample))
        return
    if arguments.devices > 1:
        yield from _sharded_rows(arguments, rounds, sample)
    else:
        yield from _single_rows(arguments, rounds, sample)
    if arguments.all:
        yield from _workload_rows(arguments)


def _single_rows(arguments: argparse.Namespace, rounds: int, sample: float) -> Iterator[Row]:
    from tests.bench import (
        cpp_programs,
        digests,
        feeds,
        machine,
        pipelined,
        programs,
        published,
        startup,
    )

    wanted = arguments.only.lower()
    if arguments.all and not wanted:
        yield from machine.rows()
    for name, program, bound in TIMED:
        if wanted in name.lower():
            yield _ratio(getattr(programs, program), name, bound, rounds, sample)
    if wanted in SCAN:
        yield _scan(rounds, sample)
    if any(wanted in name.lower() for name in HOST_MEMORY):
        yield from _host_memory()
    if arguments.all and wanted in startup.NAME.lower():
        yield startup.row(rounds)
    if arguments.all and wanted in digests.NAME:
        yield digests.row()
    yield from feeds.rows(wanted, rounds)
    yield from pipelined.rows(wanted, rounds, sample)
    yield from published.rows(wanted)
    yield from cpp_programs.rows(wanted)


def _names(arguments: argparse.Namespace) -> list[str]:
    """The names of all rows from which `--only` selects."""
    from tests.bench import (
        cpp_programs,
        digests,
        feeds,
        numerics,
        pipelined,
        points,
        published,
        startup,
        workloads,
    )

    if arguments.ops:
        return [program.workload.name for program in numerics.programs()]
    if arguments.points:
        return [point.title for point in points.POINTS]
    if arguments.devices > 1:
        names = [f"{what}, {arguments.devices} devices" for what, _, _ in SHARDED]
        names.append(f"compile for {MANY_DEVICES} over {arguments.devices} devices")
    else:
        names = [*(name for name, _, _ in TIMED), SCAN, *HOST_MEMORY]
        names += [*feeds.NAMES, *pipelined.NAMES.values(), *published.ROWS]
        names += cpp_programs.NAMES
    if arguments.all:
        names += [startup.NAME, digests.NAME, *(w.name for w in workloads.workloads())]
    return names


def _check_only(arguments: argparse.Namespace) -> None:
    """Refuses an `--only` that selects nothing, which would count as "within bounds"."""
    names, wanted = _names(arguments), arguments.only.lower()
    if any(wanted in name.lower() for name in names):
        return
    close = difflib.get_close_matches(wanted, [name.lower() for name in names], n=5, cutoff=0.3)
    shown = [name for name in names if name.lower() in close] or names
    more = (
        "" if arguments.all or arguments.ops or arguments.points else " --all adds more programs."
    )
    raise ConfigError(
        f"[bench] needs --only to be part of a row's name; got {arguments.only!r}. Use a part of: "
        f"{'; '.join(shown)}.{more}"
    )


def run(arguments: argparse.Namespace) -> int:
    """Prints each row when it is measured."""
    if arguments.threads is not None:
        threads.limit(arguments.threads)
    _check_only(arguments)
    missed = []
    if not arguments.json:
        print(HEADING)
    for row in _rows(arguments):
        if not row.passed:
            missed.append(row.name)
        if arguments.json:
            print(json.dumps({**asdict(row), "passed": row.passed}))
        else:
            print(row.text)
        sys.stdout.flush()
    if not arguments.json:
        print("all within bounds" if not missed else f"missed: {', '.join(missed)}")
    return 1 if missed else 0
