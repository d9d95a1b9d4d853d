"""A process that gives each option of the machine two values, and prints what it sees of them.

Devices are made anew for each value. Prints a JSON object: of each option what was seen.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import jax.numpy as jnp

import ipujax as ipu
from ipujax import jax_compat, plugin
from ipujax.host import attached

X = jnp.arange(4, dtype=jnp.float32)


def devices() -> object:
    return [(each.num_ipus, each.memory_stats()["bytes_limit"]) for each in jax.devices("ipu")]


def first_ipus() -> object:
    return [list(map(int, ipu.get_config().machine.first_ipus)), len(jax.devices("ipu"))]


def run() -> object:
    return jax.jit(lambda x: x + 1)(X).tolist()


def seconds() -> object:
    return jax.jit(jnp.sort).lower(jnp.zeros(4096)).compile().cost_analysis()["seconds"]


def link_cycles() -> object:
    """Of a copy from the third IPU of the device to the fourth."""

    def staged(x: Any) -> Any:
        with ipu.shard(2):
            x = jnp.sin(x)
        with ipu.shard(3):
            return jnp.cos(x)

    made = jax.jit(staged).lower(jnp.zeros(4096)).compile()
    return {name: value for name, value in made.cost_analysis().items() if name[:4] == "ipu "}


def on_host(num_bytes: int) -> Callable[[], object]:
    """Compiles a program with an argument in streaming memory."""

    def see() -> object:
        host = jax.sharding.SingleDeviceSharding(jax.devices("ipu")[0], memory_kind="pinned_host")
        x = jax.ShapeDtypeStruct((num_bytes // 4,), jnp.float32, sharding=host)
        jax.jit(lambda x: x, out_shardings=host).lower(x).compile()
        return "compiled"

    return see


@contextmanager
def taken() -> Iterator[None]:
    """IPU 0, as another process takes it."""
    path = attached._folder() / "ipu0.lock"
    with Path(path).open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def job_options() -> object:
    """What the client of a job of two processes is told."""
    with (
        mock.patch.object(jax_compat, "num_processes", return_value=2),
        mock.patch.object(jax_compat, "coordinator_address", return_value="127.0.0.1:1"),
    ):
        return [plugin._client_options()[name] for name in ("host_address", "host_timeout")]


#: Each option has two values, what shows them, what else is set, and whether another holds IPU 0.
ROWS: dict[str, tuple[tuple[Any, Any], Callable[[], object], dict[str, Any], bool]] = {
    "device_count": ((2, 3), devices, {}, False),
    "visible_devices": (("0", "1,2"), first_ipus, {}, False),
    "ipus_per_device": ((1, 2), devices, {"device_count": 2}, False),
    "num_ipus": (("1", "1,2"), devices, {}, False),
    "device_ids": (("0", "16"), devices, {}, False),
    "auto_round_num_ipus": ((False, True), devices, {"num_ipus": "3"}, False),
    "selection_order": (("zigzag", "hoof"), link_cycles, {"num_ipus": "8"}, False),
    "connection": (("always", "never"), run, {}, False),
    "enable_remote_buffers": ((True, False), on_host(1024), {"connection": "never"}, False),
    "exclusive": ((False, True), lambda: (jax.devices(), attached.held())[1], {}, False),
    "host_address": (("", "127.0.0.2"), job_options, {}, False),
    "host_timeout": ((300, 20), job_options, {}, False),
    "num_ipus_in_host": ((16, 32), devices, {"device_ids": "40"}, False),
    "wait_for_ipu": (
        (False, True),
        devices,
        {"exclusive": True, "device_ids": "0", "wait_seconds": 0.1},
        True,
    ),
    "wait_seconds": (
        (0.1, 0.2),
        devices,
        {"exclusive": True, "device_ids": "0", "wait_for_ipu": True},
        True,
    ),
    "use_model": ((True, False), devices, {}, False),
    "machine": (("gc200", "bow"), seconds, {}, False),
    "num_tiles": ((4, 16), seconds, {}, False),
    "streaming_gigabytes": (
        (1, 0),
        on_host(2 << 30),
        {"out_of_memory": "error", "fit": "off"},
        False,
    ),
}


def seen(see: Callable[[], object], values: dict[str, Any], is_taken: bool) -> object:
    with ExitStack() as stack:
        try:
            ipu.configure(reset=True, **values)
            if is_taken:
                stack.enter_context(taken())
            return see()
        except Exception as error:  # JAX raises its own for ours
            return str(error)


if __name__ == "__main__":
    os.environ.pop("JAX_IPU_DEVICE_COUNT", None)
    found = {
        name: [seen(see, {**more, name: value}, is_taken) for value in values]
        for name, (values, see, more, is_taken) in ROWS.items()
    }
    print(json.dumps(found))
