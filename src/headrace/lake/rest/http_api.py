"""Talks to an Iceberg REST catalog: addresses, credentials, and its answers in our words."""

from __future__ import annotations

import http.client
import json
import os
import re
import threading
import time
from collections.abc import Collection, Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, unquote, urlencode
from urllib.request import HTTPRedirectHandler, Request, build_opener

from headrace.errors import EnvironmentFault
from headrace.lakes.lake_server import CHECK_SERVER, SERVERS_OWN
from headrace.lakes.lake_settings import CREDENTIAL, TOKEN, LakeSettings, is_sendable, secret

Json = dict[str, Any]

VIEWS = "/v1/{prefix}/namespaces/{namespace}/views"
VIEW = f"{VIEWS}/{{view}}"
"""Endpoints of views, as servers list them."""

PATIENCE = 20.0
"""Seconds until an answer is given up. A publication on SQLite keeps other writers waiting for as long, and those wait
for thirty."""

_RENEWED_BEFORE = 60.0
"""Seconds before its end that a token is asked for anew."""

_KNOWS_NO_V3 = re.compile(r"(?i)\bversion\W*3\b")
"""Matches how servers refuse tables of Iceberg's newest format."""


class Refused(Exception):
    """An answer that says no.

    Args:
        status: HTTP's.
        kind: The server's own name for it.
        message: Its sentence.
    """

    def __init__(self, status: int, kind: str, message: str) -> None:
        super().__init__(f"{status} {kind}: {message}")
        self.status = status
        self.kind = kind
        self.message = message


class NoAnswer(Exception):
    """The server did not answer, or not in a way that tells what it did."""


class NoRoute(EnvironmentFault):
    """An answer that there is nothing which is not the catalog's own, but perhaps a gateway's."""


class _NoRedirect(HTTPRedirectHandler):
    """Follows no redirect: a credential goes to nobody but the server that was named."""

    def redirect_request(self, *_: Any) -> None:
        return None


