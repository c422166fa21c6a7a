"""Stands before every page: checks who asks, and tells browsers what they may do."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping, Sequence
from urllib.parse import parse_qs, quote, urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from headrace.addresses import LOOPBACK, Address
from headrace.serve.request_body import BodyTooLong, body_of
from headrace.web.access import Session, Sessions

SESSION = "headrace session"
"""Key under which a request carries the session that was found for it."""

MOST_BYTES = 64 * 1024
"""Of what a form sends."""

MOST_URL = 8 * 1024

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Of every answer: nothing is loaded from elsewhere, nothing is embedded elsewhere, no URL is told elsewhere."""

_HOST = re.compile(r"(?P<name>[A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+\])(?::(?P<port>\d{0,5}))?")
"""Form of the header: a name or an address, and a port."""

OPEN_PATHS = ("/static/", "/login")
"""Prefixes of the paths that a browser needs to log in."""


class Doorkeeper:
    """Lets through who may look; an ASGI application around the pages.

    Args:
        pages: The application behind it.
        sessions: Who has proved himself.
        address: Where it listens.
        names: Further host names that it is asked for, as proxies pass them on.
    """

    def __init__(self, pages: ASGIApp, sessions: Sessions, address: Address, names: Sequence[str] = ()) -> None:
        self._pages = pages
        self._sessions = sessions
        self._names = None if not address.loopback and not names else {*LOOPBACK, address.host, *names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        request = Request(scope, receive)
        answer = self._refusal(request)
        if answer is None and not scope["path"].startswith(OPEN_PATHS):
            session = self._session(request)
            answer = self._admit(request) if session is None else None
            scope[SESSION] = session

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await (answer or self._pages)(scope, receive, guarded)

    def _refusal(self, request: Request) -> Response | None:
        """Return what is answered to requests that are odd, whoever sends them."""
        query: bytes = request.scope["query_string"]
        if len(request.scope.get("raw_path") or b"") + len(query) > MOST_URL:
            return PlainTextResponse("The URL is too long.", 414)
        host = _HOST.fullmatch(request.headers.get("host", ""))
        if host is None or int(host["port"] or 0) > 65535 or not query.isascii():  # URLs are made of both
            return PlainTextResponse("The request cannot be read.", 400)
        # A page elsewhere whose name comes to lead here could send any header, a proxy's, too, from this machine.
        if self._names is not None and host["name"].strip("[]").lower() not in self._names:
            return PlainTextResponse(
                "This page is not for requests by that host name. Where a proxy passes it on, "
                "start `headrace web` with --host-name and that name.",
                421,
            )
        return None

    def _session(self, request: Request) -> Session | None:
        rules = self._sessions.rules
        if rules.kind == "proxy":
            peer = request.client.host if request.client else ""
            return self._sessions.of_proxy(request.headers.get(rules.header, ""), peer)
        return self._sessions.of_cookie(request.cookies.get(cookie_name(request)))

    def _admit(self, request: Request) -> Response:
        """Return what is answered to somebody who has not proved himself yet."""
        kind = self._sessions.rules.kind
        if kind == "password":
            if request.method == "GET" and "text/html" in request.headers.get("accept", "text/html"):
                return RedirectResponse(f"/login?next={quote(request.scope['path'])}", 303)
            return PlainTextResponse("Log in first.", 401)
        if kind == "proxy":
            return PlainTextResponse("The proxy did not say who you are.", 401)
        cookie = None
        if (given := request.query_params.get("token")) and request.method == "GET":  # nobody guesses 192 bits
            cookie = self._sessions.begin(given)
        if cookie is None:
            return PlainTextResponse("Open the whole URL that `headrace web` has printed, with its token.", 403)
        left = urlencode([(name, value) for name, value in request.query_params.multi_items() if name != "token"])
        answer = RedirectResponse(request.scope["path"] + (f"?{left}" if left else ""), 303)
        remember(request, answer, cookie)
        return answer


def cookie_name(request: Request) -> str:
    """Return the name of the cookie: browsers share cookies between the ports of a host."""
    return f"headrace-{request.url.port or 0}"


def remember(request: Request, answer: Response, cookie: str) -> None:
    """Have a browser send its cookie from now on, from these pages only."""
    secure = request.url.scheme == "https"
    answer.set_cookie(cookie_name(request), cookie, httponly=True, samesite="strict", secure=secure, path="/")


async def form_of(request: Request) -> Mapping[str, str] | None:
    """Return what a form sends; None where that is too much."""
    try:
        body = await body_of(request, MOST_BYTES)
    except BodyTooLong:
        return None
    return {name: values[-1] for name, values in parse_qs(body.decode("utf-8", "replace")).items()}


def is_own_form(request: Request, form: Mapping[str, str]) -> bool:
    """Return whether a form was sent from a page of this server to this browser."""
    session: Session = request.scope[SESSION]
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    return hmac.compare_digest(form.get("csrf", "").encode(), session.csrf.encode())
