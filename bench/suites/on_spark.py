"""Plays a suite on Spark and Iceberg: a stream table a query, followed through rounds of changes, always verified."""

from __future__ import annotations

import time
from collections.abc import Iterable

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
        self._verify(0)
        for number in range(1, rounds + 1):
            start = time.monotonic()
            self._change(number)
            changed = time.monotonic() - start
            for name in self._created():
                self._refresh(name)
            refreshed = time.monotonic() - start
            self._verify(number)
            wrong = sum(bool(each.wrong) for each in self.found.values())
            told = f"changes {changed:.0f} s, refreshes {refreshed - changed:.0f} s, verified by"
            self._tell(f"round {number}: {told} {time.monotonic() - start:.0f} s; wrong so far: {wrong}")
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
        found = self.found[name]
        start = time.monotonic()
        try:
            validation = self.hr.validate(text)
            found.compiled = time.monotonic() - start
            found.refusal = "; ".join(str(each.message) for each in validation.refusals)
            mode = "AUTO" if found.refusal else self.mode
            self.hr.create_stream_table(f"{self.suite.name}.{name}", text, refresh_mode=mode)
        except HeadraceError as error:
            found.wrong.append(f"{error.code}: {error.message}")
        self._tell(f"{name}: {found.refusal or ''.join(found.wrong) or 'maintained'} ({found.compiled:.2f} s)")

    def _change(self, number: int) -> None:
        for table in self.read:
            home, here = self.suite.folder / table, f"lake.{self.suite.name}.{table}"
            gone = f"parquet.`{home / f'gone{number}.parquet'}`"
            met = " AND ".join(f"g.{key} = t.{key}" for key in self.suite.keys[table])
            self.hr.sql(f"DELETE FROM {here} AS t WHERE EXISTS (SELECT 1 FROM {gone} AS g WHERE {met})")
            self.hr.sql(f"INSERT INTO {here} SELECT * FROM parquet.`{home / f'come{number}.parquet'}`")

    def _created(self) -> Iterable[str]:
        return [name for name, found in self.found.items() if found.rows or not found.wrong]

    def _refresh(self, name: str) -> None:
        found = self.found[name]
        try:
            result = self.hr.refresh(f"{self.suite.name}.{name}")
        except HeadraceError as error:
            found.wrong.append(f"{error.code}: {error.message}")
            return
        found.modes.append(result.mode)
        found.changed += result.rows_inserted + result.rows_deleted
        found.seconds += result.seconds

    def _verify(self, number: int) -> None:
        for name in self._created():
            found = self.found[name]
            try:
                verified = self.hr.verify(f"{self.suite.name}.{name}")
            except HeadraceError as error:
                found.wrong.append(f"{error.code}: {error.message}")
                continue
            found.rows.append(verified.rows)
            if not verified.ok:
                found.wrong.append(f"round {number}: {verified.missing} missing, {verified.unexpected} unexpected")
                self._tell(f"{name} is wrong: {verified}")
