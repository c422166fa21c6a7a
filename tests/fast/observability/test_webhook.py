"""Notifications over HTTP, to a server of our own; also one that is down."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from headrace.events import Events, Notice, RefreshFinished, StageStarted, Suspended
from headrace.observability.event_delivery import MOST_WAITING, Document, EventDelivery
from headrace.observability.webhook import Webhook


class Server(HTTPServer):
    """Answers with the given codes in turn, then with 200; keeps what it was sent."""

    def __init__(self) -> None:
        self.codes: list[int] = []
        self.heard: list[dict[str, object]] = []
        self.location = ""
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        code = self.server.codes.pop(0) if self.server.codes else 200
        if code == 200:
            self.server.heard.append(json.loads(body))
        self.send_response(code)
        if self.server.location:
            self.send_header("Location", self.server.location)
        self.end_headers()

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server
        server.shutdown()


def test_events_are_posted_in_order(server: Server) -> None:
    events = Events()
    with Webhook(server.url, events):
        events.emit(Suspended("s.b", 5, "E", "why"))
        events.emit(StageStarted("s.b", "compute"))  # of interest only while it happens
        events.emit(Notice("hello"))
    assert [(e["event"], e.get("table")) for e in server.heard] == [("suspended", "s.b"), ("notice", None)]
    assert server.heard[0]["failures"] == 5
    events.emit(Notice("after the end"))
    assert len(server.heard) == 2


def test_what_fails_is_tried_again_and_what_is_refused_is_not(server: Server) -> None:
    events = Events()
    server.codes = [503, 429, 200, 404]
    with Webhook(server.url, events, first_pause=0.01):
        for text in ("first", "second", "third"):
            events.emit(Notice(text))
    assert [e["message"] for e in server.heard] == ["first", "third"]


def test_one_that_is_down_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.observability.event_delivery.PATIENCE_SECONDS", 0.1)
    events, begun = Events(), time.monotonic()
    with Webhook("http://127.0.0.1:9/nobody", events):
        for number in range(1500):
            events.emit(Notice(str(number)))
    assert time.monotonic() - begun < 60  # to wait for each would take minutes


def test_what_nobody_waits_for_at_the_end_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.observability.event_delivery.PATIENCE_SECONDS", 0.1)
    events, told, go = Events(), list[str](), threading.Event()
    events.subscribe(lambda event: told.append(event.message) if isinstance(event, Notice) else None)

    class Slow(EventDelivery):
        def deliver(self, document: Document) -> None:
            go.wait(30)

    with Slow(events, "slow", "The receiver"):
        events.emit(Suspended("s.b", 5, "E", "why"))
    go.set()
    assert told == ["The receiver did not take all events within 0.1 seconds at the end: the rest may be lost."]


def test_that_events_are_lost_is_told_once_until_one_arrives(server: Server) -> None:
    events, told = Events(), list[str]()
    server.codes = [404, 403, 200, *[503] * 5, 200]
    events.subscribe(lambda event: told.append(event.message) if isinstance(event, Notice) else None)
    webhook = Webhook(server.url, events, first_pause=0.001)  # not open: what it tells itself is not posted
    for _ in range(5):
        webhook.deliver({"event": "notice"})
    assert [text.split(" does")[0] for text in told] == 2 * ["The webhook at 127.0.0.1"]
    assert ["404" in text for text in told] == [True, False]
    assert "503" in told[1]
    assert "hook" not in told[0].replace("webhook", "")  # the path may be a secret
    assert len(server.heard) == 2


def test_an_answer_that_is_no_http_is_a_trouble_that_passes() -> None:
    events, told, answers = Events(), list[str](), [b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"]
    events.subscribe(lambda event: told.append(event.message) if isinstance(event, Notice) else None)
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            for text in (answers[0], answers[1], answers[1]):
                connection, _ = server.accept()
                with connection:
                    while b"notice" not in (body := connection.recv(65536)):
                        pass
                    heard.append(body)
                    connection.sendall(text)

        threading.Thread(target=answer, daemon=True).start()
        with Webhook(f"http://127.0.0.1:{server.getsockname()[1]}/hook", events, first_pause=0.01):
            events.emit(Notice("first"))
            events.emit(Notice("second"))
    assert len(heard) == 3
    assert told == ["first", "second"]


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_no_delivery(server: Server, code: int) -> None:
    events, told = Events(), list[str]()
    server.codes, server.location = [code], server.url
    events.subscribe(lambda event: told.append(event.message) if isinstance(event, Notice) else None)
    Webhook(server.url, events, first_pause=0.001).deliver({"event": "notice"})
    assert server.heard == []
    assert len(told) == 1
    assert str(code) in told[0]


def test_what_went_well_waits_for_the_rest_and_is_lost_first() -> None:
    events, told, heard, goes_on = Events(), list[str](), list[Document](), threading.Event()

    class Slow(EventDelivery):
        def deliver(self, document: Document) -> None:
            goes_on.wait(20)
            heard.append(document)

    events.subscribe(lambda event: told.append(event.message) if isinstance(event, Notice) else None)
    with Slow(events, "test", "The receiver"):
        for number in range(3 * MOST_WAITING):
            if number == MOST_WAITING:
                events.emit(Suspended("s.b", 5, "E", "why"))
            events.emit(RefreshFinished("s.a", "DIFFERENTIAL", number, 0, 0.1))
        goes_on.set()
    assert [document["event"] for document in heard[1:4]] == ["suspended", "notice", "refresh_finished"]
    assert MOST_WAITING <= len(heard) <= MOST_WAITING + 1
    assert heard[-1]["rows_inserted"] == 3 * MOST_WAITING - 1
    assert len(told) == 1
    assert told[0].startswith("The receiver takes events slower than they happen")


def test_whatever_breaks_a_delivery_the_next_event_is_delivered() -> None:
    events, told, heard = Events(), list[str](), list[object]()

    class Delivery(EventDelivery):
        def deliver(self, document: Document) -> None:
            if document["message"].startswith("bad"):
                raise LookupError(document["message"])
            heard.append(document["message"])

    events.subscribe(lambda event: told.append(event.message) if isinstance(event, Notice) else None)
    with Delivery(events, "test", "It"):
        for text in ("bad 1", "bad 2", "good"):
            events.emit(Notice(text))
    assert "good" in heard
    assert len([text for text in told if "not delivered" in text]) == 1
