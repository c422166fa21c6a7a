"""Statements that give a stored table other columns: in order, none of them twice, nothing lost that stays."""

from __future__ import annotations

import re

import pytest

from headrace.algebra.schema import Column
from headrace.deploy.exchanging.column_changes import alterations
from headrace.names import TableName

TABLE = TableName("staging", ("a",), "t")


def columns(text: str) -> list[Column]:
    return [Column(name, kind) for name, kind in (each.split(":") for each in text.split())]


def applied(old: str, statements: tuple[str, ...]) -> list[str]:
    """What a table's columns are after statements; a statement that cannot be run fails."""
    now = old.split()
    for sql in statements:
        names = [c.split(":")[0] for c in now]
        words = re.sub(r"^ALTER TABLE \S+ ", "", sql).replace("`", "").split()
        match words:
            case ["RENAME", "COLUMN", one, "TO", new]:
                now[names.index(one)] = f"{new}:{now[names.index(one)].split(':')[1]}"
            case ["ADD", "COLUMN", one, kind, *where]:
                assert one.lower() not in [n.lower() for n in names]
                now.insert(_place(names, where), f"{one}:{kind}")
            case ["ALTER", "COLUMN", one, *where]:
                moved = now.pop(names.index(one))
                now.insert(_place([c.split(":")[0] for c in now], where), moved)
            case ["DROP", "COLUMN", one]:
                now.pop(names.index(one))
                assert now, "a table without columns cannot be"
    return now


def _place(names: list[str], where: list[str]) -> int:
    return 0 if where == ["FIRST"] else names.index(where[1]) + 1


@pytest.mark.parametrize(
    ("old", "new", "number"),
    [
        ("a:int b:int", "a:int b:int", 0),
        ("a:int b:int", "a:int b:int c:int", 1),
        ("a:int b:int", "c:int a:int b:int", 1),
        ("a:int b:int c:int", "a:int c:int", 1),
        ("a:int", "a:bigint", 3),
        ("a:int b:int", "b:int a:int", 2),
        ("a:int b:int", "c:int d:int", 4),
        ("a:int", "A:int", 3),
        ("a:int b:string c:int", "c:bigint x:int b:string a:int", None),
    ],
)
def test_columns_become_what_is_wanted(old: str, new: str, number: int | None) -> None:
    statements = alterations(TABLE, columns(old), columns(new))
    assert applied(old, statements) == new.split()
    assert number is None or len(statements) == number
