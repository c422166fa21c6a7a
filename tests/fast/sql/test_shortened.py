"""Long lists of literals, cut short; everything else stays as it is."""

from __future__ import annotations

import pytest

from headrace.sql.shortened_literals import LONG, shortened

NUMBERS = ", ".join(map(str, range(10_000)))
TEXTS = ",\n".join(f"'it''s {i} \\' )'" for i in range(3_000))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (f"SELECT k IN ({NUMBERS}) AS x FROM t", "SELECT k IN (0) AS x FROM t"),
        (f"SELECT k not in( {TEXTS} )", "SELECT k not IN ('it''s 0 \\' )')"),
        (f"a IN ({NUMBERS}, 'x') OR b IN (1, 2)", "a IN (0, 'x') OR b IN (1, 2)"),
    ],
)
def test_lists_are_cut(sql: str, expected: str) -> None:
    assert shortened(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT 'x IN ({NUMBERS})'",
        f"SELECT \"x IN ({NUMBERS})\", r'\\' AS `a IN (1)`",
        f"SELECT `x IN ({NUMBERS})`",
        f"SELECT 1 -- x IN ({NUMBERS})",
        f"SELECT /* x IN ({NUMBERS}) */ 1",
        f"SELECT k IN (a, {NUMBERS}), array({NUMBERS})",
        f"SELECT k IN ({NUMBERS}, 1 + 1)",
    ],
)
def test_everything_else_stays(sql: str) -> None:
    assert len(sql) > LONG
    assert shortened(sql) == sql


def test_short_texts_are_not_looked_at() -> None:
    sql = f"x IN ({', '.join(map(str, range(100)))})"
    assert shortened(sql) is sql
