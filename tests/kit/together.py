"""Many queries over the same large tables in DuckDB, changed by statements and followed together."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from headrace.algebra.schema import Column
from headrace.names import WEIGHT, quote
from kit.case import Case, Row, Table
from kit.duck import DuckExecutor, translated
from kit.maintained import Maintained, table_name


class Together:
    """Queries maintained over shared tables.

    Args:
        columns: The tables' columns.
        queries: The queries, by a name that is no table's.
        folder: Holds `<table>.parquet` for each table; None for empty tables.
    """

    def __init__(
        self, columns: Mapping[str, Sequence[Column]], queries: Mapping[str, str], folder: Path | None = None
    ) -> None:
        self.duck = DuckExecutor()
        # tables are large here
        self.duck.connection.execute("RESET disabled_optimizers")
        self.tables = tuple(Table(name, tuple(each)) for name, each in columns.items())
        for table in self.tables:
            self.duck.define(table.name, table.columns, ())
            if folder is not None:
                self._run(f"INSERT INTO {table.name} SELECT * FROM '{folder / table.name}.parquet'")
        self.views = {name: self._maintained(name, query) for name, query in queries.items()}

    def _run(self, sql: str) -> list[Row]:
        return self.duck.connection.execute(sql).fetchall()

    def _maintained(self, name: str, query: str) -> Maintained:
        self._run(f"CREATE SCHEMA {name}")
        self._enter(name)
        return Maintained(self.duck, Case(query, self.tables), companion_rows=1_000_000, defined=True)

    def _enter(self, schema: str) -> None:
        """What is made belongs to one query; sources are found behind it."""
        self._run(f"SET search_path = '{schema},main'")

    def pass_(self, statements: Iterable[str]) -> dict[str, Counter[Row]]:
        """Let statements happen as one window, refresh all, check everything.

        Args:
            statements: INSERT INTO, UPDATE and DELETE FROM.

        Returns:
            The change of each result.
        """
        self._run("SET search_path = 'main'")
        done = [(_target(sql), sql) for sql in statements]
        targets = dict.fromkeys(table for table, _ in done)
        for table in targets:
            self._run(f"CREATE OR REPLACE TABLE {table}__before AS FROM {table}")
        for _, sql in done:
            self._run(translated(sql))
        changed = frozenset(table_name(table) for table in targets if self._moved(table))
        found = {}
        for name, view in self.views.items():
            self._enter(name)
            try:
                found[name] = view.follow(changed)
            except Exception as error:
                error.add_note(f"in {name}")
                raise
        return found

    def _moved(self, table: str) -> bool:
        """Take down the change of a table, and two rows more, which come and go within it."""
        before, weight = f"{table}__before", quote(WEIGHT).replace("`", '"')
        noise = f"(FROM {before} LIMIT 2)"
        self._run(
            f"CREATE OR REPLACE TABLE {table}__change AS "
            f"SELECT *, 1::BIGINT AS {weight} FROM ((FROM {table} EXCEPT ALL FROM {before}) UNION ALL {noise}) "
            f"UNION ALL SELECT *, -1 FROM ((FROM {before} EXCEPT ALL FROM {table}) UNION ALL {noise})"
        )
        return self._run(f"SELECT count(*) > 4 FROM {table}__change")[0][0] is True


def _target(sql: str) -> str:
    found = re.match(r"(?:INSERT INTO|UPDATE|DELETE FROM) (\w+)", sql)
    assert found is not None, sql
    return found.group(1)
