"""Which process of a job runs where, on which IPUs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ipujax.errors import ConfigError

_RANK = Path(__file__).with_name("rank.py")


@dataclass(frozen=True)
class Plan:
    """A job: `size` processes of `devices` devices each, `size / len(hosts)` on each host.

    Attributes:
        command: what each process runs.
        size: number of processes.
        devices: JAX devices of each process.
        ipus_per_device: IPUs of each device.
        hosts: names of hosts; empty: this one.
    """

    command: tuple[str, ...]
    size: int
    devices: int
    ipus_per_device: int
    hosts: tuple[str, ...] = ()

    @property
    def local_size(self) -> int:
        """The number of processes on each host."""
        return self.size // max(1, len(self.hosts))

    def rows(self) -> list[str]:
        """One line for each process."""
        rows = []
        for rank in range(self.size):
            host = self.hosts[rank // self.local_size] if self.hosts else "this host"
            first = rank % self.local_size * self.devices * self.ipus_per_device
            last = first + self.devices * self.ipus_per_device - 1
            ipus = f"IPUs {first} to {last}" if last > first else f"IPU {first}"
            devices = f"{self.devices} device" + ("s" if self.devices > 1 else "")
            rows.append(f"rank {rank}: {host}, {devices}, {ipus}")
        return rows

    def commands(self, coordinator: str, unused_port: int, restarts: int) -> list[list[str]]:
        """The commands that start the job: one for each process, or one of mpiexec for all."""
        common = {
            "size": self.size,
            "local_size": self.local_size,
            "devices": self.devices,
            "ipus_per_device": self.ipus_per_device,
            "coordinator": coordinator,
            "unused_port": unused_port,
            "restarts": restarts,
        }
        if self.hosts:
            start = [
                *("mpiexec", "-hosts", ",".join(self.hosts), "-n", str(self.size)),
                *("-ppn", str(self.local_size), "-prepend-rank"),
            ]
            return [[*start, sys.executable, str(_RANK), json.dumps(common), *self.command]]
        made = []
        for rank in range(self.size):
            own = {**common, "rank": rank, "local_rank": rank, "launcher": os.getpid()}
            made.append([sys.executable, str(_RANK), json.dumps(own), *self.command])
        return made


def plan_of(
    command: Sequence[str],
    size: int,
    replicas: int | None,
    ipus_per_replica: int,
    hosts: Sequence[str] = (),
) -> Plan:
    """The plan of a job.

    Args:
        command: what each process runs; `train.py` is run by this Python.
        size: number of processes.
        replicas: devices of all processes; None: one for each.
        ipus_per_replica: IPUs of a device.
        hosts: names of hosts; empty: this one.
    Raises:
        ConfigError: numbers that cannot be divided evenly, or no command.
    """
    replicas = size if replicas is None else replicas
    if size < 1 or replicas < 1 or ipus_per_replica < 1:
        raise ConfigError(
            f"[launch] needs at least one process, replica and IPU; got {size}, {replicas} and "
            f"{ipus_per_replica}. Pass -n, --replicas and --ipus-per-replica."
        )
    if replicas % size or size % max(1, len(hosts)):
        raise ConfigError(
            f"[launch] needs replicas that processes share evenly, and processes that hosts share "
            f"evenly; got {replicas} replicas, {size} processes and {max(1, len(hosts))} hosts. "
            "Change -n or --replicas."
        )
    if not command:
        raise ConfigError(
            "[launch] needs a command; got none. Write it after the options, as in ipujax launch "
            "-n 4 python train.py."
        )
    first = command[0]
    if first.endswith(".py"):
        command = [sys.executable, *command]
    return Plan(tuple(command), size, replicas // size, ipus_per_replica, tuple(hosts))
