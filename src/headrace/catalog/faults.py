"""Translates database exceptions into Headrace's errors."""

from __future__ import annotations

from sqlalchemy import exc

from headrace.errors import EnvironmentFault, HeadraceError, InternalError

_SQLITE: tuple[tuple[tuple[str, ...], str], ...] = (
    (("locked", "busy"), "CATALOG_LOCKED"),
    (("unable to open",), "CATALOG_UNREACHABLE"),
    (("not a database", "malformed", "file is encrypted"), "CATALOG_CORRUPT"),
    (("readonly", "read-only"), "CATALOG_READ_ONLY"),
    (("disk is full", "disk full"), "DISK_FULL"),
    (("disk i/o", "i/o error"), "CATALOG_UNREACHABLE"),
)

_POSTGRES: tuple[tuple[str, str], ...] = (
    ("40", "CATALOG_LOCKED"),  # serialization failure, deadlock
    ("55P03", "CATALOG_LOCKED"),  # lock_timeout
    ("53100", "DISK_FULL"),
    ("53", "CATALOG_UNREACHABLE"),  # out of connections or memory
    ("57", "CATALOG_UNREACHABLE"),  # shutting down, cancelled by an administrator
    ("08", "CATALOG_UNREACHABLE"),
    ("28", "CATALOG_UNREACHABLE"),  # authentication
    ("3D", "CATALOG_UNREACHABLE"),  # no such database
    ("25006", "CATALOG_READ_ONLY"),
    ("42501", "CATALOG_READ_ONLY"),
    ("XX001", "CATALOG_CORRUPT"),
    ("XX002", "CATALOG_CORRUPT"),
)

_WORDS: dict[str, tuple[str, str]] = {
    "CATALOG_LOCKED": (
        "The catalog {url} is locked by another process.",
        "Try again; if it stays so, see who holds it open (a SQLite shell, a backup, a hung process).",
    ),
    "CATALOG_UNREACHABLE": (
        "The catalog {url} cannot be reached.",
        "Check the catalog URL, that the file or server is there, and that this user may open it.",
    ),
    "CATALOG_CORRUPT": (
        "The catalog {url} is damaged, or is not a catalog.",
        "Check that the URL names the right file; if it does, put back a backup of it.",
    ),
    "CATALOG_READ_ONLY": (
        "The catalog {url} cannot be written.",
        "Give this user the right to write to it (for SQLite: to the file and its folder).",
    ),
    "DISK_FULL": (
        "The disk that holds the catalog {url} is full.",
        "Make room; nothing was changed.",
    ),
}

_RETRYABLE = frozenset({"CATALOG_LOCKED", "CATALOG_UNREACHABLE", "CATALOG_READ_ONLY", "DISK_FULL"})


def code_of(error: exc.DBAPIError) -> str | None:
    """Return the catalog code for a driver's exception.

    None when it is none of the known stories.
    """
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return next((code for prefix, code in _POSTGRES if str(state).startswith(prefix)), None)
    text = str(error.orig).lower()
    if (known := next((code for words, code in _SQLITE if any(w in text for w in words)), None)) is not None:
        return known
    lost = error.connection_invalidated or (
        isinstance(error, exc.OperationalError) and type(error.orig).__module__.startswith("psycopg")
    )
    return "CATALOG_UNREACHABLE" if lost else None


def is_certain(error: exc.DBAPIError) -> bool:
    """Return whether a failed COMMIT surely changed nothing: the database answered, and said no."""
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return not str(state).startswith(("08", "57P"))
    return code_of(error) in ("CATALOG_LOCKED", "DISK_FULL", "CATALOG_READ_ONLY")


def fault(error: exc.SQLAlchemyError, url: str) -> HeadraceError:
    """Return the Headrace error for a database error, to be raised from it."""
    code = code_of(error) if isinstance(error, exc.DBAPIError) else None
    if isinstance(error, exc.TimeoutError):
        code = "CATALOG_LOCKED"
    detail = str(error.orig).strip() if isinstance(error, exc.DBAPIError) else str(error)
    if code is None:
        return InternalError("CATALOG_FAILED", f"A statement on the catalog {url} failed.", detail=detail)
    message, hint = _WORDS[code]
    return EnvironmentFault(code, message.format(url=url), detail=detail, hint=hint, retryable=code in _RETRYABLE)


def damaged(url: str, detail: str) -> EnvironmentFault:
    """Return the error for a catalog in which something stands that nobody wrote."""
    message, hint = _WORDS["CATALOG_CORRUPT"]
    return EnvironmentFault("CATALOG_CORRUPT", message.format(url=url), detail=detail, hint=hint)
