"""Asks whether a Spark master or Connect server answers, before Spark tries for minutes."""

from __future__ import annotations

import re
import socket
import ssl

from headrace.errors import EnvironmentFault

PATIENCE_SECONDS = 4.0
"""Time that each host is given. Spark itself tries a master for a minute, and a Connect server for longer."""

ANSWER_SECONDS = 8.0
"""Time that a Connect server is given to answer on a connection. Where it never does, PySpark waits for ever."""

_CONNECT_PORT = 15002
_ADDRESS = re.compile(r"(?P<scheme>spark|sc|k8s)://(?:https?://)?(?P<hosts>[^/;?]+)(?P<options>.*)")
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""The first bytes of every HTTP/2 client: the preface, and settings that change nothing.

gRPC's servers answer them.
"""
_PORTS = {"spark": 7077, "sc": _CONNECT_PORT, "k8s": 443}


def refuse_unreachable(address: str) -> None:
    """Refuse a master that cannot be reached, or a Connect server that does not answer.

    Other kinds of masters are let through.

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
            with socket.create_connection((host, port), PATIENCE_SECONDS) as connection:
                if match["scheme"] == "sc":
                    _greet(connection, host, _encrypted(host, match["options"]))
        except OSError as error:
            why = f"{host}:{port}: {error.strerror or error}"
        else:
            return
    setting = "spark_remote" if match["scheme"] == "sc" else "spark_master"
    raise EnvironmentFault(
        "SPARK_UNAVAILABLE",
        f"Nothing answers at {match['scheme']}://{match['hosts']}.",
        detail=why,
        hint=f"Check that it runs and can be reached from here, and {setting} in headrace.toml (or the variable "
        f"HEADRACE_{setting.upper()}).",
        retryable=True,
    )


def _encrypted(host: str, options: str) -> bool:
    """Return whether PySpark speaks TLS to a Connect server."""
    given = options.lower()
    return "use_ssl=true" in given or ("token=" in given and host != "localhost")


def _greet(connection: socket.socket, host: str, encrypted: bool) -> None:
    """Have a Connect server say anything; whom it is trusted to be is PySpark's to check.

    Raises:
        OSError: It does not.
    """
    connection.settimeout(ANSWER_SECONDS)
    try:
        if encrypted:
            trusting = ssl.create_default_context()
            trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
            trusting.set_alpn_protocols(["h2"])
            connection = trusting.wrap_socket(connection, server_hostname=host)
        connection.sendall(_GREETING)
        answered = connection.recv(1)
    except TimeoutError:
        raise OSError("it takes connections, but answers none") from None
    if not answered:
        raise OSError("it ends connections without an answer")


def _split(text: str, port: int) -> tuple[str, int]:
    """Return host and port; an IPv6 address stands in brackets."""
    match = re.fullmatch(r"\[(?P<six>[^]]+)\](?::(?P<port6>\d+))?|(?P<host>[^:]+)(?::(?P<port>\d+))?", text)
    if match is None:
        return text, port
    given = match["port6"] or match["port"]
    return match["six"] or match["host"], int(given) if given else port
