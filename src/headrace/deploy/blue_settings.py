"""Settings of a public stream table, by which it is noticed that somebody altered it."""

from __future__ import annotations

from headrace.catalog import Json, StreamTable


def settings_of(table: StreamTable, generation: int | None = None) -> Json:
    """Return what is remembered of a public table.

    Args:
        table: The stream table.
        generation: Its definition's number, where it is about to be another one.
    """
    return {
        "generation": table.generation if generation is None else generation,
        "schedule": table.schedule,
        "refresh_mode": table.refresh_mode.value,
        "options": dict(table.options),
    }


_WORDS = {"generation": "query", "schedule": "schedule", "refresh_mode": "refresh mode", "options": "properties"}


def altered(then: Json, table: StreamTable) -> tuple[str, ...]:
    """Return in words what is not as it was."""
    now = settings_of(table)
    return tuple(word for key, word in _WORDS.items() if then.get(key) != now[key])
