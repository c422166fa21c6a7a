"""Scalars stay the text the user wrote, whatever is done to them."""

from __future__ import annotations

import pytest

from headrace.algebra.scalar import (
    Scalar,
    all_of,
    any_of,
    as_column,
    column,
    compose,
    conjuncts,
    enclose,
    literal,
    substitute,
    uses,
)


def over(sql: str, *columns: str) -> Scalar:
    return Scalar(sql, frozenset(columns))


@pytest.mark.parametrize(
    ("sql", "parts"),
    [
        ("`a` AND `b`", ["`a`", "`b`"]),
        ("((`a` and `b`)) AND `c`", ["`a`", "`b`", "`c`"]),
        ("`a` OR `b` AND `c`", ["`a` OR `b` AND `c`"]),
        ("`a` BETWEEN 1 AND 2 AND `b`", ["`a` BETWEEN 1 AND 2", "`b`"]),
        ("case when `a` and `b` then 1 end = 1 AND NOT `c`", ["case when `a` and `b` then 1 end = 1", "NOT `c`"]),
        ("`a` = 'x and y' AND `b` = \"and\"", ["`a` = 'x and y'", '`b` = "and"']),
        ("`a` = 'it\\'s' AND `b`", ["`a` = 'it\\'s'", "`b`"]),
        ("`x and y` AND `a`", ["`x and y`", "`a`"]),
        ("exists(`a`, v -> v and true) AND `b`", ["exists(`a`, v -> v and true)", "`b`"]),
        ("`a` /* and */ AND `b`", ["`a`", "`b`"]),
        ("(`a` OR `b`) AND `c`", ["`a` OR `b`", "`c`"]),
    ],
)
def test_conjuncts(sql: str, parts: list[str]) -> None:
    whole = over(sql, "a", "b", "c", "x and y")
    found = conjuncts(whole)
    assert [part.sql.replace("/* and */", "").strip() for part in found] == parts
    assert all(name in part.sql for part in found for name in part.columns)


def test_conjunctions_can_be_split_again() -> None:
    parts = (over("`a` OR `b`", "a", "b"), over("`c` = 1", "c"))
    whole = all_of(parts)
    assert whole is not None
    assert whole.sql == "(`a` OR `b`) AND `c` = 1"
    assert conjuncts(whole) == parts
    assert all_of(()) is None
    assert any_of(()).sql == "false"
    assert any_of(parts).sql == "(`a` OR `b`) OR (`c` = 1)"


def test_columns_are_replaced_where_they_are_columns() -> None:
    text = over("`a.b` + `s`.`a.b` + 'x`a.b`' + `a.b`(1) + `a.b`", "a.b", "s")
    replaced = substitute(text, {"a.b": over("`p` - 1", "p"), "z": literal(0)})
    assert replaced.sql == "(`p` - 1) + `s`.`a.b` + 'x`a.b`' + `a.b`(1) + (`p` - 1)"
    assert replaced.columns == {"p", "s"}
    assert uses(text, "a.b") == 2


def test_replacing_is_simultaneous() -> None:
    swapped = substitute(over("`a` - `b`", "a", "b"), {"a": column("b"), "b": column("a")})
    assert swapped.sql == "`b` - `a`"


def test_names_with_quotes_survive() -> None:
    odd = column("a`b")
    assert odd.sql == "`a``b`"
    assert as_column(odd) == "a`b"
    assert substitute(odd, {"a`b": literal(1)}).sql == "1"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("`a`", "`a`"),
        ("12.5", "12.5"),
        ("f(`a`, 1)", "f(`a`, 1)"),
        ("f(1) + g(2)", "(f(1) + g(2))"),
        ("-1", "(-1)"),
        ("(1)", "(1)"),
        ("`a` IS NULL", "(`a` IS NULL)"),
        ("'a' 'b'", "('a' 'b')"),
    ],
)
def test_operands_are_bracketed_where_needed(sql: str, expected: str) -> None:
    assert enclose(sql) == expected


def test_what_one_part_is_the_whole_is() -> None:
    sometimes = Scalar("rand()", deterministic=False)
    assert not compose("{a} + {b}", a=sometimes, b=column("x")).deterministic
    assert compose("{a} + {b}", a=over("1 + `y`", "y"), b=column("x")) == over("(1 + `y`) + `x`", "x", "y")
