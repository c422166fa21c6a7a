"""Details of definitions as they are stored, of which most are never looked at.

Whoever looks at all stream tables asks a few things of each, the same ones of every table. These are stored a second
time, as a summary, which is alike for nearly all of them; the details themselves stay a text until more is asked. To
parse those of ten thousand tables takes longer than to read them, and eighty megabytes.

Beside a summary stands a checksum of the text that it is of and of the keys that were looked for: a process of an
earlier release, which still runs during an upgrade, writes details only, or knows of fewer keys.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from headrace.errors import EnvironmentFault

SUMMARY = ("refusals", "layout", "cyclic", "deployment")
"""Keys of details that are asked of every stream table."""


def stored_values(details: Mapping[str, Any]) -> dict[str, Any]:
    """Return details as columns of `hr_stream_table`."""
    return {
        "definition_json": dict(details),
        "summary_json": {key: details[key] for key in SUMMARY if key in details},
        "summary_checksum": _checksum(json.dumps(dict(details))),  # as SQLAlchemy writes it
    }


class StoredDetails(Mapping[str, Any]):
    """Details as read from the catalog, parsed when they are asked for.

    Any access may raise `EnvironmentFault` `CATALOG_CORRUPT`.

    Args:
        text: All of them, as JSON.
        summary: Their summary, as JSON; None where there is none.
        checksum: That of the text which the summary is of.
    """

    __slots__ = ("_summary", "_text")

    def __init__(self, text: str, summary: str | None, checksum: int | None) -> None:
        self._text = text
        self._summary = summary if checksum == _checksum(text) else None

    def __getitem__(self, key: str) -> Any:
        """Return the value of a key."""
        if self._summary is not None and key in SUMMARY:
            return _parsed_summary(self._summary)[key]
        return _parsed_text(self._text)[key]

    def __iter__(self) -> Iterator[str]:
        """Yield all keys."""
        return iter(_parsed_text(self._text))

    def __len__(self) -> int:
        """Return how many keys there are."""
        return len(_parsed_text(self._text))

    def __bool__(self) -> bool:
        """Return whether there are any, for which one that is asked of every table will do."""
        return bool(self._summary and _parsed_summary(self._summary)) or bool(_parsed_text(self._text))

    def __eq__(self, other: object) -> bool:
        """Return whether the other has the same values; equal texts are not parsed for that."""
        return (isinstance(other, StoredDetails) and self._text == other._text) or super().__eq__(other)

    def __repr__(self) -> str:
        """Return the text."""
        return self._text


def _checksum(text: str) -> int:
    return zlib.crc32(text.encode(), _OF_KEYS)


_OF_KEYS = zlib.crc32(" ".join(SUMMARY).encode())


def unreadable(error: Exception) -> EnvironmentFault:
    """Return the error for details that nobody wrote, to be raised from another one."""
    return EnvironmentFault(
        "CATALOG_CORRUPT",
        "The catalog is damaged: it has a definition of a stream table that cannot be read.",
        detail=f"{type(error).__name__}: {error}",
        hint="Put back a backup of the catalog.",
    )


def _parsed(text: str) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
        if not isinstance(found, dict):
            raise TypeError(f"{type(found).__name__} in place of an object")
    except (ValueError, TypeError) as error:
        raise unreadable(error) from error
    return found


_parsed_summary = lru_cache(maxsize=256)(_parsed)
_parsed_text = lru_cache(maxsize=4096)(_parsed)  # each refresh asks all readers of a source for their columns
