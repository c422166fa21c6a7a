"""Refreshes stream tables beside plain Spark that overwrites the same tables, in turns."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.demo import tpch
from headrace.demo.run import Demo
from headrace.demo.views import VIEWS, View

if TYPE_CHECKING:
    from headrace.results.refresh_results import RefreshResult

PLAIN = "plain"
"""The namespace of the tables that plain Spark writes."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One table in one round.

    Args:
        refresh: What the refresh of the stream table did.
        plain_seconds: Time of plain Spark's `INSERT OVERWRITE` with the same query, over the same rows.
    """

    refresh: RefreshResult
    plain_seconds: float

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {**self.refresh.as_dict(), "insert_overwrite_seconds": round(self.plain_seconds, 3)}


@dataclass(frozen=True, slots=True)
class Round:
    """One round.

    Args:
        number: From 1.
        changes: What was done to the sources.
        refresh_seconds: Time of refreshing all stream tables, as it passed.
        compared: Table by table.
    """

    number: int
    changes: tuple[tpch.Change, ...]
    refresh_seconds: float
    compared: tuple[Compared, ...]

    @property
    def plain_seconds(self) -> float:
        """Time of overwriting all tables."""
        return sum(compared.plain_seconds for compared in self.compared)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON values."""
        return {
            "round": self.number,
            "refresh_seconds": round(self.refresh_seconds, 3),
            "insert_overwrite_seconds": round(self.plain_seconds, 3),
            "tables": [compared.as_dict() for compared in self.compared],
        }


@dataclass(frozen=True, slots=True)
class Total:
    """One table over all rounds.

    Args:
        view: The table.
        refresh_seconds: Time of its refreshes.
        plain_seconds: Time of overwriting it.
    """

    view: View
    refresh_seconds: float
    plain_seconds: float

    @property
    def ratio(self) -> float:
        """Return how many times as long overwriting took."""
        return self.plain_seconds / self.refresh_seconds


def totals(rounds: Sequence[Round]) -> tuple[Total, ...]:
    """Return the sums of all rounds, table by table."""
    all_of = {view.name: [c for done in rounds for c in done.compared if c.refresh.name == view.name] for view in VIEWS}
    return tuple(
        Total(view, sum(c.refresh.seconds for c in found), sum(c.plain_seconds for c in found))
        for view in VIEWS
        if (found := all_of[view.name])
    )


class ComparingDemo(Demo):
    """A demonstration in which plain Spark keeps the same tables beside Headrace."""

    def create_plain(self) -> None:
        """Make the tables that plain Spark overwrites, empty: its first round fills them."""
        self.hr.spark.sql(f"CREATE NAMESPACE IF NOT EXISTS lake.{PLAIN}")
        for view in VIEWS:
            made = f"CREATE TABLE {plain_name(view)} USING iceberg"
            self.hr.spark.sql(f"{made} AS SELECT * FROM ({plain_query(view)}) WHERE false")

    def change(self, number: int) -> tuple[tpch.Change, ...]:
        """Change the sources: RF1, RF2 and prices."""
        changes = tpch.changes(number, self.scale)
        for change in changes:
            self.hr.spark.sql(change.sql)
        return changes

    def rows(self) -> int:
        """Return how many rows readers see of the first table."""
        return self.hr.spark.table(f"lake.{VIEWS[0].name}").count()

    def compare(self, number: int, changes: tuple[tpch.Change, ...]) -> Round:
        """Refresh all stream tables and overwrite all plain ones, in turns who is first."""
        if number % 2:
            seconds, refreshed = self._refresh()
            plain = self._overwrite()
        else:
            plain = self._overwrite()
            seconds, refreshed = self._refresh()
        compared = tuple(Compared(refreshed[view.name], plain[view.name]) for view in VIEWS)
        return Round(number, changes, seconds, compared)

    def _refresh(self) -> tuple[float, dict[str, RefreshResult]]:
        """Refresh one table after the other, as plain Spark overwrites them, so that times compare."""
        began = time.monotonic()
        refreshed = {result.name: result for result in self.hr.refresh(max_concurrent=1)}
        return time.monotonic() - began, refreshed

    def _overwrite(self) -> dict[str, float]:
        return {view.name: self._timed(f"INSERT OVERWRITE {plain_name(view)} {plain_query(view)}") for view in VIEWS}

    def _timed(self, statement: str) -> float:
        began = time.monotonic()
        self.hr.spark.sql(statement)
        return time.monotonic() - began


def plain_name(view: View) -> str:
    """Return the name of the table that plain Spark writes."""
    return f"lake.{view.name.replace('tpch.', f'{PLAIN}.')}"


def plain_query(view: View) -> str:
    """Return the query over the sources, named in full."""
    text = view.query
    for table in tpch.TABLES:
        text = text.replace(f" tpch.{table}", f" lake.tpch.{table}")
    return text
