"""Scalars stay the text the user wrote, whatever is done to them, and know what was seen when they were read."""

from __future__ import annotations

import pytest
from kit.scalars import scalar

from headrace.algebra.facts import Call, Constant, Equality, Form, Named, Other, Type
from headrace.algebra.scalar import (
    FALSE,
    NULL,
    Scalar,
    all_of,
    any_of,
    as_column,
    call_of,
    called_with_column,
    cast,
    column,
    compose,
    conjuncts,
    disjuncts,
    equals,
    equated,
    has_word,
    literal,
    pinned,
    replace_columns,
    substitute,
    text_literal,
    uses,
)


@pytest.mark.parametrize(
    ("sql", "parts"),
    [
        ("`a` AND `b`", ["`a`", "`b`"]),
        ("((`a` and `b`)) AND `c`", ["`a`", "`b`", "`c`"]),
        ("f(start => `a`, end => `b` AND `c`) > 3 AND `d`", ["f(start => `a`, end => `b` AND `c`) > 3", "`d`"]),
        ("f(between => `a`) AND `b` AND `c`", ["f(between => `a`)", "`b`", "`c`"]),
        ("`a` OR `b` AND `c`", ["`a` OR `b` AND `c`"]),
        ("`a` BETWEEN 1 AND 2 AND `b`", ["`a` BETWEEN 1 AND 2", "`b`"]),
        ("case when `a` and `b` then 1 end = 1 AND NOT `c`", ["case when `a` and `b` then 1 end = 1", "NOT `c`"]),
        ("`a` = 'x and y' AND `b` = \"and\"", ["`a` = 'x and y'", '`b` = "and"']),
        ("`a` = 'it\\'s' AND `b`", ["`a` = 'it\\'s'", "`b`"]),
        ("`x and y` AND `a`", ["`x and y`", "`a`"]),
        ("exists(`a`, v -> v and true) AND `b`", ["exists(`a`, v -> v and true)", "`b`"]),
        ("`a` /* and */ AND `b`", ["`a`", "`b`"]),
        ("(`a` OR `b`) AND `c`", ["`a` OR `b`", "`c`"]),
        ("CASE WHEN `a`.end THEN `b` AND `c` ELSE true END", ["CASE WHEN `a`.end THEN `b` AND `c` ELSE true END"]),
        ("`a`.case = 1 AND `b`.between AND `c`.or", ["`a`.case = 1", "`b`.between", "`c`.or"]),
    ],
)
def test_conjuncts(sql: str, parts: list[str]) -> None:
    found = conjuncts(scalar(sql))
    assert [part.sql for part in found] == parts
    assert all(column(name).sql in part.sql for part in found for name in part.columns)
    assert frozenset().union(*(part.columns for part in found)) == scalar(sql).columns


def test_conjunctions_can_be_split_again() -> None:
    parts = (scalar("`a` OR `b`"), scalar("`c` = 1"))
    whole = all_of(parts)
    assert whole is not None
    assert whole.sql == "(`a` OR `b`) AND `c` = 1"
    assert conjuncts(whole) == parts
    assert all_of(()) is None
    assert any_of(()) == FALSE
    assert any_of(parts).sql == "(`a` OR `b`) OR (`c` = 1)"


def test_disjuncts() -> None:
    assert disjuncts(scalar("((a = 1 AND b) OR c BETWEEN 1 AND 2)")) == (
        scalar("(a = 1 AND b)"),
        scalar("c BETWEEN 1 AND 2"),
    )
    assert disjuncts(scalar("a AND (b OR c)")) == (scalar("a AND (b OR c)"),)


def test_columns_are_replaced_where_they_are_columns() -> None:
    text = scalar("`a.b` + `s`.`a.b` + 'x`a.b`' + `a.b`(1) + `a.b`")
    replaced = substitute(text, {"a.b": scalar("p - 1"), "z": literal(0)})
    assert replaced.sql == "(`p` - 1) + `s`.`a.b` + 'x`a.b`' + `a.b`(1) + (`p` - 1)"
    assert replaced.columns == {"p", "s"}
    assert uses(text, "a.b") == 2
    assert replace_columns(scalar("transform(a, x -> x + b)"), {"x": "no", "b": "t1.`b`"}) == (
        "transform(`a`, x -> x + t1.`b`)"
    )


def test_replacing_is_simultaneous() -> None:
    swapped = substitute(scalar("a - b"), {"a": column("b"), "b": column("a")})
    assert swapped.sql == "`b` - `a`"


