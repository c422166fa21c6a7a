"""Plays a suite on Spark and Iceberg: a stream table a query, followed through rounds of changes, always verified."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from kit.sparks import FOR_A_TIER

from bench.suites.followed import Followed, Tell
from bench.suites.suite import Suite
from headrace.api.facade import Headrace
from headrace.errors import HeadraceError

OPTIONS = {
    "spark.driver.memory": "4g",
    "spark.driver.extraJavaOptions": FOR_A_TIER,
    "spark.sql.shuffle.partitions": "1",
}
"""Of Spark, where hundreds of queries run a few times each over few rows."""

TIES = {"ties": "refine_floats"}
"""Of each stream table, as a query of TPC-DS (q39) compares deviations of floats."""


class OnSpark:
    """The stream tables of a suite.

    Args:
        hr: The project.
        suite: The tables and queries.
        mode: How refreshes run, of what is maintained.
        tell: Told of what is done.
    """

    def __init__(self, hr: Headrace, suite: Suite, mode: str, tell: Tell) -> None:
        self.hr = hr
        self.suite = suite
        self.mode = mode
        self.tell = tell
        self.found = {name: Followed() for name in suite.queries}
        self.read = sorted({table for text in suite.queries.values() for table in suite.read(text)})

    def play(self, rounds: int) -> dict[str, Followed]:
        """Create everything and follow it through rounds of changes."""
        self._load()
        for name, text in self.suite.queries.items():
            self._create(name, text)
        created = [name for name, found in self.found.items() if not found.wrong]
        for number in range(1, rounds + 1):
            start = time.monotonic()
            self._change(number)
            for name in created:
                self._follow(name, number)
            wrong = sum(bool(each.wrong) for each in self.found.values())
            self._tell(f"round {number}: {time.monotonic() - start:.0f} s; wrong so far: {wrong}")
        return self.found

    def _tell(self, line: str) -> None:
        self.tell(line, self.found)

    def _load(self) -> None:
        self.hr.sql(f"CREATE NAMESPACE lake.{self.suite.name}")
        for table in self.read:
            source = f"parquet.`{self.suite.folder / table / 'first.parquet'}`"
            self.hr.sql(f"CREATE TABLE lake.{self.suite.name}.{table} USING iceberg AS SELECT * FROM {source}")
        self.hr.sql(f"USE lake.{self.suite.name}")

    def _create(self, name: str, text: str) -> None:
        found, table = self.found[name], f"{self.suite.name}.{name}"
        start = time.monotonic()
        with _noted(found):
            self.hr.validate(text)
            found.compiled = time.monotonic() - start
            self.hr.create_stream_table(table, text, options=TIES)
            found.refusal = "; ".join(str(each.message) for each in self.hr.explain(table).refusals)
            if not found.refusal:
                self.hr.alter_stream_table(table, refresh_mode=self.mode)
        self._tell(f"{name}: {found.refusal or ''.join(found.wrong) or 'maintained'} ({found.compiled:.2f} s)")

    def _change(self, number: int) -> None:
        for table in self.read:
            home, here = self.suite.folder / table, f"lake.{self.suite.name}.{table}"
            gone = f"parquet.`{home / f'gone{number}.parquet'}`"
            met = " AND ".join(f"g.{key} = t.{key}" for key in self.suite.keys[table])
            self.hr.sql(f"DELETE FROM {here} AS t WHERE EXISTS (SELECT 1 FROM {gone} AS g WHERE {met})")
            self.hr.sql(f"INSERT INTO {here} SELECT * FROM parquet.`{home / f'come{number}.parquet'}`")

    def _follow(self, name: str, number: int) -> None:
        """Refresh a stream table, and compare it with its query."""
        found, table = self.found[name], f"{self.suite.name}.{name}"
        with _noted(found):
            result = self.hr.refresh(table)
            found.modes.append(result.mode)
            found.changed += result.rows_inserted + result.rows_deleted
            found.seconds += result.seconds
            verified = self.hr.verify(table)
            found.rows.append(verified.rows)
            if not verified.ok:
                found.wrong.append(f"round {number}: {verified.missing} missing, {verified.unexpected} unexpected")
        self._tell(f"round {number}, {name}: {'; '.join(found.wrong) or f'{found.rows[-1]} rows'}")


@contextmanager
def _noted(found: Followed) -> Iterator[None]:
    """Note an error that is one of Headrace's, and go on."""
    try:
        yield
    except HeadraceError as error:
        found.wrong.append(f"{error.code}: {error.message}")