class HttpApi:
    """One server; safe to use from several threads.

    Args:
        settings: Where it is.
        environ: Where its credentials are; the process's own environment when None.
    """

    def __init__(self, settings: LakeSettings, environ: Mapping[str, str] | None = None) -> None:
        self.settings = settings
        self._environ = os.environ if environ is None else environ
        self._opener = build_opener(_NoRedirect)
        self._lock = threading.RLock()
        self._config: Json | None = None
        self._token: tuple[str, float] | None = None

    # ---- addresses

    def config(self) -> Json:
        """Return what the server says of itself, asked once."""
        with self._lock:
            if self._config is None:
                query = f"?{urlencode({'warehouse': self.settings.warehouse})}" if self.settings.warehouse else ""
                self._config = self._ask("GET", f"/v1/config{query}", None, ())
            return self._config

    def setting(self, name: str) -> str | None:
        """Return a setting that the server gives its clients."""
        config = self.config()
        found = {**(config.get("defaults") or {}), **(config.get("overrides") or {})}.get(name)
        return None if found is None else str(found)

    def can(self, method: str, path: str) -> bool:
        """Return whether the server has an endpoint; one that lists none has the first ones."""
        listed = self.config().get("endpoints")
        if not listed:
            return "/views" not in path
        return f"{method} {path}" in listed

    def path(self, *parts: str) -> str:
        """Return the path of a resource, prefix included."""
        prefix = self.setting("prefix")
        return "/".join(("/v1", *([quote(unquote(prefix), safe="")] if prefix else []), *parts))

    def namespace(self, text: str) -> str:
        """Return a namespace as a part of a path."""
        mark = unquote(self.setting("namespace-separator") or "%1F")
        return quote(mark.join(text.split(".")), safe="")

    def resource(self, namespace: str, kind: str, *name: str) -> str:
        """Return the path of `tables`, `views` or `register` of a namespace, or of one by name."""
        return self.path("namespaces", self.namespace(namespace), kind, *(quote(n, safe="") for n in name))

    # ---- questions

    def ask(self, method: str, path: str, body: Json | None = None, absent: Collection[int] = ()) -> Json | None:
        """Send a request that may be sent twice without harm.

        Args:
            method: HTTP's.
            path: From `path`, with a query where needed.
            body: As JSON.
            absent: Statuses for which None is returned; 404 where the catalog itself says so, and no proxy.

        Raises:
            EnvironmentFault: `LAKE_UNREACHABLE` (retryable), `LAKE_DENIED`, `LAKE_REFUSED`.
        """
        self.config()
        try:
            return self._ask(method, path, body, absent)
        except _Absent:
            return None

    def commit(self, path: str, body: Json) -> Json:
        """Send a change that must not be sent twice.

        Raises:
            Refused: It was not made.
            NoAnswer: It may have been made.
        """
        self.config()
        return self._send("POST", path, body, renewed=False)

    def _ask(self, method: str, path: str, body: Json | None, absent: Collection[int]) -> Json:
        try:
            return self._send(method, path, body, renewed=False)
        except Refused as refused:
            if refused.status in absent and (refused.status != 404 or refused.kind):
                raise _Absent from None
            if refused.status == 404 and not refused.kind and self._config is not None:
                # a gateway that has lost its route for a moment: there is a catalog, as it has told its settings
                raise self._no_route(f"{method} {path.partition('?')[0]}", refused) from None
            raise self.fault(refused) from None
        except NoAnswer as error:
            raise self.unreachable(str(error)) from None

    def fault(self, refused: Refused) -> EnvironmentFault:
        """Return the error for an answer that says no."""
        shown = self.settings.uri
        if refused.status in (401, 403, 419):
            return EnvironmentFault(
                "LAKE_DENIED",
                f"The catalog server at {shown} does not allow it.",
                detail=str(refused),
                hint=f"Check {TOKEN} or {CREDENTIAL} in the environment of this process, and what that user may do.",
            )
        if refused.status == 429:
            return self.unreachable(str(refused))
        if refused.status in (404, 406) and not refused.kind:
            return EnvironmentFault(
                "LAKE_REFUSED",
                f"There is no Iceberg REST catalog at {shown}, or it lacks what is needed.",
                detail=str(refused),
                hint="Check uri and warehouse of [lake] in headrace.toml; `headrace doctor` asks the server.",
            )
        hint = SERVERS_OWN
        if _KNOWS_NO_V3.search(str(refused)):
            hint = "It does not know version 3 of Iceberg's format: write format_version = 2 into headrace.toml."
        return EnvironmentFault(
            "LAKE_REFUSED",
            f"The catalog server at {shown} refused a request; nothing was published.",
            detail=str(refused),
            hint=hint,
        )

    def unreachable(self, detail: str) -> EnvironmentFault:
        """Return the error for a server that does not answer."""
        return EnvironmentFault(
            "LAKE_UNREACHABLE",
            f"The catalog server at {self.settings.uri} does not answer.",
            detail=detail,
            hint=CHECK_SERVER,
            retryable=True,
        )

    def _no_route(self, asked: str, refused: Refused) -> NoRoute:
        return NoRoute(
            "LAKE_UNREACHABLE",
            f"The catalog server at {self.settings.uri} knows nothing of {asked}.",
            detail=str(refused),
            hint=f"{CHECK_SERVER} If it stays so, it may not have what is asked for, such as namespaces in namespaces.",
            retryable=True,
        )

    # ---- HTTP

    def _send(self, method: str, path: str, body: Json | None, *, renewed: bool) -> Json:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        try:
            token = self._bearer()
        except NoAnswer as error:
            raise NotSent(str(error)) from None
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        data = None if body is None else json.dumps(body).encode()
        try:
            return self._exchange(Request(self.settings.uri + path, data, headers, method=method))
        except Refused as refused:
            if refused.status not in (401, 419) or renewed or secret(CREDENTIAL, self._environ) is None:
                raise
            with self._lock:
                self._token = None
            return self._send(method, path, body, renewed=True)

    def _exchange(self, request: Request) -> Json:
        try:
            with self._opener.open(request, timeout=PATIENCE) as answer:
                return _parsed(answer.read())
        except HTTPError as error:
            with error:
                refused = _refused(error)
            # a 503, too, may come from something in between, after the server has done what was asked
            if error.code >= 500 and error.code != 501 and refused.kind != "UnsupportedOperationException":
                raise NoAnswer(str(refused)) from None
            raise refused from None
        except (URLError, http.client.HTTPException, OSError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            if isinstance(reason, ConnectionRefusedError):
                raise NotSent(str(reason)) from None
            raise NoAnswer(str(reason) or type(reason).__name__) from None

    def _bearer(self) -> str | None:
        """Return the token of the environment, or one for its credential."""
        credential = secret(CREDENTIAL, self._environ)
        if credential is None:
            return secret(TOKEN, self._environ)
        with self._lock:
            if self._token is None or time.monotonic() >= self._token[1]:
                self._token = self._granted(credential)
            return self._token[0]

    def _granted(self, credential: str) -> tuple[str, float]:
        client, _, password = credential.rpartition(":")
        scope = self.settings.scope or "catalog"
        form = {"grant_type": "client_credentials", "client_secret": password, "scope": scope}
        if client:
            form["client_id"] = client
        address = self.settings.oauth2_server_uri or f"{self.settings.uri}/v1/oauth/tokens"
        headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
        answer = self._exchange(Request(address, urlencode(form).encode(), headers, method="POST"))
        lasts = float(answer.get("expires_in") or 3600)
        token = str(answer.get("access_token", ""))
        if not is_sendable(token):
            raise NoAnswer("The server gave a token that cannot be sent.")
        return token, time.monotonic() + max(lasts - _RENEWED_BEFORE, lasts / 2)


class NotSent(NoAnswer):
    """The request was not even sent: nobody listens, or nobody gives a token for it."""


class _Absent(Exception):
    """The answer that something does not exist."""


def _parsed(data: bytes) -> Json:
    if not data.strip():
        return {}
    try:
        found = json.loads(data)
    except ValueError:
        raise NoAnswer("The answer is no JSON.") from None
    if not isinstance(found, dict):
        raise NoAnswer("The answer is no JSON object.")
    return found


def _refused(error: HTTPError) -> Refused:
    """Return what an answer says that says no; one that a proxy gives itself has no kind."""
    try:
        data = error.read()
    except (http.client.HTTPException, OSError) as cut:
        raise NoAnswer(f"{error.code} {error.reason}: {cut}") from None
    try:
        told = json.loads(data)["error"]
        if isinstance(told, str):  # OAuth2's form; with 404 that of many a gateway
            return Refused(error.code, "", told) if error.code == 404 else Refused(error.code, told, "")
        return Refused(error.code, str(told.get("type") or "error"), str(told.get("message", "")))
    except (ValueError, KeyError, TypeError, AttributeError):
        return Refused(error.code, "", str(error.reason))
