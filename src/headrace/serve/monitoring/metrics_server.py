"""Serves metrics at an address of this machine, from a thread, while a block runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware

from headrace.addresses import LOOPBACK, Address
from headrace.extras import require
from headrace.serve.http_servers import http_server, listening_socket
from headrace.serve.monitoring.monitoring_routes import monitoring_routes
from headrace.serve.monitoring.project_monitor import ProjectMonitor


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
    listener = listening_socket(address)
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


def host_check(address: Address) -> list[Middleware]:
    """Return a check of the name that a request is for; none where others may reach the address.

    Else a page elsewhere, whose name leads to this machine, could read what is told here.
    """
    if not address.loopback:
        return []
    names = [*(name for name in LOOPBACK if ":" not in name), address.host, "::1", "[::1]"]
    return [Middleware(TrustedHostMiddleware, allowed_hosts=names)]
