"""Nexmark and TPC-DS on Spark and Iceberg: created under AUTO, those that are maintained counted, all of them verified.

A part of each suite; HEADRACE_TEST_LONG=1 takes all of both, through more rounds. Refreshes are DIFFERENTIAL where that
is possible, as AUTO would rather recompute such small tables.
"""

from __future__ import annotations

import re
from random import Random

import pytest
from kit import nexmark, tpcds, tpcds_rows
from kit.case import Case, Row, Table, Weighted, Window
from kit.long_tests import LONG
from kit.play import Play

from headrace.api.facade import Headrace
from headrace.results.refresh_results import Mode

ROUNDS = 4 if LONG else 1
SOME_OF_NEXMARK = ("q5", "q6", "q9")
SOME_OF_TPCDS = ("q1", "q39", "q41", "q54")


class Suite(Play):
    """Stream tables over the same tables, by name; some of them are refreshed FULL."""

    def __init__(
        self,
        hr: Headrace,
        queries: dict[str, str],
        refused: frozenset[str],
        tables: tuple[Table, ...],
        windows: tuple[Window, ...],
    ) -> None:
        super().__init__(hr, Case("", tables, windows))
        self.queries = queries
        self.refused = refused

    def _maintain(self) -> None:
        names = {f"{self.ns}.view_{name}": name for name in self.queries}
        try:
            self._follow(names)
        finally:
            for name in names:
                self.hr.drop_stream_table(name, if_exists=True)

    def _follow(self, names: dict[str, str]) -> None:
        for name, query in names.items():
            self.hr.create_stream_table(name, self.queries[query], options={"ties": "refine_floats"})
        refused = {query for name, query in names.items() if self.hr.explain(name).refusals}
        assert refused == self.refused
        for name, query in names.items():
            if query not in refused:
                self.hr.alter_stream_table(name, refresh_mode="DIFFERENTIAL")
        for number, window in enumerate(self.case.windows):
            self._pass(window)
            modes = {names[result.name]: result.mode for result in self.hr.refresh(list(names))}
            assert {query for query, mode in modes.items() if mode is Mode.FULL} <= refused
            assert [v for v in self.hr.verify(list(names)) if not v.ok] == [], f"round {number}"


def test_nexmark(shared: Headrace) -> None:
    random = Random(4)
    queries = {name: sql for name, sql in nexmark.QUERIES.items() if LONG or name in SOME_OF_NEXMARK}
    tables = nexmark.tables(random)
    Suite(shared, queries, frozenset(), tables, nexmark.windows(tables, ROUNDS, random)).run()


@pytest.mark.long
def test_tpcds(shared: Headrace) -> None:
    random = Random(4)
    queries = {name: sql for name, sql in tpcds.QUERIES.items() if LONG or name in SOME_OF_TPCDS}
    text = " ".join(queries.values())
    tables = tuple(tpcds_rows.table(name, text, random) for name in tpcds.COLUMNS if re.search(rf"\b{name}\b", text))
    contents = {table.name: list(table.rows) for table in tables}
    windows = tuple(_window(text, tables, contents, random) for _ in range(ROUNDS))
    Suite(shared, queries, tpcds.REFUSED & queries.keys(), tables, windows).run()


def _window(text: str, tables: tuple[Table, ...], contents: dict[str, list[Row]], random: Random) -> Window:
    """In each table a row comes, and in every second one a row goes."""
    window: dict[str, tuple[Weighted, ...]] = {}
    for number, table in enumerate(tables):
        present = contents[table.name]
        gone = [random.choice(present)] if number % 2 else []
        come = tpcds_rows.row(text, table.columns, random)
        window[table.name] = (*((-1, row) for row in gone), (1, come))
        for row in gone:
            present.remove(row)
        present.append(come)
    return window
