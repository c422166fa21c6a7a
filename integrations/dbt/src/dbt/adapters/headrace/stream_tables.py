"""Makes a stream table what its model says: creates, alters, replaces or refreshes it."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from dbt.adapters.headrace.definitions import Changes, Definition, differences, stored, wanted

from headrace.api.facade import Headrace
from headrace.errors import HeadraceError
from headrace.results.refresh_results import RefreshResult

PATIENCE = dt.timedelta(minutes=10)
"""How long a model waits for a scheduler that is just refreshing the table."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was done for a model.

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
    hr: Headrace, name: str, query: str, config: Mapping[str, Any], *, full_refresh: bool, on_change: str
) -> Outcome:
    """Make a stream table what a model says.

    Args:
        hr: The project.
        name: `namespace.table`.
        query: The model's compiled SQL.
        config: Its config.
        full_refresh: Recompute it, and apply changes whatever `on_change` says.
        on_change: `apply`, `continue` or `fail`.

    Raises:
        HeadraceError: The model is wrong, or computing it failed; nothing that was published has changed then.
    """
    new = wanted(query, config)
    refresh = bool(config.get("refresh", True))
    if not exists(hr, name):
        return _created(_patiently(lambda: _create(hr, name, new, initialize=bool(config.get("initialize", True)))))
    changes = differences(stored(hr.show_create(name)), new)
    if changes and not full_refresh and on_change == "fail":
        return Outcome("FAILED", refused=str(changes))
    if changes and not full_refresh and on_change == "continue":
        done = _refreshed("LEFT AS IT IS", _refresh(hr, name) if refresh else None)
        return Outcome(done.message, done.rows, refused=str(changes))
    if changes.redefines:
        return _created(_patiently(lambda: _create(hr, name, new, replace=True)), f"REPLACED ({changes})")
    if changes:
        _alter(hr, name, new, changes)
    state = f"ALTERED ({changes})" if changes else "UNCHANGED"
    if full_refresh:
        return _refreshed(state if changes else "RECOMPUTED", _refresh(hr, name, full=True))
    return _refreshed(state, _refresh(hr, name) if refresh else None)


def exists(hr: Headrace, name: str) -> bool:
    """Return whether there is such a stream table; starts nothing."""
    try:
        return bool(hr.status([name]))
    except HeadraceError as error:
        if error.code != "STREAM_TABLE_NOT_FOUND":
            raise
        return False


def _create(
    hr: Headrace, name: str, new: Definition, *, replace: bool = False, initialize: bool = True
) -> RefreshResult | None:
    return hr.create_stream_table(
        name,
        new.query,
        schedule=new.schedule,
        refresh_mode=new.refresh_mode,
        initialize=initialize,
        or_replace=replace,
        options=new.properties,
    )


def _alter(hr: Headrace, name: str, new: Definition, changes: Changes) -> None:
    hr.alter_stream_table(
        name,
        schedule=new.schedule if changes.schedule else None,
        clear_schedule=changes.schedule and new.schedule is None,
        refresh_mode=new.refresh_mode if changes.refresh_mode else None,
        options=changes.properties or None,
    )


def _refresh(hr: Headrace, name: str, *, full: bool = False) -> RefreshResult:
    return hr.refresh(name, full=full, wait=PATIENCE)


def _created(result: RefreshResult | None, word: str = "CREATED") -> Outcome:
    if result is None:
        return Outcome(f"{word}, not loaded")
    rows = result.rows_inserted
    return Outcome(word if rows is None else f"{word} {rows} rows" if word == "CREATED" else f"{word} {rows}", rows)


def _refreshed(state: str, result: RefreshResult | None) -> Outcome:
    if result is None:
        return Outcome(f"{state}, not refreshed")
    if result.mode.value == "NO_CHANGE":
        return Outcome(f"{state}, up to date", 0)
    added, gone = result.rows_inserted or 0, result.rows_deleted or 0
    word = "" if state == "UNCHANGED" else f"{state}, "
    return Outcome(f"{word}REFRESHED {result.mode.value} +{added} -{gone}", added + gone)


def _patiently(define: Callable[[], T]) -> T:
    """Define a table, waiting for a scheduler that holds it."""
    until = time.monotonic() + PATIENCE.total_seconds()
    while True:
        try:
            return define()
        except HeadraceError as error:
            if error.code != "LEASE_HELD" or time.monotonic() > until:
                raise
        time.sleep(1)
