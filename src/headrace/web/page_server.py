"""Serves the page at an address until told to end."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from headrace.addresses import Address
from headrace.config import Settings
from headrace.errors import HeadraceError
from headrace.extras import require
from headrace.serve.http_servers import http_server, listening_socket
from headrace.web.access import AccessRules, Sessions

if TYPE_CHECKING:
    import uvicorn

    from headrace.web.site import Site


def serve_page(
    settings: Settings,
    address: Address,
    rules: AccessRules,
    *,
    names: Sequence[str] = (),
    actions: bool,
    listening: Callable[[str], None],
) -> None:
    """Serve the page until Ctrl-C or SIGTERM.

    Args:
        settings: The project's.
        address: Where.
        rules: How callers prove who they are.
        names: Further host names that it is asked for.
        actions: Whether there are buttons.
        listening: Given the URL to open, once it can be.

    Raises:
        EnvironmentFault: `ADDRESS_UNAVAILABLE`, `PACKAGE_MISSING`; the catalog cannot be opened.
    """
    require("jinja2", "headrace web", "web")
    from headrace.web.doorkeeper import Doorkeeper
    from headrace.web.routes import application
    from headrace.web.site import Site

    site = Site(settings, buttons=actions)
    try:
        with listening_socket(address) as listener:
            here = Address(address.host, listener.getsockname()[1])
            sessions = Sessions(rules)
            server = http_server(Doorkeeper(application(site, sessions), sessions, here, names))
            url = f"http://{here}/" + (f"?token={rules.secret}" if rules.kind == "token" else "")
            threading.Thread(target=_look, args=(site,), daemon=True).start()
            asyncio.run(_until_told(server, site, listener, lambda: listening(url)))
    finally:
        site.close()


async def _until_told(server: uvicorn.Server, site: Site, listener: socket.socket, ready: Callable[[], None]) -> None:
    """Serve until Ctrl-C or SIGTERM, which end it well."""

    def end() -> None:
        site.ending.set()
        server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, end)
    ready()
    await server.serve(sockets=[listener])


def _look(site: Site) -> None:
    """Have the first page answered at once: modules and the first look take a second."""
    with suppress(HeadraceError):  # told by the page
        site.graph(site.state())
