"""Tells browsers by server-sent events to load the parts of a page again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from headrace.errors import HeadraceError
from headrace.web.site import Site

LOOK_SECONDS = 1.0
"""Time between two looks, of all browsers together."""

ENDING_SECONDS = 0.1
"""After so long it is noticed that the server is about to end."""

ANYWAY_SECONDS = 10.0
"""Lags grow though nothing happens."""

MOST = 32
"""Browsers that listen at once."""


class Live:
    """One look for all who listen.

    Args:
        site: The project.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._seen: object = None
        self._at = 0.0
        self._listening = 0
        self._lock = asyncio.Lock()

    async def answer(self, request: Request) -> Response:
        """Answer a browser that listens."""
        if self._listening >= MOST:
            return PlainTextResponse("Too many browsers listen.", 503, headers={"retry-after": "30"})
        return StreamingResponse(self._events(request), media_type="text/event-stream")

    async def _events(self, request: Request) -> AsyncIterator[str]:
        self._listening += 1
        try:
            yield "retry: 3000\n\n"
            seen, told = await self._look(), time.monotonic()
            while not await request.is_disconnected() and await self._paused():
                now = await self._look()
                if now != seen or time.monotonic() - told > ANYWAY_SECONDS:
                    seen, told = now, time.monotonic()
                    yield "event: changed\ndata: {}\n\n"
        finally:
            self._listening -= 1

    async def _paused(self) -> bool:
        """Wait until the next look; return False when the server is about to end."""
        until = time.monotonic() + LOOK_SECONDS
        while time.monotonic() < until and not self._site.ending.is_set():
            await asyncio.sleep(ENDING_SECONDS)
        return not self._site.ending.is_set()

    async def _look(self) -> object:
        async with self._lock:
            if time.monotonic() - self._at > LOOK_SECONDS * 0.9:
                self._seen = await asyncio.to_thread(self._fingerprint)
                self._at = time.monotonic()
            return self._seen

    def _fingerprint(self) -> object:
        """Return a value that differs when a page may differ."""
        catalog = self._site.project._catalog
        try:
            with catalog.reading() as reader:
                leases = tuple((lease.resource, lease.owner) for lease in reader.leases() if lease.owner)
                pointers = tuple(sorted((str(n), p.metadata_location) for n, p in reader.pointers().items()))
            newest = catalog.events(None, 1)
            told = tuple((each["table"], each["stage"]) for each in self._site.told())
            actions = self._site.actions
            pressed = tuple((a.at, a.state) for a in actions.recent()) if actions is not None else ()
            return catalog.pulse(), leases, hash(pointers), newest[0].id if newest else 0, told, pressed
        except HeadraceError as error:
            return error.code
