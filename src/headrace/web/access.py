"""Decides who may look: by a token in the URL, a password, or a proxy that asked already."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
import time
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

from headrace.addresses import Address
from headrace.errors import UserError

MOST_SESSIONS = 256
"""Browsers that are remembered; the oldest is forgotten for a new one."""

SESSION_SECONDS = 12 * 3600.0
TRIES, TRIES_SECONDS = 5, 60.0
"""Passwords that may be tried within so many seconds, by all callers together."""


@dataclass(frozen=True, slots=True)
class AccessRules:
    """Rules by which callers prove who they are.

    Args:
        kind: A `token` in the URL, a `password`, or a header of a `proxy`.
        secret: The token or password; "" for a proxy.
        header: The header in which a proxy names its user.
        proxies: Addresses that may send it.
    """

    kind: Literal["token", "password", "proxy"]
    secret: str = field(default="", repr=False)
    header: str = ""
    proxies: tuple[str, ...] = ()


@dataclass(slots=True)
class Session:
    """A browser that has proved itself.

    Args:
        user: Whom the proxy named; "" otherwise.
        csrf: What its forms have to send back.
        until: When it ends, by the monotonic clock.
    """

    user: str
    csrf: str
    until: float


def access_rules(
    address: Address, *, password: str | None, header: str | None, proxies: tuple[str, ...]
) -> AccessRules:
    """Return the rules for an address.

    Raises:
        UserError: `PAGE_NOT_CLOSED`: others could reach the address, and nobody would ask them who they are;
            `ADDRESS_INVALID` for a proxy that is no address.
    """
    if header:
        if not proxies:
            raise UserError(
                "PAGE_NOT_CLOSED",
                "A header proves nothing while anybody may send it.",
                hint="Name the proxy's address, too: --proxy-from 127.0.0.1.",
            )
        for proxy in proxies:
            _check_address(proxy)
        return AccessRules("proxy", header=header.lower(), proxies=proxies)
    if password:
        return AccessRules("password", password)
    if not address.loopback:
        raise UserError(
            "PAGE_NOT_CLOSED",
            f"Others may reach {address}, and nothing asks them who they are.",
            hint="Set a password in a variable and name that (--password-env NAME), or name the header of a proxy that "
            "asks (--proxy-header, --proxy-from). On a loopback address a token in the URL is enough.",
        )
    return AccessRules("token", secrets.token_urlsafe(24))


def _check_address(proxy: str) -> None:
    try:
        ipaddress.ip_address(proxy)
    except ValueError as error:
        raise UserError(
            "ADDRESS_INVALID",
            f"--proxy-from is {proxy!r}, which is no address of a machine.",
            hint="Write the address that the proxy connects from, such as 127.0.0.1; a name would match nothing.",
        ) from error


class Sessions:
    """Browsers that have proved themselves.

    Args:
        rules: How they do.
    """

    def __init__(self, rules: AccessRules) -> None:
        self.rules = rules
        self._sessions: dict[str, Session] = {}
        self._key = secrets.token_bytes(32)
        self._tries: deque[float] = deque(maxlen=TRIES)

    def of_cookie(self, value: str | None) -> Session | None:
        """Return the session of a cookie; None where there is none, or it has ended."""
        found = self._sessions.get(value or "")
        if found is not None and found.until < time.monotonic():
            self._sessions.pop(value or "", None)
            return None
        return found

    def of_proxy(self, user: str, peer: str) -> Session | None:
        """Return the session of a user whom a proxy names; None where it is no proxy that may."""
        if not user or peer not in self.rules.proxies:
            return None
        csrf = hmac.new(self._key, user.encode("utf-8", "replace"), hashlib.sha256).hexdigest()
        return Session(user, csrf, time.monotonic() + SESSION_SECONDS)

    def may_try(self) -> bool:
        """Return whether a password may be tried now."""
        while self._tries and self._tries[0] < time.monotonic() - TRIES_SECONDS:
            self._tries.popleft()
        return len(self._tries) < TRIES

    def begin(self, given: str) -> str | None:
        """Return the cookie of a new session for who knows the secret; None for others."""
        if not hmac.compare_digest(given.encode("utf-8", "replace"), self.rules.secret.encode()):
            self._tries.append(time.monotonic())
            return None
        while len(self._sessions) >= MOST_SESSIONS:
            self._sessions.pop(next(iter(self._sessions)))
        cookie = secrets.token_urlsafe(24)
        self._sessions[cookie] = Session("", secrets.token_urlsafe(24), time.monotonic() + SESSION_SECONDS)
        return cookie

    def end(self, cookie: str | None) -> None:
        """Forget a browser."""
        self._sessions.pop(cookie or "", None)
