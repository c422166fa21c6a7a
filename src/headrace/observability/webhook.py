"""Posts a scheduler's events to a URL as JSON, with retries."""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from dataclasses import dataclass
from typing import Any

from headrace.events import Events, Notice
from headrace.observability.event_delivery import Document, EventDelivery

TRIES = 5
TIMEOUT_SECONDS = 10.0
"""An event is tried so often, pauses doubling from one second, and each try waits so long for an answer."""

LATER = frozenset({408, 425, 429})
"""Answers that ask for another try: it took too long, it is too early, there were too many."""


class Webhook(EventDelivery):
    """Posts while it is open.

    Args:
        url: Where to post.
        events: What is listened to.
        first_pause: Seconds before the second try; each further one is twice as long.
    """

    def __init__(self, url: str, events: Events, *, first_pause: float = 1.0) -> None:
        self._host = urllib.parse.urlsplit(url).hostname or "?"  # alone: the whole address may contain a secret
        super().__init__(events, "headrace-webhook", f"The webhook at {self._host}")
        self._url = url
        self._first_pause = first_pause
        self._told = False
        self._opener = urllib.request.build_opener(_NoRedirects)

    def deliver(self, document: Document) -> None:
        """Post an event, with retries; report the first lost one until one arrives."""
        body = json.dumps(document, default=str).encode()
        for tried in range(TRIES):
            trouble = self._post(body)
            if trouble is None or not trouble.passing or self._ended.wait(self._first_pause * 2**tried):
                break
        if trouble is not None and not self._told and not self._ended.is_set():
            self._events.emit(
                Notice(f"The webhook at {self._host} does not take events: {trouble.why}. They are lost.")
            )
        self._told = trouble is not None

    def cut_off(self) -> None:
        """Report that events wait still, unless it is known already that none arrive."""
        if not self._told:
            super().cut_off()

    def _post(self, body: bytes) -> _Trouble | None:
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"}, method="POST")
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS):
                return None
        except urllib.error.HTTPError as error:  # one that was heard and refused is not said again
            refused = error.code < 500 and error.code not in LATER
            return _Trouble(f"it answers {error.code} {error.reason}", passing=not refused)
        except (OSError, ValueError, http.client.HTTPException) as error:
            return _Trouble(str(getattr(error, "reason", error)), passing=True)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Takes a redirect for an answer: who follows one makes a GET of the POST."""

    def redirect_request(self, *_: Any) -> None:
        """Follow nothing."""


@dataclass(frozen=True, slots=True)
class _Trouble:
    """The reason why an event was not accepted, and whether a retry may help."""

    why: str
    passing: bool
