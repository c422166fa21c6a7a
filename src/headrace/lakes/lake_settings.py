"""The lake of a project, where a catalog server keeps it: the section [lake]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.errors import UserError

LAKE_KEYS = ("type", "uri", "warehouse", "oauth2_server_uri", "scope")

TOKEN = "HEADRACE_LAKE_TOKEN"
"""Environment variable with a bearer token."""

CREDENTIAL = "HEADRACE_LAKE_CREDENTIAL"
"""Environment variable with an OAuth2 client, as `id:secret`."""

_HINT = (
    'Write type = "rest", uri = "https://host/path", and where the server asks for them warehouse, oauth2_server_uri '
    f"and scope; a token or a client's id:secret comes from {TOKEN} or {CREDENTIAL}."
)


@dataclass(frozen=True, slots=True)
class LakeSettings:
    """A lake that an Iceberg REST catalog keeps.

    Args:
        uri: Where the server answers, without `/v1`.
        warehouse: What the server calls the warehouse; None where it has one.
        oauth2_server_uri: Where tokens are given for a credential; None for the server itself.
        scope: Which rights a token asks for.
    """

    uri: str
    warehouse: str | None = None
    oauth2_server_uri: str | None = None
    scope: str | None = None

    @property
    def identity(self) -> str:
        """Return what tells this lake from others."""
        return self.uri if self.warehouse is None else f"{self.uri} (warehouse {self.warehouse})"


def read_lake(file: Path, section: Mapping[str, object] | None) -> LakeSettings | None:
    """Return what the section `[lake]` says; None where the lake is in Headrace's own database.

    Raises:
        UserError: `CONFIG_INVALID`.
    """
    if section is None:
        return None
    kind = section.get("type", "embedded")
    if kind == "embedded" and section.keys() <= {"type"}:
        return None
    texts = {key: section.get(key) for key in LAKE_KEYS[1:]}
    uri, rest = texts.pop("uri"), texts
    right = all(value is None or (isinstance(value, str) and value) for value in rest.values())
    if kind != "rest" or not isinstance(uri, str) or not _is_url(uri) or not right:
        raise UserError("CONFIG_INVALID", f"[lake] in {file} cannot be read.", hint=_HINT)
    server = rest["oauth2_server_uri"]
    if re.search(r"//[^/]*@", uri) or (server is not None and not _is_url(str(server))):
        raise UserError("CONFIG_INVALID", f"[lake] in {file} has an address that cannot be used.", hint=_HINT)
    given = {key: None if value is None else str(value) for key, value in rest.items()}
    return LakeSettings(re.sub(r"(/v1)?/*$", "", uri), **given)


def secret(name: str, environ: Mapping[str, str]) -> str | None:
    """Return the value of `TOKEN` or `CREDENTIAL`, stripped; None where there is none.

    Args:
        name: The variable.
        environ: Where it is.

    Raises:
        UserError: `CONFIG_INVALID`: it has characters that cannot be sent. The value is not shown.
    """
    value = environ.get(name, "").strip()
    if not (is_sendable(value) if name == TOKEN else value.isprintable()):
        raise UserError(
            "CONFIG_INVALID",
            f"{name} in the environment of this process has a character that cannot be sent.",
            detail="A line break or another control character"
            + (", or a letter that is not ASCII, which no token has." if name == TOKEN else "."),
            hint="Set it anew; one that was joined of several lines keeps their line breaks.",
        )
    return value or None


def is_sendable(token: str) -> bool:
    """Return whether a token can stand in a header of HTTP."""
    return token.isascii() and token.isprintable()


def _is_url(text: object) -> bool:
    return re.fullmatch(r"https?://[^/\s]+(/\S*)?", str(text)) is not None
