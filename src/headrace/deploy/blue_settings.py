"""Settings of a public stream table, by which it is noticed that somebody altered it."""

from __future__ import annotations

from headrace.catalog import Json, StreamTable


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


_WORDS = {"definition": "query", "schedule": "schedule", "refresh_mode": "refresh mode", "options": "properties"}


def altered(then: Json, table: StreamTable) -> tuple[str, ...]:
    """Return in words what is not as it was."""
    now = settings_of(table)
    return tuple(word for key, word in _WORDS.items() if key in then and then[key] != now[key])
