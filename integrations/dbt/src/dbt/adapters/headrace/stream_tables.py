"""Makes a stream table what its model says: creates, alters, replaces or refreshes it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dbt.adapters.headrace.answers import Answer, records
from dbt.adapters.headrace.definitions import alterations, creation, differences, stored, taken_back, wanted
from dbt.adapters.headrace.projects import Project

from headrace.errors import HeadraceError
from headrace.names import quote, split_identifier

PATIENCE_SECONDS = 600.0
"""Seconds that a model waits for a scheduler that is just refreshing the table."""

LONGEST_PAUSE_SECONDS = 5.0
"""Most seconds between two attempts to get a table that a scheduler holds."""

ASIDE = "__before_stream_table"
"""The end of the name of a table or view until the stream table in its place is loaded."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of building a model.

    Args:
        message: What dbt prints.
        rows: Rows that appeared and disappeared; None where that is not known.
        refused: What differs, where `on_configuration_change` kept it from being applied.
    """

    message: str
    rows: int | None = None
    refused: str | None = None

    @property
    def code(self) -> str:
        """Return the first word of the message."""
        return self.message.split()[0].rstrip(",:")


def build(
    project: Project, name: str, query: str, config: Mapping[str, Any], *, full_refresh: bool, on_change: str
) -> Outcome:
    """Make a stream table what a model says.

    Args:
        project: The project.
        name: `namespace.table`, as SQL writes it.
        query: The model's compiled SQL.
        config: Its config.
        full_refresh: Recompute it, and apply changes whatever `on_change` says.
        on_change: `apply`, `continue` or `fail`.

    Raises:
        HeadraceError: The model is wrong, or computing it failed; nothing that was published has changed then.
    """
    new = wanted(query, config)
    refresh = bool(config.get("refresh", True))
    if not exists(project, name):
        statement = creation(name, new, initialize=bool(config.get("initialize", True)))
        return _created(patiently(project, statement), "CREATED {} rows")
    old = stored(str(patiently(project, f"SHOW CREATE STREAM TABLE {name}").rows()[0][0]), split_identifier(name)[-1])
    changes = differences(old, new)
    if changes and not full_refresh and on_change == "fail":
        return Outcome("FAILED", refused=str(changes))
    if changes and not full_refresh and on_change == "continue":
        done = _refreshed(project, name, "LEFT AS IT IS", refresh)
        return Outcome(done.message, done.rows, refused=str(changes))
    if changes.redefines:
        done = _created(patiently(project, creation(name, new, replace=True)), f"REPLACED ({changes}) {{}}")
        for statement in () if new.properties else taken_back(name, changes):  # without WITH it keeps those it has
            patiently(project, statement)
        return done
    for statement in alterations(name, new, changes):
        patiently(project, statement)
    if full_refresh:
        return _refreshed(project, name, f"ALTERED ({changes})" if changes else "RECOMPUTED", True, " FULL")
    return _refreshed(project, name, f"ALTERED ({changes})" if changes else "UNCHANGED", refresh)


def exists(project: Project, name: str) -> bool:
    """Return whether there is such a stream table."""
    *namespace, table = split_identifier(name)
    found = records(project.run(f"SHOW STREAM TABLES IN {'.'.join(namespace)}"))
    return f"{'.'.join(namespace)}.{table}".lower() in {str(one["name"]).lower() for one in found}


def replace_relation(project: Project, name: str, kind: str, make: Callable[[], Outcome]) -> Outcome:
    """Make a stream table in the place of a table or view, which is kept until it is loaded.

    Args:
        project: The project.
        name: `namespace.table`, as SQL writes it.
        kind: `TABLE` or `VIEW`.
        make: Makes the stream table.

    Raises:
        HeadraceError: The stream table could not be made; the table or view is there again then.
    """
    *namespace, table = split_identifier(name)
    aside = ".".join(map(quote, (*namespace, f"{table}{ASIDE}")))
    patiently(project, f"ALTER {kind} {name} RENAME TO {aside}")
    try:
        done = make()
    except BaseException:
        if exists(project, name):  # it was made, and could not be loaded
            patiently(project, f"DROP STREAM TABLE {name}")
        patiently(project, f"ALTER {kind} {aside} RENAME TO {name}")
        raise
    patiently(project, f"DROP {kind} {aside}")
    return done


def patiently(project: Project, statement: str) -> Answer:
    """Run a statement, waiting for a scheduler that holds the table.

    The catalog tells nobody that a lease has ended, and its holder may have died; so it is asked again, less and less
    often: each time costs a small transaction.

    Raises:
        HeadraceError: It is wrong, or the scheduler takes too long.
    """
    until, pause = time.monotonic() + PATIENCE_SECONDS, 0.2
    while True:
        try:
            return project.run(statement)
        except HeadraceError as error:
            if error.code != "LEASE_HELD" or time.monotonic() > until:
                raise
        time.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)


def _created(answer: Answer, message: str) -> Outcome:
    done = records(answer)
    if not done:
        return Outcome(f"{message.split()[0]}, not loaded")
    rows = done[0]["rows_inserted"]
    return Outcome(message.format("" if rows is None else rows).rstrip(), rows)


def _refreshed(project: Project, name: str, state: str, refresh: bool, how: str = "") -> Outcome:
    if not refresh:
        return Outcome(f"{state}, not refreshed")
    (done,) = records(patiently(project, f"REFRESH STREAM TABLE {name}{how}"))
    if done["mode"] == "NO_CHANGE":
        return Outcome(f"{state}, up to date", 0)
    added, gone = done["rows_inserted"] or 0, done["rows_deleted"] or 0
    word = "" if state == "UNCHANGED" else f"{state}, "
    return Outcome(f"{word}REFRESHED {done['mode']} +{added} -{gone}", added + gone)
