"""Serves metrics at an address of this machine, from a thread, while a block runs."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.types import ASGIApp

from headrace.addresses import LOOPBACK, Address
from headrace.errors import EnvironmentFault
from headrace.extras import require
from headrace.serve.monitoring.monitoring_routes import monitoring_routes
from headrace.serve.monitoring.project_monitor import ProjectMonitor

if TYPE_CHECKING:
    import uvicorn


@contextmanager
def serving_metrics(monitor: ProjectMonitor, address: Address) -> Iterator[Address]:
    """Answer Prometheus while the block runs; yields the address, with the port that was taken.

    Args:
        monitor: Looks at the project, in the process that runs its schedules.
        address: Where.

    Raises:
        EnvironmentFault: `ADDRESS_UNAVAILABLE`, `PACKAGE_MISSING`.
    """
    require("prometheus_client", "--metrics", "metrics")
    listener = bound(address)
    monitor.begin()
    server = http_server(
        Starlette(routes=monitoring_routes(lambda: monitor, owner=True), middleware=host_check(address))
    )
    thread = threading.Thread(
        target=lambda: asyncio.run(server.serve(sockets=[listener])), name="headrace-metrics", daemon=True
    )
    thread.start()
    try:
        yield Address(address.host, listener.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(10.0)
        listener.close()


def bound(address: Address) -> socket.socket:
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


def host_check(address: Address) -> list[Middleware]:
    """Return a check of the name that a request is for; none where others may reach the address.

    Else a page elsewhere, whose name leads to this machine, could read what is told here.
    """
    if not address.loopback:
        return []
    names = [*(name for name in LOOPBACK if ":" not in name), address.host, "::1", "[::1]"]
    return [Middleware(TrustedHostMiddleware, allowed_hosts=names)]


def http_server(application: ASGIApp) -> uvicorn.Server:
    """Return a quiet HTTP server of an application, which leaves signals to others."""
    import uvicorn

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

    return Server(
        uvicorn.Config(
            application,
            http="h11",
            ws="none",
            lifespan="off",
            loop="asyncio",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,  # who asks is who is connected, whatever a header says
            timeout_graceful_shutdown=5,
        )
    )
