"""Addresses to listen at."""

from __future__ import annotations

import ipaddress

__all__ = ["LOOPBACK", "PORTS", "ip_of"]

LOOPBACK = "127.0.0.1"
PORTS = range(1, 65_536)


def ip_of(written: str) -> str | None:
    """Return the IP address that is written, which `localhost` is too; None when it is none."""
    try:
        return LOOPBACK if written == "localhost" else str(ipaddress.ip_address(written))
    except ValueError:
        return None
