"""TPC-DS' queries in Spark's dialect, with parameters that a small scale has; their shapes stay as they are.

A constant that a column is compared with and does not have is replaced by the value that most of the table's rows have;
where that leaves a query without rows, `PARAMETERS` says what else is replaced.
"""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import sqlglot
from sqlglot import exp

from bench.suites.tpcds_parameters import PARAMETERS


def texts(folder: Path) -> dict[str, str]:
    """Return the queries by name, `q1` to `q99`."""
    database = duckdb.connect()
    values = Values(database, folder)
    queries: dict[str, str] = json.loads((folder / "queries.json").read_text())
    return {name: _spark(_adapted(text, PARAMETERS.get(name, ()), values)) for name, text in queries.items()}


class Values:
    """The values of columns, most frequent ones first.

    Args:
        database: Reads the tables.
        folder: Where these are.
    """

    def __init__(self, database: duckdb.DuckDBPyConnection, folder: Path) -> None:
        self.database = database
        self.tables: dict[str, Path] = {}
        for home in sorted(each for each in folder.iterdir() if each.is_dir()):
            for name, *_ in database.execute(f"DESCRIBE FROM '{home}/first.parquet'").fetchall():
                self.tables.setdefault(name, home / "first.parquet")
        self._found: dict[str, list[str]] = {}

    def of(self, column: str) -> list[str]:
        """Return the values of a column as texts; nothing where no table has it."""
        if column not in self.tables:
            return []
        if column not in self._found:
            rows = self.database.execute(
                f"SELECT {column}::VARCHAR, count(*) FROM '{self.tables[column]}' WHERE {column} IS NOT NULL "
                "GROUP BY ALL ORDER BY 2 DESC, 1"
            )
            self._found[column] = [value for value, _ in rows.fetchall()]
        return self._found[column]


def _adapted(text: str, replaced: tuple[tuple[str, str], ...], values: Values) -> exp.Expression:
    text = sqlglot.transpile(text, read="duckdb", write="duckdb")[0]
    for old, new in replaced:
        assert old in text, f"{old} is not in {text}"
        text = text.replace(old, new)
    tree = sqlglot.parse_one(text, read="duckdb")
    for node in list(tree.find_all(exp.EQ, exp.In)):
        constants = node.expressions if isinstance(node, exp.In) else [node.expression]
        if isinstance(node.this, exp.Column):
            _replace([each for each in constants if isinstance(each, exp.Literal)], values.of(node.this.name))
    return tree


def _replace(constants: list[exp.Literal], known: list[str]) -> None:
    """Put values that a column has in the place of those that it has not."""
    missing = [each for each in constants if known and each.this not in known]
    free = [value for value in known if value not in {each.this for each in constants}]
    for constant, value in zip(missing, free, strict=False):
        constant.replace(exp.Literal(this=value, is_string=constant.is_string))


def _spark(tree: exp.Expression) -> str:
    return _named(tree).sql("spark")


def _named(tree: exp.Expression) -> exp.Expression:
    """Return a query whose columns have names, as those of a table must."""
    select = tree.find(exp.Select) if not isinstance(tree, exp.Select) else tree
    assert isinstance(select, exp.Select)
    for number, item in enumerate(select.expressions, 1):
        if isinstance(item, exp.Paren) and isinstance(item.this, exp.Column):
            item.replace(item.this)
        elif not isinstance(item, exp.Alias | exp.Column | exp.Star):
            item.replace(exp.alias_(item.copy(), f"column_{number}"))
    return tree
