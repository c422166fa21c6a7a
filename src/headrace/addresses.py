"""Reads `HOST:PORT` of an address to listen at; loopback where no host is named."""

from __future__ import annotations

import re
from dataclasses import dataclass

from headrace.errors import UserError

LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True, slots=True)
class Address:
    """An address to listen at.

    Args:
        host: A name or an IP address; without brackets.
        port: The port; 0 for any that is free.
    """

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Return whether only this machine reaches it."""
        return self.host in LOOPBACK or self.host.startswith("127.")

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, what: str) -> Address:
    """Return the address of a text: `HOST:PORT`, `[IPV6]:PORT`, or a port of this machine.

    Args:
        text: The text.
        what: Which option or setting it is, for the error.

    Raises:
        UserError: `ADDRESS_INVALID`.
    """
    found = re.fullmatch(r"(?:(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\]):)?(?P<port>\d{1,5})", text.strip())
    if found is None or int(found["port"]) > 65535:
        raise UserError(
            "ADDRESS_INVALID",
            f"{what} is {text!r}, which is no address to listen at.",
            hint="Write HOST:PORT, such as 127.0.0.1:9464, or a port of this machine: 9464.",
        )
    return Address((found["host"] or LOOPBACK[0]).strip("[]"), int(found["port"]))
