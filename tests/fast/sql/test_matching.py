"""Grouping expressions are found where they are operands, and nowhere else."""

from __future__ import annotations

import pytest
from fast.sql.reading_cases import resolve, schema

from headrace.algebra.relations import Aggregate, Project
from headrace.sql.reader.reader import read


def over(expression: str, key: str) -> str | None:
    """The expression over the aggregate's columns, or None when it was not understood."""
    found = read(f"SELECT {expression} AS x FROM t GROUP BY {key}", resolve=resolve, schema=schema)
    if found.tree is None:
        return None
    assert isinstance(found.tree, Project)
    assert isinstance(found.tree.input, Aggregate)
    return found.tree.items[0][1].sql


@pytest.mark.parametrize(
    ("key", "expression", "expected"),
    [
        ("a", "a + 1", "`a` + 1"),
        ("a + 1", "a+1", "`key_1`"),
        ("a + 1", "(A + 1) * 2", "(`key_1`) * 2"),
        ("a + 1", "a + 1 + 2", "`key_1` + 2"),
        ("a + 1", "a + 1 > 2", "`key_1` > 2"),
        ("a + 1", "CASE WHEN a + 1 = 2 THEN a + 1 ELSE 0 END", "CASE WHEN `key_1` = 2 THEN `key_1` ELSE 0 END"),
        ("a + 1", "5 BETWEEN a + 1 AND 2 * (a + 1)", "5 BETWEEN `key_1` AND 2 * (`key_1`)"),
        ("a % 10", "a % 10 + 1", "`key_1` + 1"),
        ("a % 10", "- (a % 10)", "- (`key_1`)"),
        ("-a", "1 - -a", "1 - `key_1`"),
        ("upper(a)", "concat(upper(a), UPPER( t.a ))", "concat(`key_1`, `key_1`)"),
        ("upper(a)", "upper(a)[0].x::int", "`key_1`[0].x::int"),
        ("a IS NULL", "NOT a IS NULL", "NOT `key_1`"),
        ("a = 1", "a = 1 AND true", "`key_1` AND true"),
        ("CASE WHEN a > 1 THEN 2 END", "CASE WHEN a > 1 THEN 2 END + 1", "`key_1` + 1"),
        ("a, a + 1", "a + 1", "`key_2`"),
        ("a + 1", "1 << a + 1 >> 2", "1 << `key_1` >> 2"),
        ("a, b", "transform(array(a), x -> x + b)", "transform(array(`a`), x -> x + `b`)"),
    ],
)
def test_found(key: str, expression: str, expected: str) -> None:
    assert over(expression, key) == expected


@pytest.mark.parametrize(
    ("key", "expression"),
    [
        ("a + 1", "a + 1 * 2"),
        ("a + 1", "2 * a + 1"),
        ("a + 1", "2 + a + 1"),
        ("a + 1", "2 - a + 1"),
        ("a + 1", "-a + 1"),
        ("a + 1", "a + 1::string"),
        ("a + 1", "a + 11"),
        ("a + 1", "1 + a"),
        ("-a", "b -a"),
        ("a OR b", "a OR b AND c"),
        ("(a)", "b"),
        ("upper(a)", "upper(b)"),
        ("a IS NULL", "b = a IS NULL"),
        ("a < 1", "a < 1 << 2"),
        ("a & 1", "2 << a & 1"),
        ("a & 1", "2 >>> a & 1"),
    ],
)
def test_not_found(key: str, expression: str) -> None:
    assert over(expression, key) is None
