"""Compares a table with what a catalog server has under its name, by the metadata of both."""

from __future__ import annotations

from enum import Enum
from typing import Any

Json = dict[str, Any]


class Standing(Enum):
    """The state of a server's entry for a table, compared with the table here."""

    ABSENT = "absent"
    SAME = "same"
    """The very table, as it is."""
    BEHIND = "behind"
    """The very table as it was earlier, with nothing that it has not: somebody registered it before."""
    OTHER = "other"
    """Another table, or the same with something that is not known here."""


def standing_of_table(ours: Json, theirs: Json, location: str) -> Standing:
    """Return how a server's table stands to one of ours.

    Args:
        ours: Our metadata.
        theirs: The server's, which may have written it anew.
        location: The server's metadata file.
    """
    if ours.get("table-uuid") != theirs.get("table-uuid"):
        return Standing.OTHER
    if _state(ours) == _state(theirs):
        return Standing.SAME
    if location in {entry["metadata-file"] for entry in ours.get("metadata-log") or ()}:
        return Standing.BEHIND
    snapshot, number, fields = _state(theirs)
    known = {None, *(s["snapshot-id"] for s in ours.get("snapshots") or ())}
    former = [schema["fields"] for schema in _schemas(ours)]
    behind = snapshot in known and number <= int(ours.get("last-sequence-number") or 0) and fields in former
    return Standing.BEHIND if behind else Standing.OTHER


def standing_of_view(ours: Json, theirs: Json) -> Standing:
    """Return how a server's view stands to one of ours, whose UUID one created there has not."""
    return Standing.SAME if _text(ours) == _text(theirs) else Standing.OTHER


def view_version(view: Json) -> tuple[Json, Json]:
    """Return a view's current version and the schema of that."""
    version = next(v for v in view["versions"] if v["version-id"] == view["current-version-id"])
    return version, next(s for s in view["schemas"] if s["schema-id"] == version["schema-id"])


def _state(table: Json) -> tuple[int | None, int, list[Json]]:
    snapshot = table.get("current-snapshot-id")
    current = table.get("current-schema-id", 0)
    fields = next(s["fields"] for s in _schemas(table) if s.get("schema-id", 0) == current)
    return None if snapshot == -1 else snapshot, int(table.get("last-sequence-number") or 0), fields


def _schemas(table: Json) -> list[Json]:
    return table.get("schemas") or [table["schema"]]


def _text(view: Json) -> tuple[Any, ...]:
    version, schema = view_version(view)
    named = version.get("default-catalog"), version.get("default-namespace") or []
    return sorted(map(str, version["representations"])), *named, [field["name"] for field in schema["fields"]]
