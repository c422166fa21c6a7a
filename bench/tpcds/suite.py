"""Plays TPC-DS on Spark and Iceberg: 99 stream tables, followed through rounds of changes and verified after each."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from bench.tpcds.generate import KEYS
from headrace.api.facade import Headrace
from headrace.errors import HeadraceError
from headrace.results.refresh_results import Mode

NAMESPACE = "tpcds"


@dataclass(slots=True)
class Followed:
    """What became of one query.

    Args:
        refusal: Why it is refreshed FULL; empty where it is maintained.
        compiled: Seconds that `validate` took.
        modes: How its refreshes ran.
        rows: Rows of its result after each round.
        changed: Rows that came and went in all rounds.
        seconds: Of its refreshes.
        wrong: Rounds after which it was not what the query returns, and errors.
    """

    refusal: str = ""
    compiled: float = 0.0
    modes: list[Mode] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    changed: int = 0
    seconds: float = 0.0
    wrong: list[str] = field(default_factory=list)

    def line(self, name: str) -> str:
        """Return it as a line of the table."""
        ran = "".join({Mode.FULL: "F", Mode.DIFFERENTIAL: "D"}.get(mode, "-") for mode in self.modes)
        rows = f"{min(self.rows)}-{max(self.rows)}" if self.rows else ""
        exact = "no" if self.wrong else "yes" if self.rows else ""
        accepted = "no" if self.refusal else "yes"
        told = "; ".join(filter(None, (self.refusal, *self.wrong)))
        return (
            f"| {name} | {accepted} | {exact} | {rows} | {self.changed} | {self.compiled:.2f} | {self.seconds:.1f} "
            f"| {ran} | {told[:160]} |"
        )


HEAD = (
    "| Query | Accepted | Exact | Rows | Changed rows | Seconds to compile | Seconds of refreshes | Modes | |\n"
    "|---|---|---|--:|--:|--:|--:|---|---|"
)


class Suite:
    """The stream tables of some queries.

    Args:
        hr: The project.
        folder: Where the generated tables are.
        queries: Texts by name.
        tell: Told of what is done.
    """

    def __init__(self, hr: Headrace, folder: Path, queries: dict[str, str], tell: Callable[[str], None]) -> None:
        self.hr = hr
        self.folder = folder
        self.queries = queries
        self.tell = tell
        self.found = {name: Followed() for name in queries}

    def play(self, rounds: int) -> dict[str, Followed]:
        """Create everything and follow it through rounds of changes."""
        self._load()
        for name, text in self.queries.items():
            self._create(name, text)
        self._verify(0)
        for number in range(1, rounds + 1):
            start = time.monotonic()
            self._change(number)
            changed = time.monotonic() - start
            self._refresh()
            self._verify(number)
            wrong = sum(bool(each.wrong) for each in self.found.values())
            seconds = time.monotonic() - start
            self.tell(f"round {number}: {seconds:.0f} s, of which changes {changed:.0f} s; wrong so far: {wrong}")
        return self.found

    def _load(self) -> None:
        self.hr.sql(f"CREATE NAMESPACE lake.{NAMESPACE}")
        for table in KEYS:
            source = f"parquet.`{self.folder / table / 'first.parquet'}`"
            self.hr.sql(f"CREATE TABLE lake.{NAMESPACE}.{table} USING iceberg AS SELECT * FROM {source}")
        self.hr.sql(f"USE lake.{NAMESPACE}")

    def _create(self, name: str, text: str) -> None:
        found = self.found[name]
        start = time.monotonic()
        try:
            validation = self.hr.validate(text)
            found.compiled = time.monotonic() - start
            found.refusal = "; ".join(str(each.message) for each in validation.refusals)
            mode = "AUTO" if found.refusal else "DIFFERENTIAL"
            self.hr.create_stream_table(f"{NAMESPACE}.{name}", text, refresh_mode=mode)
        except HeadraceError as error:
            found.wrong.append(f"{error.code}: {error.message}")
        self.tell(f"{name}: {found.refusal or ''.join(found.wrong) or 'maintained'} ({found.compiled:.2f} s)")

    def _change(self, number: int) -> None:
        for table, keys in KEYS.items():
            home, here = self.folder / table, f"lake.{NAMESPACE}.{table}"
            gone = f"parquet.`{home / f'gone{number}.parquet'}`"
            met = " AND ".join(f"g.{key} = {table}.{key}" for key in keys.split(", "))
            self.hr.sql(f"DELETE FROM {here} AS {table} WHERE EXISTS (SELECT 1 FROM {gone} AS g WHERE {met})")
            self.hr.sql(f"INSERT INTO {here} SELECT * FROM parquet.`{home / f'come{number}.parquet'}`")

    def _created(self) -> Iterable[str]:
        return [name for name, found in self.found.items() if found.rows or not found.wrong]

    def _refresh(self) -> None:
        for name in self._created():
            found = self.found[name]
            try:
                result = self.hr.refresh(f"{NAMESPACE}.{name}")
            except HeadraceError as error:
                found.wrong.append(f"{error.code}: {error.message}")
                continue
            found.modes.append(result.mode)
            found.changed += result.rows_inserted + result.rows_deleted
            found.seconds += result.seconds

    def _verify(self, number: int) -> None:
        for name in self._created():
            found = self.found[name]
            try:
                verified = self.hr.verify(f"{NAMESPACE}.{name}")
            except HeadraceError as error:
                found.wrong.append(f"{error.code}: {error.message}")
                continue
            found.rows.append(verified.rows)
            if not verified.ok:
                found.wrong.append(f"round {number}: {verified.missing} missing, {verified.unexpected} unexpected")
                self.tell(f"{name} is wrong: {verified}")


def table(found: dict[str, Followed]) -> str:
    """Return the table, and the sums below it."""
    accepted = sum(not each.refusal for each in found.values())
    exact = sum(bool(each.rows) and not each.wrong for each in found.values())
    moving = sum(bool(each.changed) and max(each.rows, default=0) > 0 for each in found.values())
    lines = [HEAD, *(each.line(name) for name, each in found.items())]
    return "\n".join(
        (*lines, "", f"{accepted} of {len(found)} accepted, {exact} exact, {moving} with rows that change")
    )