def test_names_with_quotes_survive() -> None:
    odd = column("a`b")
    assert odd.sql == "`a``b`"
    assert as_column(odd) == "a`b"
    assert substitute(odd, {"a`b": literal(1)}).sql == "1"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("a", "`a`"),
        ("a.b.c", "`a`.b.c"),
        ("12.5", "12.5"),
        ("'x'", "'x'"),
        ("f(a, 1)", "f(`a`, 1)"),
        ("f(1) + g(2)", "(f(1) + g(2))"),
        ("-1", "(-1)"),
        ("(1)", "(1)"),
        ("a IS NULL", "(`a` IS NULL)"),
        ("DATE '2024-01-01'", "(DATE '2024-01-01')"),
        ("arr[1]", "(`arr`[1])"),
        # NOT binds weaker than what may come to stand behind it
        ("NOT(a)", "(NOT(`a`))"),
    ],
)
def test_operands_are_bracketed_where_needed(sql: str, expected: str) -> None:
    assert compose("{x} IS NULL", x=scalar(sql)).sql == f"{expected} IS NULL"
    assert substitute(scalar("z IS NULL"), {"z": scalar(sql)}).sql == f"{expected} IS NULL"


def test_what_one_part_is_the_whole_is() -> None:
    sometimes = Scalar(call_of("rand").words, deterministic=False)
    assert not compose("{a} + {b}", a=sometimes, b=column("x")).deterministic
    assert compose("{a} + {b}", a=scalar("1 + y"), b=column("x")) == scalar("(1 + y) + x")


A, B = Named("a"), Named("b")


@pytest.mark.parametrize(
    ("sql", "form"),
    [
        ("a", A),
        ("1", Constant(Type.INTEGER)),
        ("'x'", Constant(Type.TEXT)),
        ("DATE '2024-01-01'", Constant(Type.DATE)),
        ("9999999999", Constant(Type.UNKNOWN)),
        ("1L", Constant(Type.UNKNOWN)),
        ("a = b", Equality(A, B, null_safe=False)),
        ("(a <=> b)", Equality(A, B, null_safe=True)),
        ("a == 7", Equality(A, Constant(Type.INTEGER), null_safe=False)),
        ("date '2024-01-01' = a", Equality(Constant(Type.DATE), A, null_safe=False)),
        ("sum(a)", Call("sum", (A,))),
        ("struct(a, 'y', b + 1)", Call("struct", (A, Constant(Type.TEXT), Other()))),
        ("f()", Call("f", ())),
        # nothing is claimed that is not so
        ("NOT a = b", Other()),
        ("a = b OR a = 1", Other()),
        ("a = b IS NULL", Other()),
        ("a.x = b", Other()),
        ("a = b + 1", Other()),
        ("a = b = c", Other()),
        ("a = -1", Other()),
        ("a != b", Other()),
        ("count(a) FILTER (WHERE b)", Other()),
        ("CASE WHEN a = b THEN 1 END", Other()),
    ],
)
def test_forms(sql: str, form: Form) -> None:
    assert scalar(sql).form == form


def _seen(sql: str) -> tuple[int, bool, bool, bool, bool]:
    facts = scalar(sql).facts
    return facts.patterns, facts.disjunctive, facts.negative, facts.equates, facts.calls


def test_what_occurs_in_a_scalar() -> None:
    assert _seen("(a LIKE 'x%' OR NOT b rlike 'y') AND lower(c) = 'or not like'") == (2, True, True, True, True)
    assert _seen("`or not` <= 'a = b like f(x)' AND `like` <> b") == (0, False, False, False, False)
    assert has_word(scalar("from_json(a, 'MAP<STRING, INT>')"), "map")
    assert not has_word(scalar("upper(a)"), "map")


def test_facts_follow_what_is_done_to_a_scalar() -> None:
    condition = scalar("a = b AND c = 1 AND d")
    moved = substitute(condition, {"a": column("x"), "c": column("y"), "d": scalar("p = q AND (r OR s)")})
    assert [part.sql for part in conjuncts(moved)] == ["`x` = `b`", "`y` = 1", "`p` = `q`", "`r` OR `s`"]
    assert [equated(part) for part in conjuncts(moved)] == [("x", "b", False), None, ("p", "q", False), None]
    assert [pinned(part) for part in conjuncts(moved)] == [None, "y", None, None]
    assert equated(substitute(scalar("a = b"), {"a": scalar("x + 1")})) is None
    assert pinned(substitute(scalar("a = b"), {"a": text_literal("it's")})) == "b"


def test_what_is_built_is_what_would_be_read() -> None:
    a, b = column("a"), column("b")
    built = [
        (equals(a, b, null_safe=True), "a <=> b"),
        (call_of("f", a, literal(1)), "f(a, 1)"),
        (cast(NULL, "decimal(10,2)"), "CAST(NULL AS decimal(10,2))"),
        (text_literal("it's"), r"'it\'s'"),
        (compose("CASE WHEN {a} > 0 THEN {b} ELSE f({a}) END", a=a, b=b), "CASE WHEN a > 0 THEN b ELSE f(a) END"),
        (compose("NOT ({a} AND {b})", a=a, b=any_of((a, b))), "NOT (a AND (a OR b))"),
    ]
    for made, text in built:
        assert made == scalar(text)
        assert made.form == scalar(text).form
        assert _seen(made.sql) == _seen(text)
        assert conjuncts(made) == conjuncts(scalar(text))
    assert called_with_column(call_of("sum", a), "sum") == "a"
    assert called_with_column(scalar("SUM(a)"), "sum") == "a"
    assert called_with_column(scalar("sum(a + 1)"), "sum") is None
