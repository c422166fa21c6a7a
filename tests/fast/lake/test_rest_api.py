"""What a REST catalog answers, in our words: refused, denied, gone, silent; and no secret in any of it."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from headrace.errors import HeadraceError
from headrace.lake.rest import http_api
from headrace.lake.rest.http_api import HttpApi, NoAnswer, NotSent, Refused
from headrace.lake.rest.rest_lake import RestLake
from headrace.lakes.lake_settings import CREDENTIAL, TOKEN, LakeSettings

SECRET = "s3cr3t-of-nobody"

CUT = b"cut"
"""Answers with it end too early."""

Answer = tuple[int, Any]


class Server:
    """Answers by path; notes what it was asked."""

    def __init__(self) -> None:
        self.answers: dict[str, list[Answer]] = {"/v1/config": [(200, {"endpoints": []})]}
        self.asked: list[tuple[str, str, str | None]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.command, self.path, self.headers.get("Authorization")))
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                left = outer.answers.get(self.path.split("?")[0], [(404, {"error": {"type": "X", "message": "no"}})])
                status, body = left.pop(0) if len(left) > 1 else left[0]
                if status == 0:  # a proxy that cuts connections
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data) + (CUT in data)))
                self.end_headers()
                self.wfile.write(data)

            do_POST = do_DELETE = do_GET

            def log_message(self, *_: Any) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.uri = f"http://127.0.0.1:{self._http.server_address[1]}"
        threading.Thread(target=self._http.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    running = Server()
    yield running
    running.close()


def api(server: Server, **environ: str) -> HttpApi:
    return HttpApi(LakeSettings(server.uri), environ)


def refused(ask: Any) -> HeadraceError:
    with pytest.raises(HeadraceError) as caught:
        ask()
    assert SECRET not in str(caught.value)
    return caught.value


@pytest.mark.parametrize(
    ("status", "body", "code", "retryable"),
    [
        (401, {"error": {"type": "NotAuthorizedException", "message": "expired"}}, "LAKE_DENIED", False),
        (403, {"error": {"type": "ForbiddenException", "message": "not yours"}}, "LAKE_DENIED", False),
        (400, {"error": {"type": "IllegalArgumentException", "message": "no warehouse"}}, "LAKE_REFUSED", False),
        (404, b"<html>nginx</html>", "LAKE_REFUSED", False),
        (302, b"", "LAKE_REFUSED", False),
        (503, {"error": {"type": "SlowDown", "message": "later"}}, "LAKE_UNREACHABLE", True),
        (500, b"oops", "LAKE_UNREACHABLE", True),
        (200, b"<html>a login page</html>", "LAKE_UNREACHABLE", True),
        (0, b"", "LAKE_UNREACHABLE", True),
        (200, b"{}" + CUT, "LAKE_UNREACHABLE", True),
        (400, b"{}" + CUT, "LAKE_UNREACHABLE", True),
    ],
)
def test_answers_that_say_no(server: Server, status: int, body: Any, code: str, retryable: bool) -> None:
    server.answers["/v1/config"] = [(status, body)]
    error = refused(lambda: RestLake(api(server, **{TOKEN: SECRET})).namespaces())
    assert (error.code, error.retryable) == (code, retryable)
    assert error.hint


def test_nobody_listens(server: Server) -> None:
    server.close()
    error = refused(lambda: RestLake(api(server)).namespaces())
    assert (error.code, error.retryable) == ("LAKE_UNREACHABLE", True)
    with pytest.raises(HeadraceError):
        api(server).commit("/v1/x", {})


def test_a_commit_that_was_refused_is_told_from_one_without_an_answer(server: Server) -> None:
    server.answers["/v1/x"] = [(409, {"error": {"type": "CommitFailedException", "message": "moved"}})]
    with pytest.raises(Refused):
        api(server).commit("/v1/x", {})
    for status, body in ((500, b""), (502, b""), (503, b""), (504, b""), (524, b""), (0, b""), (409, CUT)):
        server.answers["/v1/x"] = [(status, body)]
        with pytest.raises(NoAnswer) as caught:
            api(server).commit("/v1/x", {})
        assert not isinstance(caught.value, NotSent)
    assert sum(path == "/v1/x" for _, path, _ in server.asked) == 8, "nothing that changes is sent twice"
    server.answers["/v1/x"] = [(500, {"error": {"type": "UnsupportedOperationException", "message": "cannot"}})]
    with pytest.raises(Refused):
        api(server).commit("/v1/x", {})


def test_a_commit_for_which_no_token_is_given_was_not_sent(server: Server) -> None:
    token = {"access_token": "short", "expires_in": 0.001}
    server.answers["/v1/oauth/tokens"] = [(200, token), (503, b"")]
    with pytest.raises(NotSent):
        api(server, **{CREDENTIAL: f"id:{SECRET}"}).commit("/v1/x", {})


def test_a_server_that_is_silent_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_api, "PATIENCE", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        there = HttpApi(LakeSettings(f"http://127.0.0.1:{silent.getsockname()[1]}"), {})
        assert refused(lambda: there.ask("GET", "/v1/x")).code == "LAKE_UNREACHABLE"


def test_a_token_for_a_client_is_asked_and_renewed(server: Server) -> None:
    server.answers["/v1/oauth/tokens"] = [(200, {"access_token": "one"}), (200, {"access_token": "two"})]
    server.answers["/v1/x"] = [(200, {}), (401, {"error": {"type": "NotAuthorized", "message": "old"}}), (200, {})]
    client = api(server, **{CREDENTIAL: f"id:{SECRET}"})
    client.ask("GET", "/v1/x")
    client.ask("GET", "/v1/x")
    assert [auth for _, path, auth in server.asked if path == "/v1/x"] == ["Bearer one", "Bearer one", "Bearer two"]


def test_a_client_that_is_not_known_is_told_without_its_secret(server: Server) -> None:
    server.answers["/v1/oauth/tokens"] = [(401, {"error": "invalid_client", "error_description": "unknown"})]
    error = refused(lambda: api(server, **{CREDENTIAL: f"id:{SECRET}"}).config())
    assert error.code == "LAKE_DENIED"


@pytest.mark.parametrize("variable", [TOKEN, CREDENTIAL])
def test_a_secret_may_end_in_a_line_break(server: Server, variable: str) -> None:
    """As `echo token | base64` leaves it in a secret of Kubernetes."""
    server.answers["/v1/oauth/tokens"] = [(200, {"access_token": SECRET})]
    api(server, **{variable: f" {SECRET}\n"}).config()
    assert [auth for _, path, auth in server.asked if path == "/v1/config"] == [f"Bearer {SECRET}"]


@pytest.mark.parametrize(
    "environ",
    [{TOKEN: f"{SECRET}\nX: 1"}, {TOKEN: f"{SECRET}é"}, {TOKEN: f"a\u2028{SECRET}"}, {CREDENTIAL: f"id\n:{SECRET}"}],
)
def test_a_secret_that_cannot_be_sent_is_refused_without_being_shown(server: Server, environ: dict[str, str]) -> None:
    error = refused(lambda: api(server, **environ).config())
    assert (error.code, error.retryable) == ("CONFIG_INVALID", False)
    assert error.__cause__ is None or SECRET not in str(error.__cause__)
    assert next(iter(environ)) in error.message
    assert server.asked == []


def test_an_empty_variable_is_none(server: Server) -> None:
    api(server, **{TOKEN: SECRET, CREDENTIAL: ""}).config()
    api(server, **{TOKEN: "\n"}).config()
    assert [auth for _, _, auth in server.asked] == [f"Bearer {SECRET}", None]


def test_a_token_from_the_server_that_cannot_be_sent_is_no_answer(server: Server) -> None:
    server.answers["/v1/oauth/tokens"] = [(200, {"access_token": f"{SECRET}\n"})]
    assert refused(lambda: api(server, **{CREDENTIAL: "id:x"}).config()).code == "LAKE_UNREACHABLE"


def test_prefix_separator_and_odd_names_become_paths(server: Server) -> None:
    server.answers["/v1/config"] = [(200, {"overrides": {"prefix": "main|a/b", "namespace-separator": "%2E"}})]
    there = api(server)
    assert there.path("namespaces", there.namespace("a.b c")) == "/v1/main%7Ca%2Fb/namespaces/a.b%20c"
    server.answers["/v1/config"] = [(200, {})]
    assert api(server).namespace("a.b") == "a%1Fb"


def test_pages_are_followed(server: Server) -> None:
    server.answers["/v1/namespaces"] = [
        (200, {"namespaces": [["a"]], "next-page-token": "x"}),
        (200, {"namespaces": [["b"]], "next-page-token": None}),
        (200, {"namespaces": []}),
    ]
    assert RestLake(api(server)).namespaces() == {"a", "b"}


def test_a_page_is_asked_for_by_its_token_whatever_that_is(server: Server) -> None:
    server.answers["/v1/namespaces"] = [
        (200, {"namespaces": [], "next-page-token": "a&b=+/ #é"}),
        (200, {"namespaces": []}),
    ]
    RestLake(api(server)).namespaces()
    (asked,) = [path for _, path, _ in server.asked if "pageToken" in path]
    assert parse_qs(urlsplit(asked).query) == {"pageToken": ["a&b=+/ #é"]}


@pytest.mark.parametrize("there", [True, False])
def test_a_server_without_namespaces_in_namespaces(server: Server, there: bool) -> None:
    """It has no words for that; neither has a gateway that has lost its route."""
    listed: Answer = (200, {"namespaces": [["a"]]})
    server.answers["/v1/namespaces"] = [listed, (404, b"<html>Not Found</html>"), listed if there else (404, b"")]
    lake = RestLake(api(server))
    if there:
        assert lake.namespaces() == {"a"}
    else:
        assert refused(lake.namespaces).code == "LAKE_UNREACHABLE"
    server.answers["/v1/namespaces"] = [(404, b"<html>Not Found</html>")]
    error = refused(lambda: lake._create_namespace("a.b"))
    assert (error.code, error.retryable) == ("LAKE_UNREACHABLE", True)
    assert "namespaces in namespaces" in (error.hint or "")


@pytest.mark.parametrize(
    ("body", "absent"),
    [
        ({"error": {"type": "NoSuchTableException", "message": "no", "code": 404}}, True),
        ({"error": {"message": "no", "code": 404}}, True),
        ({"timestamp": "now", "status": 404, "error": "Not Found"}, False),
        ({"message": "no Route matched with those values"}, False),
        (b"<html>nginx</html>", False),
        (b"", False),
    ],
)
def test_only_the_catalog_itself_says_that_there_is_no_table(server: Server, body: Any, absent: bool) -> None:
    """A gateway that has lost its route does not know; it may have it again soon, as it had it for the settings."""
    server.answers["/v1/namespaces/shop/tables/a"] = [(404, body)]
    lake = RestLake(api(server))
    if absent:
        assert lake.entries([("shop", "a")]) == {}
    else:
        error = refused(lambda: lake.entries([("shop", "a")]))
        assert (error.code, error.retryable) == ("LAKE_UNREACHABLE", True)
