"""Loads seeds: nothing is written where the rows are there already, and never in two steps."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal

from dbt.adapters.headrace.stream_tables import Outcome

from headrace.api.facade import Headrace
from headrace.names import quote
from headrace.spark.errors import translated

IN_MEMORY = 10_000
"""Rows that are compared here; more of them are compared by Spark, which takes two seconds to begin with."""


def load(
    hr: Headrace, name: str, rows: Sequence[Sequence[object]], types: Mapping[str, str], *, exists: bool, anew: bool
) -> Outcome:
    """Make a table hold the rows of a seed.

    Stream tables that read it see one change, from the old rows to the new ones, or none.

    Args:
        hr: The project.
        name: The table, as Spark SQL writes it.
        rows: The rows.
        types: The columns with their types.
        exists: Whether there is such a table.
        anew: Make the table anew, whatever it holds.
    """
    source = quote(f"__dbt_seed_{name.replace('`', '').replace('.', '__')}")
    texts = [tuple(_text(value) for value in row) for row in rows]
    columns = ", ".join(f"{quote(column)} STRING" for column in types)
    casts = ", ".join(f"CAST({quote(column)} AS {kind}) AS {quote(column)}" for column, kind in types.items())
    count = len(texts)
    with translated():
        hr.spark.createDataFrame(texts, columns).createOrReplaceTempView(f"{source[1:-1]}_text")
        hr.spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW {source} AS SELECT {casts} FROM {source[:-1]}_text`")
        try:
            if not exists:
                hr.sql(f"CREATE TABLE {name} USING iceberg AS SELECT * FROM {source}")
                return Outcome(f"CREATED {count}", count)
            if anew or not _same_columns(hr, name, source):
                hr.sql(f"CREATE OR REPLACE TABLE {name} USING iceberg AS SELECT * FROM {source}")
                return Outcome(f"REPLACED {count}", count)
            if _same_rows(hr, name, source, count):
                return Outcome(f"UNCHANGED {count}", 0)
            hr.sql(f"INSERT OVERWRITE {name} SELECT * FROM {source}")
            return Outcome(f"OVERWRITTEN {count}", count)
        finally:
            for view in (source, f"{source[:-1]}_text`"):
                hr.spark.sql(f"DROP VIEW IF EXISTS {view}")


def _same_columns(hr: Headrace, name: str, source: str) -> bool:
    def columns(table: str) -> list[tuple[str, str]]:
        return [(f.name, f.dataType.simpleString()) for f in hr.spark.table(table).schema.fields]

    return columns(name) == columns(source)


def _same_rows(hr: Headrace, name: str, source: str, count: int) -> bool:
    if count <= IN_MEMORY:
        return _rows(hr, name) == _rows(hr, source)

    def without(one: str, other: str) -> str:
        return f"(SELECT * FROM {one} EXCEPT ALL SELECT * FROM {other})"

    query = f"SELECT * FROM ({without(name, source)} UNION ALL {without(source, name)}) LIMIT 1"
    return not hr.spark.sql(query).collect()


def _rows(hr: Headrace, table: str) -> Counter[str]:
    return Counter(repr(tuple(row)) for row in hr.spark.table(table).limit(IN_MEMORY + 1).collect())


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    return str(value)
