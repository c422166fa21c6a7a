"""Plays a suite on DuckDB, each query by itself: every change that the theory derives, against recomputing it.

DuckDB's `avg` of decimals is a float, and so is a quotient of them: averages are rounded, and a query that adds up
quotients (q4) is refused, as floats are.
"""

from __future__ import annotations

import time
from pathlib import Path

import sqlglot
from hypothesis.errors import UnsatisfiedAssumption
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.maintained import Maintained, table_name
from sqlglot import exp

from bench.suites.followed import Followed, Tell
from bench.suites.suite import Suite
from headrace.names import WEIGHT
from headrace.results.refresh_results import Mode


def play(suite: Suite, rounds: int, tell: Tell) -> dict[str, Followed]:
    """Follow queries through rounds of changes; return what became of each."""
    executor = DuckExecutor()
    executor.connection.execute("SET disabled_optimizers = ''")
    found: dict[str, Followed] = {}
    for name, text in suite.queries.items():
        found[name] = Followed()
        try:
            _follow(executor, suite, text, rounds, found[name])
        except UnsatisfiedAssumption:  # by `Maintained`, of what is rightly refused
            found[name].refusal = "not maintained"
        except Exception as error:  # a table is wanted of all of them
            found[name].wrong.append(f"{type(error).__name__}: {' '.join(str(error).split())}")
        tell(found[name].line(name), found)
    return found


def _follow(executor: DuckExecutor, suite: Suite, text: str, rounds: int, found: Followed) -> None:
    database, folder = executor.connection, suite.folder
    read = suite.read(text)
    for table in read:
        database.execute(f"CREATE OR REPLACE TABLE {table} AS FROM '{folder / table / 'first.parquet'}'")
    tables = tuple(Table(table, executor.describe(f"SELECT * FROM {table}")) for table in read)
    start = time.process_time()
    view = _Played(executor, Case(_rounded(text), tables), defined=True)
    found.compiled = time.process_time() - start
    found.rows.append(view.state.total())
    for number in range(1, rounds + 1):
        for table in read:
            _change(executor, folder / table, table, suite.keys[table], number)
        start = time.process_time()
        moved = view.follow(frozenset(map(table_name, read)))
        found.seconds += time.process_time() - start
        found.modes.append(Mode.DIFFERENTIAL if moved else Mode.NO_CHANGE)
        found.changed += sum(map(abs, moved.values()))
        found.rows.append(view.state.total())


def _rounded(text: str) -> str:
    """Return a query with its averages rounded."""
    tree = sqlglot.parse_one(text, read="spark")
    for node in list(tree.find_all(exp.Avg)):
        if not isinstance(node.parent, exp.Window | exp.Filter):
            node.replace(exp.cast(node.copy(), "DECIMAL(18, 6)"))
    return tree.sql("spark")


class _Played(Maintained):
    """One query; what is refused is told instead of being taken for an unlucky random case."""

    def _load(self) -> None:
        assert not self.view.refusals, "; ".join(each.message for each in self.view.refusals)
        super()._load()


def _change(executor: DuckExecutor, home: Path, table: str, keys: tuple[str, ...], number: int) -> None:
    """Let a round of changes happen to a table."""
    database, gone, come = executor.connection, home / f"gone{number}.parquet", home / f"come{number}.parquet"
    met = " AND ".join(f"g.{key} = t.{key}" for key in keys)
    leaving = f"SELECT t.* FROM {table} AS t WHERE EXISTS (FROM '{gone}' AS g WHERE {met})"
    database.execute(f"CREATE OR REPLACE TABLE {table}__before AS FROM {table}")
    database.execute(
        f"CREATE OR REPLACE TABLE {table}__change AS SELECT *, -1::BIGINT AS {WEIGHT} FROM ({leaving}) "
        f"UNION ALL SELECT *, 1::BIGINT FROM '{come}'"
    )
    database.execute(f"DELETE FROM {table} AS t WHERE EXISTS (FROM '{gone}' AS g WHERE {met})")
    database.execute(f"INSERT INTO {table} FROM '{come}'")
