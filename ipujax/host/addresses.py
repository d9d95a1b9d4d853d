"""Addresses of this host."""

from __future__ import annotations

import socket

#: Nothing is sent to it: a UDP socket that is connected only chooses an interface.
_ANY_PORT = 9


def address_towards(host: str) -> str:
    """The IP address of the network interface that leads to a host.

    Args:
        host: a name or an address, with a port or without.
    Raises:
        OSError: the name is not known, or nothing leads there.
    """
    name = host.rsplit(":", 1)[0].strip("[]") if host.count(":") == 1 or "]" in host else host
    for family, kind, protocol, _, address in socket.getaddrinfo(
        name, _ANY_PORT, type=socket.SOCK_DGRAM
    ):
        with socket.socket(family, kind, protocol) as probe:
            probe.connect(address)
            return str(probe.getsockname()[0])
    raise OSError(f"{name!r} has no address")
