"""A stream table as a model describes it and as the project has it, and how the two differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.errors import UserError
from headrace.schedule import parse_schedule
from headrace.sql.reader.syntax.statement_cursor import string_literal
from headrace.sql.reader.syntax.tokens import tokenize
from headrace.statements.grammar import parse_script
from headrace.statements.parsed_statements import CreateStreamTable

MODES = ("AUTO", "FULL", "DIFFERENTIAL")


@dataclass(frozen=True, slots=True)
class Definition:
    """A stream table's definition.

    Args:
        query: The SELECT.
        schedule: When it is refreshed; None for Headrace's default.
        refresh_mode: `AUTO`, `FULL` or `DIFFERENTIAL`.
        properties: By key, in lower case.
        settings: Settings of the session it was defined in, where these are not the project's now.
    """

    query: str
    schedule: str | None = None
    refresh_mode: str = "AUTO"
    properties: Mapping[str, str] = field(default_factory=dict)
    settings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Changes:
    """The differences between a model and its stream table.

    Args:
        query: Whether the table has to be computed anew: its query, or the settings it is read with.
        settings: Whether those settings differ.
        schedule: Whether the schedule does.
        refresh_mode: Whether the refresh mode does.
        properties: Properties to set, by key; None for one to take back.
    """

    query: bool = False
    settings: bool = False
    schedule: bool = False
    refresh_mode: bool = False
    properties: Mapping[str, str | None] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return self.redefines or self.schedule or self.refresh_mode or bool(self.properties)

    @property
    def redefines(self) -> bool:
        """Return whether the table has to be computed anew."""
        return self.query or self.settings

    def __str__(self) -> str:
        names = ("query", "settings", "schedule", "refresh_mode")
        return ", ".join([*(name for name in names if getattr(self, name)), *sorted(self.properties)])


def wanted(query: str, config: Mapping[str, Any]) -> Definition:
    """Read a model.

    Args:
        query: Its compiled SQL.
        config: `schedule` or `target_lag`, `refresh_mode`, `properties`.

    Raises:
        UserError: `INVALID_OPTION`, `INVALID_SCHEDULE`.
    """
    schedule, lag = config.get("schedule"), config.get("target_lag")
    if schedule is not None and lag is not None:
        raise UserError(
            "INVALID_OPTION",
            "The model has both `schedule` and `target_lag`.",
            hint="Both say when it is refreshed: keep one of them.",
        )
    schedule = lag if schedule is None else schedule
    properties = config.get("properties") or {}
    if not isinstance(properties, Mapping):
        raise UserError(
            "INVALID_OPTION",
            f"`properties` of the model is no mapping: {properties!r}.",
            hint="Write keys and values, for example {'tier': 'warm', 'timeout': '10 minutes'}.",
        )
    mode = str(config.get("refresh_mode") or MODES[0]).upper()
    if mode not in MODES:
        raise UserError("INVALID_OPTION", f"refresh_mode cannot be '{mode}'.", hint=f"Use {', '.join(MODES)}.")
    return Definition(
        query.strip().rstrip(";").rstrip(),
        None if schedule is None else parse_schedule(str(schedule)).text,
        mode,
        {str(key).lower(): _text(value) for key, value in properties.items()},
    )


def stored(statements: str, name: str) -> Definition:
    """Read what `SHOW CREATE STREAM TABLE` returns.

    Args:
        statements: Those that make the table; of one in a cycle those of the whole cycle.
        name: The table's own name.
    """
    found = parse_script(statements)
    created = [s for s in found if isinstance(s, CreateStreamTable) and s.name[-1].lower() == name.lower()][-1]
    settings = tuple(s.sql for s in found if s.sql.upper().startswith("SET "))
    return Definition(
        created.query.sql,
        None if created.schedule is None else parse_schedule(created.schedule).text,
        created.refresh_mode,
        {key.lower(): text for key, text in created.properties.items()},
        settings,
    )


def creation(name: str, new: Definition, *, replace: bool = False, initialize: bool = True) -> str:
    """Write the statement that makes a stream table.

    Args:
        name: Its name, as SQL writes it.
        new: Its definition.
        replace: Give an existing one this definition.
        initialize: Load it.
    """
    head = [f"CREATE{' OR REPLACE' * replace} STREAM TABLE {name}"]
    head += [f"SCHEDULE {string_literal(new.schedule)}"] if new.schedule is not None else []
    head += [f"REFRESH MODE {new.refresh_mode}"]
    head += [f"WITH {_pairs(new.properties)}"] if new.properties else []
    head += [] if initialize else ["INITIALIZE FALSE"]
    return f"{' '.join(head)} AS\n{new.query}"


def alterations(name: str, new: Definition, changes: Changes) -> list[str]:
    """Write the statements that alter a stream table without computing it anew.

    Args:
        name: Its name, as SQL writes it.
        new: Its new definition.
        changes: How that differs.
    """
    given = {key: text for key, text in changes.properties.items() if text is not None}
    settings = [f"SCHEDULE {string_literal(new.schedule)}"] if changes.schedule and new.schedule is not None else []
    settings += [f"REFRESH MODE {new.refresh_mode}"] if changes.refresh_mode else []
    settings += [f"PROPERTIES {_pairs(given)}"] if given else []
    actions = [f"SET {', '.join(settings)}"] if settings else []
    actions += ["DROP SCHEDULE"] if changes.schedule and new.schedule is None else []
    return [f"ALTER STREAM TABLE {name} {action}" for action in (*actions, *_dropped(changes))]


def taken_back(name: str, changes: Changes) -> list[str]:
    """Write the statement that takes properties back, if there are any to take."""
    return [f"ALTER STREAM TABLE {name} {action}" for action in _dropped(changes)]


def _dropped(changes: Changes) -> list[str]:
    gone = [string_literal(key) for key, text in changes.properties.items() if text is None]
    return [f"DROP PROPERTIES ({', '.join(gone)})"] if gone else []


def _pairs(properties: Mapping[str, str]) -> str:
    pairs = (f"{string_literal(key)} = {string_literal(text)}" for key, text in properties.items())
    return f"({', '.join(pairs)})"


def differences(old: Definition, new: Definition) -> Changes:
    """Compare two definitions; comments and white space of the query do not count."""
    properties: dict[str, str | None] = {k: v for k, v in new.properties.items() if old.properties.get(k) != v}
    properties |= {key: None for key in old.properties if key not in new.properties}
    return Changes(
        query=words(old.query) != words(new.query),
        settings=old.settings != new.settings,
        schedule=old.schedule != new.schedule,
        refresh_mode=old.refresh_mode != new.refresh_mode,
        properties=properties,
    )


def words(query: str) -> list[str]:
    """Return a query's tokens: what is left of it without comments and white space."""
    try:
        return [token.text for token in tokenize(query)]
    except UserError:  # whoever compiles it says so
        return [query]


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
