"""Compares stored rows with those of a query, as multisets, but for last digits of floats."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.algebra.relations import Stored
from headrace.algebra.schema import Column
from headrace.algebra.types import cast_sql, is_collated
from headrace.ivm.consolidate import difference
from headrace.lake.apply_change import MEASURES, change_of
from headrace.lake.compare import key_expressions
from headrace.names import WEIGHT, quote
from headrace.ports import Runner
from headrace.refresh.verify.rounded_pairs import PAIRED, floats, without_pairs
from headrace.sql.lower import lower

SAMPLES = 5
"""Differing rows that are shown: enough to recognise what is wrong."""

TABLE, QUERY = "table", "query"


@dataclass(frozen=True, slots=True)
class Compared:
    """Differences between a table and a query, copies counted.

    Args:
        rows: Rows the query returns.
        missing: Rows of the query that the table lacks.
        unexpected: Rows of the table that the query does not return.
        rounded: Pairs of rows that differ only in the last digits of floats; in neither of the two.
        seconds: Wall time.
        samples: Some of the missing and unexpected rows, each with `weight` +n or -n.
    """

    rows: int
    missing: int
    unexpected: int
    rounded: int
    seconds: float
    samples: tuple[Mapping[str, Any], ...]

    @property
    def same(self) -> bool:
        """Return whether both have the same rows."""
        return self.missing == 0 and self.unexpected == 0


def compare(runner: Runner, columns: tuple[Column, ...], table: str, query: str) -> Compared:
    """Compare a table with a query.

    Args:
        runner: Runs Spark SQL.
        columns: Columns of both.
        table: A table expression of stored rows.
        query: A query; its columns are taken by their places.
    """
    start = time.perf_counter()  # starting Spark is not counted
    tag = uuid.uuid4().hex[:8]
    query_view, difference_view, left_view = (f"__hr_{tag}_{what}" for what in ("query", "difference", "left"))
    names = tuple(c.name for c in columns)
    listed = ", ".join(quote(n) for n in names)
    rounded, samples = 0, []
    try:
        runner.materialize(query_view, f"SELECT * FROM (\n{query}\n) AS q({listed})")
        bind = {TABLE: _comparable(table, columns, stored=True), QUERY: _comparable(quote(query_view), columns)}
        relation = difference(Stored(TABLE, names), Stored(QUERY, names))
        sql = lower(relation, lambda leaf: bind[getattr(leaf, "name", "")])
        change = change_of(difference_view, runner.materialize(difference_view, sql, MEASURES))
        rows = int(runner.run(f"SELECT count(*) FROM {quote(query_view)}")[0][0])
        left = difference_view
        if change.inserted and change.deleted and floats(columns):
            counted = runner.materialize(
                left_view, without_pairs(difference_view, columns), {"pairs": f"sum({PAIRED})"}
            )
            rounded, left = int(counted["pairs"] or 0), left_view
        if change.inserted + change.deleted > 2 * rounded:
            samples = runner.run(
                f"SELECT {listed}, {quote(WEIGHT)} FROM {quote(left)} WHERE {quote(WEIGHT)} <> 0 LIMIT {SAMPLES}"
            )
    finally:
        for view in (left_view, difference_view, query_view):
            runner.release(view)
    return Compared(
        rows,
        change.inserted - rounded,
        change.deleted - rounded,
        rounded,
        time.perf_counter() - start,
        tuple({**dict(zip(names, r, strict=False)), "weight": r[-1]} for r in samples),
    )


def _comparable(rows: str, columns: tuple[Column, ...], *, stored: bool = False) -> str:
    """Return SQL of rows whose columns can be compared.

    A table keeps no collation; a variant is compared as its JSON, a map by its entries.
    """
    shown = [_as_comparable(column, stored=stored) for column in columns]
    if all(value is None for value in shown):
        return rows
    items = (f"{value} AS {quote(c.name)}" if value else quote(c.name) for value, c in zip(shown, columns, strict=True))
    return f"(SELECT {', '.join(items)} FROM {rows})"


def _as_comparable(column: Column, *, stored: bool) -> str | None:
    if "map<" in column.type.lower():
        return key_expressions(column)[0]
    if column.type.lower() == "variant":
        return f"to_json({quote(column.name)})"
    return cast_sql(quote(column.name), column.type) if stored and is_collated(column.type) else None
