"""Starts a program in several processes, which share the IPUs of this host or of several.

Each process calls jax.distributed.initialize() without arguments. Their lines appear with the rank
before them, and in a file for each. When one fails, the others are ended, and its message is the
last. On other hosts, mpiexec starts them.

Example: python -m ipujax launch -n 4 --replicas 16 python train.py
"""

from __future__ import annotations

import argparse
import contextlib
import shlex
import socket
import sys
import time
from pathlib import Path

from ipujax import jax_compat
from ipujax.errors import ConfigError
from ipujax.host.addresses import address_towards
from ipujax.launch.job import Job
from ipujax.launch.plan import Plan, plan_of

#: Seconds in which a process may be silent towards JAX's coordinator.
_HEARTBEAT = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-n", "--processes", type=int, default=1, help="number of processes")
    parser.add_argument(
        "--replicas", type=int, help="devices of all processes together; default: one for each"
    )
    parser.add_argument("--ipus-per-replica", type=int, default=1, help="IPUs of each device")
    parser.add_argument("--hosts", default="", help="names of hosts, comma-separated")
    parser.add_argument(
        "--restarts", type=int, default=0, help="how often to start all again after a failure"
    )
    parser.add_argument(
        "--logs", type=Path, help="folder of a log file for each rank; default: launch-TIME"
    )
    parser.add_argument("--dry-run", action="store_true", help="print the plan and end")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="what each process runs")


def run(arguments: argparse.Namespace) -> int:
    command = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    hosts = [each.strip() for each in arguments.hosts.split(",") if each.strip()]
    plan = plan_of(
        command, arguments.processes, arguments.replicas, arguments.ipus_per_replica, hosts
    )
    if arguments.dry_run:
        print("\n".join(plan.rows()))
        print("each runs:", shlex.join(plan.command))
        return 0
    logs = arguments.logs or Path(time.strftime("launch-%Y%m%d-%H%M%S"))
    for tries in range(max(0, arguments.restarts) + 1):
        code = _run_once(plan, logs, tries)
        if code == 0:
            break
        if tries < arguments.restarts:
            print(f"[launch] starts all processes again, for time {tries + 1}", file=sys.stderr)
    return code


def _run_once(plan: Plan, logs: Path, tries: int) -> int:
    """One job: a coordinator and all processes, which end together."""
    port, unused = _free_port(), _free_port()
    address = _own_address(plan)
    service = jax_compat.coordinator(f"[::]:{port}", plan.size, _HEARTBEAT)
    try:
        return Job(plan.commands(f"{address}:{port}", unused, tries), plan.size, logs).wait()
    except KeyboardInterrupt:
        print("[launch] ended all processes after Ctrl-C", file=sys.stderr)
        return 130
    finally:
        with contextlib.suppress(Exception):  # processes that were killed never said goodbye
            service.shutdown()


def _own_address(plan: Plan) -> str:
    if not plan.hosts:
        return "127.0.0.1"
    try:
        return address_towards(plan.hosts[0])
    except OSError as error:
        raise ConfigError(
            f"[launch] needs hosts that it can reach; got {error} for {plan.hosts[0]!r}. Correct "
            "--hosts."
        ) from None


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        return int(probe.getsockname()[1])
