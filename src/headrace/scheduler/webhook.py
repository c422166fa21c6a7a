"""Posts what a scheduler tells to a URL, as JSON: in a thread of its own, with retries, in no refresh's way."""

from __future__ import annotations

import datetime as dt
import json
import queue
import threading
import urllib.error
import urllib.request
from collections.abc import Callable

from headrace.events import Event, Events, fields_of, kind_of
from headrace.scheduler.journal import PASSING

MOST_WAITING = 1000
"""Events that wait while the other side is down; the oldest are given up first."""

TRIES = 5
TIMEOUT_SECONDS = 10.0
PATIENCE_SECONDS = 5.0
"""At the end, what still waits is given that long."""


class Webhook:
    """Listens while it is open.

    Args:
        url: Where to post.
        events: What is listened to.
        first_pause: Seconds before the second try; each further one is twice as long.
    """

    def __init__(self, url: str, events: Events, *, first_pause: float = 1.0) -> None:
        self._url = url
        self._events = events
        self._first_pause = first_pause
        self._waiting: queue.Queue[bytes | None] = queue.Queue()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._deliver, name="headrace-webhook", daemon=True)
        self._unsubscribe: Callable[[], None] = lambda: None

    def __enter__(self) -> Webhook:
        self._unsubscribe = self._events.subscribe(self._note)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._unsubscribe()
        self._waiting.put(None)
        self._thread.join(PATIENCE_SECONDS)
        self._ended.set()

    def _note(self, event: Event) -> None:
        if isinstance(event, PASSING):
            return
        while self._waiting.qsize() >= MOST_WAITING:
            self._waiting.get_nowait()
        at = dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds")
        document = {"at": at, "event": kind_of(event), **fields_of(event)}
        self._waiting.put(json.dumps(document, default=str).encode())

    def _deliver(self) -> None:
        while (body := self._waiting.get()) is not None:
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
