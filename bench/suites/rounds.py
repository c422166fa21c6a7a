"""Writes a table's first rows and what goes and comes in each round; needs nothing but DuckDB.

In each round a table loses a part of its rows, and those of the round before come back: some columns NULL, some amounts
larger.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import duckdb

PARTS = 40
"""One of so many parts of each table goes in a round."""


def split(
    database: duckdb.DuckDBPyConnection,
    table: str,
    keys: tuple[str, ...],
    folder: Path,
    rounds: int,
    *,
    same: Collection[str] = (),
) -> None:
    """Write `first.parquet`, and `gone1.parquet` (keys) and `come1.parquet` (rows) and so on, of a table.

    Args:
        database: Has the table.
        table: Its name.
        keys: The columns that tell its rows apart.
        folder: Gets a folder of the table's name.
        rounds: How many.
        same: Columns that stay as they are.
    """
    (count,) = database.execute(f"SELECT count(*) FROM {table}").fetchall()[0]
    parts = min(PARTS, max(3, count // 2))
    part = f"hash({', '.join(keys)}) % {parts}"
    home = folder / table
    home.mkdir(parents=True, exist_ok=True)
    database.execute(f"COPY (SELECT * FROM {table} WHERE {part} <> 0) TO '{home}/first.parquet'")
    for number in range(1, rounds + 1):
        gone = f"SELECT {', '.join(keys)} FROM {table} WHERE {part} = {number % parts}"
        come = f"SELECT {', '.join(_changed(database, table, keys, number, same))} FROM {table}"
        database.execute(f"COPY ({gone}) TO '{home}/gone{number}.parquet'")
        database.execute(f"COPY ({come} WHERE {part} = {(number - 1) % parts}) TO '{home}/come{number}.parquet'")


def _changed(
    database: duckdb.DuckDBPyConnection, table: str, keys: tuple[str, ...], number: int, same: Collection[str]
) -> list[str]:
    """Return a table's columns, NULL in a few rows, decimals a little larger."""
    out = []
    for name, type_, *_ in database.execute(f"DESCRIBE {table}").fetchall():
        chance = f"hash({', '.join(keys)}, '{name}', {number})"
        value = name
        if type_.startswith("DECIMAL"):
            value = f"(CASE WHEN {chance} % 5 = 1 THEN {name} + {number} ELSE {name} END)::{type_}"
        keeps = name in keys or name in same
        out.append(name if keeps else f"CASE WHEN {chance} % 20 = 0 THEN NULL ELSE {value} END AS {name}")
    return out
