"""Loads seeds: nothing is written where the rows are there already, and never in two steps."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal

from dbt.adapters.headrace.answers import Answer
from dbt.adapters.headrace.projects import Project
from dbt.adapters.headrace.stream_tables import Outcome

from headrace.names import quote

IN_MEMORY = 10_000
"""Rows that are compared here; more of them are compared by Spark, which takes two seconds to begin with."""


def load(
    project: Project, name: str, rows: Sequence[Sequence[object]], types: Mapping[str, str], *, exists: bool, anew: bool
) -> Outcome:
    """Make a table hold the rows of a seed.

    Stream tables that read it see one change, from the old rows to the new ones, or none.

    Args:
        project: The project.
        name: The table, as Spark SQL writes it.
        rows: The rows.
        types: The columns with their types.
        exists: Whether there is such a table.
        anew: Make the table anew, whatever it holds.
    """
    texts = [tuple(_text(value) for value in row) for row in rows]
    casts = ", ".join(f"CAST({quote(column)} AS {kind}) AS {quote(column)}" for column, kind in types.items())
    count = len(texts)
    with project.local_rows(tuple(types), texts) as given:
        query = f"SELECT {casts} FROM {given}"
        if not exists:
            project.run(f"CREATE TABLE {name} USING iceberg AS {query}")
            return Outcome(f"CREATED {count}", count)
        new, old = project.run(query), project.run(f"SELECT * FROM {name}")
        if anew or _shape(new) != _shape(old):
            project.run(f"CREATE OR REPLACE TABLE {name} USING iceberg AS {query}")
            return Outcome(f"REPLACED {count}", count)
        if _same_rows(project, new, old, f"({query})", name):
            return Outcome(f"UNCHANGED {count}", 0)
        project.run(f"INSERT OVERWRITE {name} {query}")
        return Outcome(f"OVERWRITTEN {count}", count)


def _shape(answer: Answer) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in answer.columns()]


def _same_rows(project: Project, new: Answer, old: Answer, query: str, name: str) -> bool:
    first = old.rows(IN_MEMORY + 1)
    if len(first) <= IN_MEMORY:
        return Counter(map(repr, first)) == Counter(map(repr, new.rows(IN_MEMORY + 1)))

    def without(one: str, other: str) -> str:
        return f"(SELECT * FROM {one} EXCEPT ALL SELECT * FROM {other})"

    return not project.run(f"SELECT * FROM ({without(name, query)} UNION ALL {without(query, name)}) LIMIT 1").rows()


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, dt.datetime):
        return value.isoformat(sep=" ")
    return str(value)
