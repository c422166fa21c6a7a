"""Cases as text.

    table    orders id INT, region STRING, amount DECIMAL(12,2)
    view     SELECT region, sum(amount) AS total FROM orders GROUP BY region
    orders   +1 | 41 | EU | 30      +1 | 42 | EU | 50
    change   orders  -1 | 42 | EU | 50      +1 | 42 | EU | 70
    expect   -1 | EU | 80           +1 | EU | 100

Rows are set apart by two spaces or more; lines that begin with a space go on with the line before; `NULL` is NULL and
`''` the empty string. Several `change` lines are one window; `expect` (or `expect nothing`) refreshes.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal

from headrace.algebra.schema import Column
from kit.case import Case, Row, Table, Weighted, Window


@dataclass(frozen=True)
class Fixture:
    """A case and what each refresh must give.

    Args:
        case: Tables, query and windows.
        expected: The change of the state, window by window.
    """

    case: Case
    expected: tuple[Counter[tuple[str, ...]], ...]


def parse(text: str) -> Fixture:
    """Read a fixture."""
    columns: dict[str, tuple[Column, ...]] = {}
    contents: dict[str, list[Row]] = {}
    windows: list[Window] = []
    expected: list[Counter[tuple[str, ...]]] = []
    pending: dict[str, list[Weighted]] = {}
    view = ""
    for line in re.sub(r"\n[ \t]+", "  ", re.sub(r"(?m)^#.*\n", "", text)).splitlines():
        word, _, rest = line.partition(" ")
        rest = rest.strip()
        if word == "table":
            name, _, declared = rest.partition(" ")
            columns[name] = tuple(_column(each) for each in re.split(r",\s*(?![^(]*\))", declared))
            contents[name] = []
        elif word == "view":
            view = rest
        elif word == "change":
            name, _, rows = rest.partition(" ")
            pending.setdefault(name, []).extend(_weighted(row, columns[name]) for row in _rows(rows))
        elif word == "expect":
            windows.append({name: tuple(rows) for name, rows in pending.items()})
            pending = {}
            expected.append(_expected(rest))
        elif word:
            contents[word] = [row for _, row in (_weighted(row, columns[word]) for row in _rows(rest))]
    tables = tuple(Table(name, columns[name], tuple(contents[name])) for name in columns)
    return Fixture(Case(view, tables, tuple(windows)), tuple(expected))


def _rows(text: str) -> list[list[str]]:
    # a row begins with its sign
    return [[cell.strip() for cell in row.split("|")] for row in re.split(r"\s{2,}(?=[+-]\d)", text.strip())]


def _column(declared: str) -> Column:
    name, _, type_ = declared.strip().partition(" ")
    return Column(name, type_.lower())


def _weighted(cells: list[str], columns: tuple[Column, ...]) -> Weighted:
    return int(cells[0]), tuple(_value(cell, c.type) for cell, c in zip(cells[1:], columns, strict=True))


def _value(cell: str, type_: str) -> object:
    if cell == "NULL":
        return None
    if type_ in ("int", "bigint"):
        return int(cell)
    if type_.startswith("decimal"):
        return Decimal(cell)
    if type_ == "double":
        return float(cell)
    if type_ == "date":
        return datetime.date.fromisoformat(cell)
    return cell == "true" if type_ == "boolean" else cell.replace("''", "")


def _expected(text: str) -> Counter[tuple[str, ...]]:
    result: Counter[tuple[str, ...]] = Counter()
    if text != "nothing":
        for weight, *cells in _rows(text):
            result[tuple(cells)] += int(weight)
    return result


def shown(change: Counter[Row]) -> Counter[tuple[str, ...]]:
    """A change as a fixture writes it."""
    result: Counter[tuple[str, ...]] = Counter()
    for row, weight in change.items():
        result[tuple(_cell(value) for value in row)] += weight
    return result


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, Decimal):
        return f"{value.normalize():f}"
    return str(value).lower() if isinstance(value, bool) else str(value) or "''"
