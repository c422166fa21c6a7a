"""Short histories of the tables that queries of `kit.query_kinds` read."""

from __future__ import annotations

from random import Random

from kit.case import Case, Row, Table, Weighted, Window
from kit.query_kinds import TABLES, Query, by_duckdb, compiled

_FEW = (0, 1, 1, 2, 2, 3, 4, 5, None)
_TEXTS = ("x", "y", "xa", "xb", None)
_DAYS = ("2000-01-01", "2000-01-02", "2000-02-10", "2006-10-01", "2007-08-01", None)
_TIMES = ("2000-01-01 00:00:00", "2000-01-01 00:05:00", "2000-01-01 02:30:00", "2006-10-01 09:59:00", None)
_VALUES: dict[str, tuple[object, ...]] = {
    "id": tuple(range(1, 8)),
    "s": _TEXTS,
    "dept": _TEXTS,
    "salary": (500, 1000, 1500, None),
    "hired": _DAYS,
    "x": (0.5, 1.0, 1.0, 2.25, float("nan"), None),
    "y": (0.5, 1.0, 2.5, None),
    "price": ("0.10", "1.50", "2.00", "12.25", None),
    "rate": ("0.100", "0.250", "1.500", None),
    "big": ("0.1000000001", "12345678.5", None),
    "day": _DAYS,
    "moment": _TIMES,
    "local": _TIMES,
    "text": _DAYS,
    "numbers": ("[1, 2]", "[2]", "[]", "[3, 1, 2]", None),
    "tags": ("[a]", "[a, b]", None),
    "pair": ("{'x': 1, 'y': x}", "{'x': 2, 'y': y}", None),
    "props": ("{k=1}", "{k=2, z=3}", None),
    "doc": ('{"a": 1, "b": [2]}', '{"a": 2, "x": 5}', None),
    "p": (True, False, None),
    "q": (True, False, None),
    "product": ("x", "y"),
    "year": (2000, 2001, 2002),
    "quarter": ("q1", "q2", "q3", None),
}


def _row(table: str, random: Random) -> Row:
    row = {column.name: random.choice(_VALUES.get(column.name, _FEW)) for column in TABLES[table]}
    if table == "emp":  # nobody is above oneself, not through others either
        row["boss"] = random.choice((*range(1, int(str(row["id"]))), None))
    return tuple(row.values())


def history(query: Query, seed: int, windows: int = 2) -> Case:
    """A query's tables with a few rows, which come and go; none is ever empty.

    Over nothing DuckDB has a grand total in GROUPING SETS, and Spark has none.
    """
    random = Random(f"{query.text} {seed}")
    view = compiled(query.text, by_duckdb(query))
    read = sorted(name.table for name in view.sources if name.table in TABLES)
    first = {table: [_row(table, random) for _ in range(random.choice((3, 6)))] for table in read}
    tables = tuple(Table(table, TABLES[table], tuple(rows)) for table, rows in first.items())
    return Case(query.text, tables, tuple(_window(first, random) for _ in range(windows if read else 0)))


def _window(contents: dict[str, list[Row]], random: Random) -> Window:
    moved = random.sample(sorted(contents), random.randrange(1, len(contents) + 1))
    return {table: tuple(_changes(table, contents[table], random)) for table in moved}


def _changes(table: str, present: list[Row], random: Random) -> list[Weighted]:
    found: list[Weighted] = []
    for _ in range(random.randrange(1, 4)):
        if len(present) > 2 and random.random() < 0.5:
            gone = random.choice(present)
            present.remove(gone)
            found.append((-1, gone))
        if random.random() < 0.7:
            present.append(_row(table, random))
            found.append((1, present[-1]))
    return found
