"""Asks whether a Spark master or Connect server answers, before Spark tries for minutes."""

from __future__ import annotations

import re
import socket

from headrace.errors import EnvironmentFault

PATIENCE_SECONDS = 4.0
"""Time that each host is given. Spark itself tries a master for a minute, and a Connect server for longer."""

_CONNECT_PORT = 15002
_ADDRESS = re.compile(r"(?P<scheme>spark|sc|k8s)://(?:https?://)?(?P<hosts>[^/;?]+)")
_PORTS = {"spark": 7077, "sc": _CONNECT_PORT, "k8s": 443}


def refuse_unreachable(address: str) -> None:
    """Refuse a master or server that does not answer; other kinds of masters are let through.

    Args:
        address: Such as `spark://a:7077,b:7077`, `sc://host:15002` or `k8s://https://host:6443`.

    Raises:
        EnvironmentFault: `SPARK_UNAVAILABLE` (retryable), within seconds.
    """
    match = _ADDRESS.match(address)
    if match is None:
        return
    why = ""
    for text in match["hosts"].rpartition("@")[2].split(",")[:3]:
        host, port = _split(text, _PORTS[match["scheme"]])
        try:
            socket.create_connection((host, port), PATIENCE_SECONDS).close()
        except OSError as error:
            why = f"{host}:{port}: {error.strerror or error}"
        else:
            return
    setting = "spark_remote" if match["scheme"] == "sc" else "spark_master"
    raise EnvironmentFault(
        "SPARK_UNAVAILABLE",
        f"Nothing answers at {match[0]}.",
        detail=why,
        hint=f"Check that it runs and can be reached from here, and {setting} in headrace.toml (or the variable "
        f"HEADRACE_{setting.upper()}).",
        retryable=True,
    )


def _split(text: str, port: int) -> tuple[str, int]:
    """Return host and port; an IPv6 address stands in brackets."""
    match = re.fullmatch(r"\[(?P<six>[^]]+)\](?::(?P<port6>\d+))?|(?P<host>[^:]+)(?::(?P<port>\d+))?", text)
    if match is None:
        return text, port
    given = match["port6"] or match["port"]
    return match["six"] or match["host"], int(given) if given else port
