"""HTTP servers of this process: quiet, and bound before they begin."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from starlette.types import ASGIApp

from headrace.addresses import Address
from headrace.errors import EnvironmentFault

if TYPE_CHECKING:
    import uvicorn


def listening_socket(address: Address) -> socket.socket:
    """Return a socket that listens at an address.

    Raises:
        EnvironmentFault: `ADDRESS_UNAVAILABLE`.
    """
    try:
        family, kind, protocol, _, where = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(where)
            listener.listen(128)
        except OSError:
            listener.close()
            raise
    except OSError as error:
        raise EnvironmentFault(
            "ADDRESS_UNAVAILABLE",
            f"Nothing can listen at {address}.",
            detail=error.strerror or str(error),
            hint="Another process may have the port: name another one, or 0 for any that is free.",
        ) from error
    return listener


def quiet_config(
    application: ASGIApp, *, patience: int, protocol: type[asyncio.Protocol] | None = None
) -> uvicorn.Config:
    """Return how an application is served: without a log, and without believing proxies.

    Args:
        application: What answers.
        patience: Seconds that answers under way are given at the end.
        protocol: What speaks HTTP, if it is no plain one.
    """
    import uvicorn

    return uvicorn.Config(
        application,
        http=protocol or "h11",
        ws="none",
        lifespan="off",
        loop="asyncio",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,  # who asks is who is connected, whatever a header says
        timeout_graceful_shutdown=patience,
    )


def http_server(application: ASGIApp) -> uvicorn.Server:
    """Return an HTTP server of an application that leaves signals to others."""
    import uvicorn

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    return Server(quiet_config(application, patience=5))
