"""Options of programs that run over several processes."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass

from ipujax.config.option import option


def _check_address(text: str) -> str | None:
    try:
        if text:
            ipaddress.ip_address(text)
    except ValueError:
        return "an IP address of this host, such as 10.1.5.10"
    return None


@dataclass(frozen=True)
class HostsOptions:
    """How the processes of a job reach each other."""

    host_address: str = option(
        "",
        "IP address at which the other processes reach this one; empty: that of the network "
        "interface which leads to the coordinator.",
        "IPUJAX_HOST_ADDRESS",
        check=_check_address,
    )
    host_timeout: int = option(
        300,
        "Seconds that a program waits for a silent process before it is an error.",
        "IPUJAX_HOST_TIMEOUT",
        bounds=(1, 10**6),
    )
