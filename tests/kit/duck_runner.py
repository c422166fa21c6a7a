"""DuckDB behind the protocol by which the engine runs SQL, so that iterations run without a JVM."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from headrace.algebra.schema import Column
from headrace.semantics import Semantics
from kit.duck import DuckExecutor, translated


class Uncounted:
    """DuckDB has no jobs."""

    jobs: int | None = None


class DuckRunner:
    """See `headrace.ports.Runner`; temporary names are tables and views of one in-memory database."""

    def __init__(self, executor: DuckExecutor) -> None:
        self.executor = executor
        self.kept: dict[str, str] = {}

    @property
    def semantics(self) -> Semantics:
        return Semantics()

    def under(self, semantics: Semantics) -> DuckRunner:
        return self

    def describe(self, sql: str) -> tuple[Column, ...]:
        return self.executor.describe(sql)

    def run(self, sql: str) -> list[Any]:
        return self.executor.rows(sql)

    def materialize(self, name: str, sql: str, aggregates: Mapping[str, str] | None = None) -> dict[str, Any]:
        self.executor.keep(name, sql)
        self.kept[name] = "TABLE"
        if not aggregates:
            return {}
        found = self.executor.rows(f"SELECT {', '.join(aggregates.values())} FROM `{name}`")
        return dict(zip(aggregates, found[0], strict=True))

    def literal_count(self, name: str) -> int | None:
        return None

    def view(self, name: str, sql: str) -> None:
        self.executor.connection.execute(f'CREATE OR REPLACE VIEW "{name}" AS {translated(sql)}')
        self.kept[name] = "VIEW"

    def release(self, name: str) -> None:
        if (kind := self.kept.pop(name, None)) is not None:
            self.executor.connection.execute(f'DROP {kind} "{name}"')

    @contextmanager
    def jobs(self, label: str) -> Iterator[Uncounted]:
        yield Uncounted()

    tasks_beside: int | None = None

    def cancel_all(self, label: str) -> None:
        return None
