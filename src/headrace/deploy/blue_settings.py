"""Settings of a public stream table, by which it is noticed that somebody altered it."""

from __future__ import annotations

from collections.abc import Mapping

from headrace.catalog import Json, SchedulingState, StreamTable
from headrace.names import TableName


def settings_of(table: StreamTable) -> Json:
    """Return what is remembered of a public table.

    Not which generation its definition is of: Headrace itself defines it again, say after a change of a view.
    """
    return {
        "definition": [table.query, table.details.get("namespace"), table.details.get("semantics")],
        "schedule": table.schedule,
        "refresh_mode": table.refresh_mode.value,
        "options": dict(table.options),
    }


def with_pauses(
    settings: Mapping[TableName, Json], known: Mapping[TableName, SchedulingState]
) -> dict[TableName, Json]:
    """Return settings of members with whether somebody had paused them.

    A roll-back leaves such pauses as they were.
    """
    return {
        name: {**of, "paused": name in known and known[name].paused_at is not None} for name, of in settings.items()
    }


def was_paused(settings: Json) -> bool:
    """Return whether somebody had paused a member before it was exchanged."""
    return bool(settings.get("paused"))


_WORDS = {"definition": "query", "schedule": "schedule", "refresh_mode": "refresh mode", "options": "properties"}


def altered(then: Json, table: StreamTable) -> tuple[str, ...]:
    """Return in words what is not as it was."""
    now = settings_of(table)
    return tuple(word for key, word in _WORDS.items() if key in then and then[key] != now[key])
