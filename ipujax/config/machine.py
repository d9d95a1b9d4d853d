"""Options of the devices: which IPUs and how many, how they are attached, what is modelled."""

from __future__ import annotations

from dataclasses import dataclass

from ipujax.config.option import option

#: Largest number of JAX devices, and of IPUs.
MAX_DEVICES = 1024
#: Largest number of IPUs in one JAX device.
MAX_IPUS_PER_DEVICE = 64


def machine_names() -> tuple[str, ...]:
    """The machines of the model, which cpp/model/engine/Machine.cpp lists."""
    from ipujax._poplar import _poplar

    return tuple(_poplar.poplar.machineNames())


def numbers(text: str) -> list[int]:
    """Comma-separated whole numbers; ValueError for any other text."""
    parts = [part.strip() for part in text.split(",")] if text else []
    # The length is checked first: Python refuses to convert thousands of digits.
    if not all(part.isdecimal() and len(part) <= 4 for part in parts):
        raise ValueError(text)
    return [int(part) for part in parts]


def groups(num_ipus_in_host: int) -> list[tuple[int, int]]:
    """The first IPU and the number of IPUs of each id: single IPUs, then pairs, fours, ...

    Example:
        >>> groups(4)
        [(0, 1), (1, 1), (2, 1), (3, 1), (0, 2), (2, 2), (0, 4)]
    """
    found = []
    size = 1
    while size <= num_ipus_in_host:
        found += [(first, size) for first in range(0, num_ipus_in_host - size + 1, size)]
        size *= 2
    return found


def _check_ids(text: str) -> str | None:
    try:
        ids = numbers(text)
    except ValueError:
        ids = [-1]
    if len(set(ids)) != len(ids) or not all(0 <= each < MAX_DEVICES for each in ids):
        return f"distinct device numbers, comma-separated, below {MAX_DEVICES}, such as 0,1"
    return None


def _check_num_ipus(text: str) -> str | None:
    try:
        counts = numbers(text)
    except ValueError:
        counts = [0]
    if len(counts) > MAX_DEVICES or not all(1 <= each <= MAX_IPUS_PER_DEVICE for each in counts):
        return f"numbers of IPUs from 1 to {MAX_IPUS_PER_DEVICE}, comma-separated, such as 1,2"
    return None


@dataclass(frozen=True)
class DeviceOptions:
    """Which IPUs are JAX devices. Each device is one IPU or several."""

    device_count: int = option(
        4, "Number of JAX devices.", "JAX_IPU_DEVICE_COUNT", bounds=(1, MAX_DEVICES)
    )
    visible_devices: str = option(
        "",
        "IPUs to use as JAX devices, comma-separated, instead of a count.",
        "JAX_IPU_VISIBLE_DEVICES",
        check=_check_ids,
        numbers=True,
    )
    ipus_per_device: int = option(
        1,
        "Number of IPUs in one JAX device.",
        "JAX_IPU_IPUS_PER_DEVICE",
        bounds=(1, MAX_IPUS_PER_DEVICE),
    )
    num_ipus: str = option(
        "",
        "Numbers of IPUs of the JAX devices, comma-separated: powers of two; empty: device_count "
        "devices of ipus_per_device.",
        "IPUJAX_NUM_IPUS",
        check=_check_num_ipus,
        numbers=True,
    )
    device_ids: str = option(
        "",
        "Ids of the JAX devices, comma-separated, as ipujax devices --ids lists single IPUs and "
        "groups; empty: any.",
        "IPUJAX_DEVICE_IDS",
        check=_check_ids,
        numbers=True,
    )
    auto_round_num_ipus: bool = option(
        False,
        "Round num_ipus up to powers of two; the other IPUs are idle.",
        "IPUJAX_AUTO_ROUND_NUM_IPUS",
    )
    selection_order: str = option(
        "auto",
        "Which IPU of a device is IPU 0, 1, ... of its programs: the natural order, that in which "
        "each is linked to the next, or one that also ends beside its beginning.",
        "IPUJAX_SELECTION_ORDER",
        ("auto", "zigzag", "snake", "hoof"),
    )


@dataclass(frozen=True)
class AttachmentOptions:
    """When a process attaches to its IPUs, and whether it has them for itself."""

    connection: str = option(
        "always",
        "When to attach: as JAX makes its devices, before the first program, or never. With "
        "pre_compile programs compile and give zeros, with never they do not run.",
        "IPUJAX_CONNECTION",
        ("always", "on_demand", "pre_compile", "never"),
    )
    enable_remote_buffers: bool = option(
        True,
        "Whether the IPUs that programs will run on have streaming memory; asked where this "
        "process does not attach as JAX makes its devices.",
        "IPUJAX_ENABLE_REMOTE_BUFFERS",
    )
    exclusive: bool = option(
        False,
        "Let no two processes of a user have the same modelled IPU, as on hardware.",
        "IPUJAX_EXCLUSIVE",
    )
    num_ipus_in_host: int = option(
        16,
        "Number of IPUs of the host: they have ids, and with exclusive processes share them.",
        "IPUJAX_NUM_IPUS_IN_HOST",
        bounds=(1, MAX_DEVICES),
    )
    wait_for_ipu: bool = option(
        False,
        "Wait for IPUs that other processes have, instead of an error.",
        "IPUJAX_WAIT_FOR_IPU",
    )
    wait_seconds: float = option(
        0.0,
        "Longest time to wait for IPUs; 0: no limit.",
        "IPUJAX_WAIT_SECONDS",
        bounds=(0.0, 1e7),
    )


@dataclass(frozen=True)
class ModelOptions:
    """What the IPU Model models."""

    use_model: bool = option(
        True,
        "Run on the IPU Model, the only target of a build without the Poplar SDK.",
        "JAX_IPU_USE_MODEL",
    )
    machine: str = option("gc200", "Kind of IPU that is modelled.", "IPUJAX_MACHINE", machine_names)
    num_tiles: int = option(
        0,
        "Number of tiles of each modelled IPU; 0: all tiles of the machine.",
        "JAX_IPU_MODEL_NUM_TILES",
        bounds=(0, 2**16),
    )
    streaming_gigabytes: int = option(
        0,
        "Streaming memory (DRAM) of each machine of IPUs, in GB; 0: as the modelled machine has.",
        "IPUJAX_STREAMING_GIGABYTES",
        bounds=(0, 2**20),
    )
    compile_ipu_code: bool = option(
        True,
        "Compile code of IPUs to learn its size.",
        "IPUJAX_COMPILE_IPU_CODE",
        no_effect="sizes of code are estimated; nothing is compiled for IPUs",
    )
