"""Posts what a scheduler tells to a URL, as JSON, with retries."""

from __future__ import annotations

import json
import urllib.error
import urllib.request

from headrace.events import Events
from headrace.scheduler.courier import Courier, Document

TRIES = 5
TIMEOUT_SECONDS = 10.0


class Webhook(Courier):
    """Posts while it is open.

    Args:
        url: Where to post.
        events: What is listened to.
        first_pause: Seconds before the second try; each further one is twice as long.
    """

    def __init__(self, url: str, events: Events, *, first_pause: float = 1.0) -> None:
        super().__init__(events, "headrace-webhook")
        self._url = url
        self._first_pause = first_pause

    def deliver(self, document: Document) -> None:
        """Post an event, again while the other side is down."""
        body = json.dumps(document, default=str).encode()
        for tried in range(TRIES):
            if self._post(body) or self._ended.wait(self._first_pause * 2**tried):
                break

    def _post(self, body: bytes) -> bool:
        request = urllib.request.Request(self._url, body, {"Content-Type": "application/json"}, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_SECONDS):
                return True
        except urllib.error.HTTPError as error:
            return 400 <= error.code < 500  # it was heard and refused; saying it again does not help
        except (OSError, ValueError):
            return False
