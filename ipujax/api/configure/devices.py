"""`ipu.devices`: the IPUs of JAX's devices, their ids, and the processes that have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from ipujax.api.configure import settings
from ipujax.config import options as config
from ipujax.config.machine import groups
from ipujax.config.options import MachineConfig
from ipujax.errors import ConfigError
from ipujax.host import attached

#: Graphcore's names of the architecture of machines.
TARGETS = {"ipu2": "gc200", "ipu21": "c600"}


class DeviceId(NamedTuple):
    """One id of the host: an IPU, or a group of IPUs that can be one device."""

    id: int
    ipus: tuple[int, ...]  #: their numbers; each is also the id of the IPU alone
    processes: tuple[int, ...]  #: processes that have some of them, if `exclusive`


def ids(num_ipus: int | None = None) -> list[DeviceId]:
    """The ids of the host's IPUs: first each alone, then pairs, groups of four and so on.

    Args:
        num_ipus: only ids of this many IPUs; None: all.
    Raises:
        AttachError: the folder of the lock files is not private.

    Source: `gc-info -l`, and `poplar::DeviceManager::getDevices`.

    Example:
        >>> [each.id for each in ipu.devices.ids(num_ipus=8)]
        [28, 29]
        >>> ipu.devices.ids()[16].ipus
        (0, 1)
    """
    limit = config.from_environment().machine.num_ipus_in_host
    owners = attached.owners(limit)
    found = []
    for number, (first, count) in enumerate(groups(limit)):
        ipus = tuple(range(first, first + count))
        processes = tuple(sorted({owners[ipu] for ipu in ipus if ipu in owners}))
        if num_ipus in (None, count):
            found.append(DeviceId(number, ipus, processes))
    return found


def select(
    num_ipus: int | Sequence[int] | None = None,
    ids: int | Sequence[int] | None = None,
    *,
    order: str = "auto",
    auto_round: bool = False,
    connection: str = "always",
    target: str | None = None,
    remote_buffers: bool = True,
    exclusive: bool | None = None,
    wait: bool = False,
    seconds: float = 0.0,
    reset: bool = False,
) -> list[jax.Device]:
    """Chooses the IPUs of JAX's devices and makes them. Call it before JAX does, or pass `reset`.

    Args:
        num_ipus: 4 is one device of four IPUs; (1, 2) is two devices, of one and of two. Powers of
            two.
        ids: the id of each device, as `ids()` and `ipujax devices --ids` list them; instead of
            `num_ipus`. No IPU can be in two of them.
        order: which IPU of a device is IPU 0, 1, ... of programs: "zigzag" is the natural order,
            in "snake" each IPU is linked to the next, and in "hoof" the last also to the first;
            "auto" is "zigzag".
        auto_round: round numbers up to powers of two; the other IPUs are idle.
        connection: "always" attaches now, "on_demand" before the first program is compiled or
            loaded; with "pre_compile" programs compile and return zeros, and with "never" running
            them is an error.
        target: the machine: "gc200", "bow", "c600", or "ipu2", "ipu21"; None: as configured.
        remote_buffers: whether the IPUs that programs will run on have streaming memory; unused if
            `connection` is "always".
        exclusive: refuse these IPUs to other processes of this user that also set it; None: as
            configured, off by default.
        wait: wait for IPUs that other processes have, at most `seconds`; 0 is no limit.
        reset: release existing devices; their arrays keep their values.
    Returns:
        JAX's devices.
    Raises:
        ConfigError: devices exist already, or an argument is not allowed.
        AttachError: other processes have the IPUs.

    Source: `auto_select_ipus`, `select_ipus`, `SelectionOrder` and `DeviceConnectionType` of
    Graphcore's TensorFlow; `useIpuId`, `autoRoundNumIPUs` and `POPTORCH_WAIT_FOR_IPU` of PopTorch.

    Example:
        >>> try:
        ...     ipu.devices.select(num_ipus=3)
        ... except ipu.ConfigError as error:
        ...     print(str(error)[:41])
        [config] num_ipus needs powers of two, wh
    """
    if (num_ipus is None) == (ids is None):
        raise ConfigError(
            f"[devices.select] needs num_ipus or ids; got num_ipus={num_ipus!r} and ids={ids!r}. "
            "Pass one of them."
        )
    chosen = _listed("num_ipus", num_ipus) if ids is None else _listed("ids", ids)
    values: dict[str, Any] = {
        "num_ipus": chosen if ids is None else "",
        "device_ids": "" if ids is None else chosen,
        "selection_order": order,
        "auto_round_num_ipus": auto_round,
        "connection": connection,
        "enable_remote_buffers": remote_buffers,
        "wait_for_ipu": wait,
        "wait_seconds": seconds,
    }
    if target is not None:
        values["machine"] = TARGETS.get(target, target)
    if exclusive is not None:
        values["exclusive"] = exclusive
    settings.configure(reset=reset, **values)
    return list(jax.devices("ipu"))


def _listed(name: str, given: int | Sequence[int] | None) -> list[int]:
    numbers = [given] if isinstance(given, int) else list(given or ())
    if not numbers or not all(isinstance(n, int) and not isinstance(n, bool) for n in numbers):
        raise ConfigError(
            f"[devices.select] {name} needs a whole number, or one for each device; got {given!r}. "
            "Pass such numbers."
        )
    return numbers


def attach(machine: MachineConfig) -> list[int]:
    """Attaches as the options say; returns the first IPU of each device.

    Raises:
        AttachError: other processes have the IPUs.
    """
    if not machine.exclusive:
        return machine.first_ipus
    return attached.attach(
        machine.ipus,
        machine.num_ipus_in_host,
        machine.chosen,
        machine.wait_for_ipu,
        machine.wait_seconds,
    )


def attach_on_demand(machine: MachineConfig) -> None:
    """With connection "on_demand", attaches before a program is compiled or read from the cache."""
    if machine.connection == "on_demand" and machine.exclusive and not attached.held():
        attach(machine)
