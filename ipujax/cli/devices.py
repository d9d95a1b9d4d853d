"""Lists the IPUs that JAX sees, with their properties."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ipujax.api.configure import devices as listing
from ipujax.config import options as config
from ipujax.errors import IpuError

ATTRIBUTES = ("num_ipus", "num_tiles", "bytes_per_tile", "clock_hz")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--ids", action="store_true", help="list the ids of the host's IPUs, and who has which"
    )


def describe() -> list[dict[str, Any]]:
    """One dictionary for each device of the platform "ipu".

    Raises:
        IpuError: JAX does not have the platform, or cannot create its devices.
    """
    import jax

    config.from_environment()
    try:
        found = jax.devices("ipu")
    except RuntimeError as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise IpuError(
            f'[devices] needs the platform "ipu"; got: {reason}. Run python -m ipujax doctor.'
        ) from None
    return [
        {
            "id": device.id,
            "kind": device.device_kind,
            "process": device.process_index,
            **{name: getattr(device, name) for name in ATTRIBUTES},
            "is_ipu_model": bool(device.is_ipu_model),
        }
        for device in found
    ]


def _print_ids(as_json: bool) -> None:
    found = listing.ids()
    if as_json:
        print(json.dumps([each._asdict() for each in found], indent=2))
        return
    for each in found:
        ipus = ", ".join(map(str, each.ipus))
        processes = ", ".join(map(str, each.processes))
        owner = f"  process {processes}" if processes else ""
        print(f"id {each.id:3}  {len(each.ipus):2} IPU  {ipus}{owner}")


def run(arguments: argparse.Namespace) -> int:
    if arguments.ids:
        _print_ids(arguments.json)
        return 0
    found = describe()
    if arguments.json:
        print(json.dumps(found, indent=2))
        return 0
    for device in found:
        memory = device["num_tiles"] * device["bytes_per_tile"]
        where = "IPU Model" if device["is_ipu_model"] else "hardware"
        print(
            f"ipu:{device['id']}  {device['kind']}  {device['num_ipus']} IPU, "
            f"{device['num_tiles']} tiles  {memory / 2**20:.0f} MiB  "
            f"{device['clock_hz'] / 1e9:.2f} GHz  {where}"
        )
    return 0
