"""A case played on Spark and Iceberg, through the whole engine."""

from __future__ import annotations

import datetime
import itertools
from collections import Counter
from decimal import Decimal

from headrace.api.facade import Headrace
from headrace.names import quote
from headrace.results.refresh_results import Mode
from kit.case import Case, Row, Table, Window

_numbers = itertools.count(1)

PROPERTIES = (
    "TBLPROPERTIES ('format-version'='3', 'write.delete.mode'='merge-on-read', 'write.update.mode'='merge-on-read')",
    "",
)


class Play:
    """One case in a namespace of its own."""

    def __init__(self, hr: Headrace, case: Case) -> None:
        self.hr = hr
        self.case = case
        self.ns = f"r{next(_numbers)}"
        self.contents = {t.name: list(t.rows) for t in case.tables}

    def run(self) -> None:
        hr, ns = self.hr, self.ns
        hr.spark.sql(f"CREATE NAMESPACE lake.{ns}")
        for table, properties in zip(self.case.tables, itertools.cycle(PROPERTIES), strict=False):
            columns = ", ".join(f"{quote(c.name)} {c.type}" for c in table.columns)
            hr.spark.sql(f"CREATE TABLE lake.{ns}.{table.name} ({columns}) USING iceberg {properties}")
            self._insert(table, list(table.rows))
        hr.spark.sql(f"USE lake.{ns}")
        try:
            self._maintain()
        finally:
            hr.spark.sql("USE lake")
            hr.drop_stream_table(f"{ns}.view", if_exists=True, cascade=True)

    def _maintain(self) -> None:
        hr, name = self.hr, f"{self.ns}.view"
        hr.create_stream_table(name, self.case.query, refresh_mode="DIFFERENTIAL")
        columns = [quote(c) for c in hr.spark.table(f"lake.{name}").columns]
        hr.create_stream_table(f"{self.ns}.reader", f"SELECT count(*) AS n FROM {name}", refresh_mode="DIFFERENTIAL")
        before = self._rows(f"SELECT {', '.join(columns)} FROM lake.{name}")
        for window in self.case.windows:
            self._pass(window)
            result = hr.refresh(name)
            assert result.mode is not Mode.FULL
            verified = hr.verify(name)
            assert verified.ok, verified
            after = self._rows(f"SELECT {', '.join(columns)} FROM lake.{name}")
            gone, came = before - after, after - before
            assert (result.rows_deleted, result.rows_inserted) == (gone.total(), came.total()), (
                "unchanged rows rewritten"
            )
            before = after
        assert hr.refresh(f"{self.ns}.reader").mode is not Mode.FULL
        assert hr.verify(f"{self.ns}.reader").ok

    def _rows(self, sql: str) -> Counter[str]:
        return Counter(repr(tuple(r)) for r in self.hr.spark.sql(sql).collect())

    def _pass(self, window: Window) -> None:
        """Let a window happen: every row that loses copies is deleted whole, its surviving copies come back."""
        for table in self.case.tables:
            change = window.get(table.name, ())
            contents = Counter(self.contents[table.name])
            total: Counter[Row] = Counter()
            for weight, row in change:
                total[row] += weight
            lost = [row for row, weight in total.items() if weight < 0]
            self._delete(table, lost)
            survivors = [row for row in lost for _ in range(contents[row] + total[row])]
            self._insert(table, survivors + [row for row, weight in total.items() for _ in range(max(weight, 0))])
            after = [row for row in contents | total for _ in range(contents[row] + total[row])]
            self.contents[table.name] = after

    def _delete(self, table: Table, rows: list[Row]) -> None:
        def same(row: Row) -> str:
            pairs = zip(table.columns, row, strict=True)
            return " AND ".join(f"{quote(c.name)} <=> {_literal(v, c.type)}" for c, v in pairs)

        if rows:
            where = " OR ".join(f"({same(row)})" for row in rows)
            self.hr.spark.sql(f"DELETE FROM lake.{self.ns}.{table.name} WHERE {where}")

    def _insert(self, table: Table, rows: list[Row]) -> None:
        if rows:
            types = [c.type for c in table.columns]
            values = ", ".join(
                "(" + ", ".join(_literal(v, t) for v, t in zip(row, types, strict=True)) + ")" for row in rows
            )
            self.hr.spark.sql(f"INSERT INTO lake.{self.ns}.{table.name} VALUES {values}")


def _literal(value: object, type_: str) -> str:
    match value:
        case None:
            text = "NULL"
        case bool():
            text = str(value)
        case int() | Decimal():
            text = str(value)
        case datetime.date():
            text = f"'{value}'"
        case _:
            escaped = str(value).replace("\\", "\\\\").replace("'", "\\'")
            text = f"'{escaped}'"
    return f"CAST({text} AS {type_})"
