"""Whatever way a change is applied, the table holds the old rows plus the change."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest
from kit.names import temp_name

from headrace.algebra.schema import Column
from headrace.errors import InternalError, Unsupported
from headrace.lake.apply_change import Change, Method, Target, change_of, measures, plan_apply, run_apply
from headrace.lake.tables import create_table
from headrace.names import WEIGHT, TableName

COLUMNS = (
    Column("k", "int"),
    Column("g", "string"),
    Column("v", "decimal(9,2)"),
    Column("d", "double"),
    Column("m", "map<string,int>"),
    Column("a", "array<struct<x:int,y:double>>"),
    Column("t", "date", nullable=False),
)
VALUES = {
    "k": ["NULL", "1", "2", "3"],
    "g": ["NULL", "'a'", "'it''s'"],
    "v": ["NULL", "1.5", "2"],
    "d": ["NULL", "0.0D", "-0.0D", "double('NaN')"],
    "m": ["NULL", "map()", "map('a', 1, 'b', NULL)", "map('b', NULL, 'a', 1)"],
    "a": ["NULL", "array()", "array(struct(1 AS x, 0.0D AS y))", "array(struct(1 AS x, -0.0D AS y))"],
    "t": ["DATE'2026-01-01'", "DATE'2026-01-02'"],
}


def same_value(text: str) -> str:
    """Maps are equal whatever the order of their entries."""
    return VALUES["m"][2] if text == VALUES["m"][3] else text


def row(rng: random.Random) -> tuple[str, ...]:
    return tuple(rng.choice(VALUES[c.name]) for c in COLUMNS)


def select(rows: list[tuple[tuple[str, ...], int]]) -> str:
    """Rows as literals, which Spark has in its plan: it needs no job for them."""
    names = ", ".join([*(c.name for c in COLUMNS), WEIGHT])
    texts = [f"({', '.join(f'CAST({v} AS {c.type})' for v, c in zip(r, COLUMNS, strict=True))}, {w}L)" for r, w in rows]
    return f"SELECT * FROM VALUES {', '.join(texts)} AS v({names})"


def contents(lake, table: TableName) -> Counter:
    names = [c.name for c in COLUMNS]
    found = lake.rows(f"SELECT {', '.join(names)} FROM {table.sql}")
    return Counter(tuple(repr(sorted(v.items()) if isinstance(v, dict) else v) for v in r) for r in found)


def expected(lake, rows: Counter) -> Counter:
    listed = [(r, n) for r, n in rows.items() if n]
    found = lake.rows(select(listed)) if listed else []
    bag: Counter = Counter()
    for *values, n in found:
        bag[tuple(repr(sorted(v.items()) if isinstance(v, dict) else v) for v in values)] += n
    return bag


def normal(r: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(map(same_value, r))


def filled(lake, table: TableName, rows: Counter, version: int) -> None:
    location = f"{lake.settings.warehouse}/{table.table}"
    lake.runner.run(create_table(table, COLUMNS, location=location, format_version=version))
    columns = ", ".join(c.name for c in COLUMNS)
    source = select([(r, n) for r, n in rows.items()])
    lake.runner.run(
        f"INSERT INTO {table.sql} SELECT {columns} FROM ({source}) LATERAL VIEW explode(sequence(1, {WEIGHT})) x AS y"
    )


def measured(lake, change: Counter) -> Change:
    view = temp_name("change")
    sql = select([(r, w) for r, w in change.items() if w])
    return change_of(view, lake.runner.materialize(view, sql, measures(COLUMNS)), COLUMNS)


@pytest.mark.parametrize(
    ("version", "copies", "known", "seed"),
    [
        pytest.param(version, *of, marks=[pytest.mark.long] if version == 2 and of[1] else [])  # written whole anyway
        for of in ((1, True, 1), (1, False, 2), (3, True, 3), (3, False, 4))
        for version in (2, 3)
    ],
)
def test_bag(lake, fresh: Callable[..., TableName], version: int, copies: int, known: bool, seed: int) -> None:
    rng = random.Random(seed)
    table = fresh("staging")
    rows = Counter()
    while len(rows) < 14:
        rows[normal(row(rng))] = rng.randint(1, copies)
    if apart := copies > 1:
        rows.update((*r[:3], zero, *r[4:]) for r in list(rows)[:5] for zero in VALUES["d"][1:3])
    filled(lake, table, rows, version)
    for _ in range(2):
        change = Counter({r: -rng.randint(1, n) for r, n in rows.items() if n and rng.random() < 0.3})
        change.update({normal(row(rng)): rng.randint(1, copies) for _ in range(3)})
        moved = measured(lake, change)
        target = Target(table, COLUMNS, None, sum(rows.values()) if known else None, apart=apart)
        plan = plan_apply(target, moved)
        assert plan.method is (Method.OVERWRITE if known else Method.DELETE_ROWS)
        meta = run_apply(plan, lake.runner, lambda: lake.meta(table))
        rows.update(change)
        assert contents(lake, table) == expected(lake, rows)
        assert meta.current_snapshot_id == lake.meta(table).current_snapshot_id
        if version == 3:
            assert meta.row_count == sum(rows.values())


@pytest.mark.parametrize("known", [True, False])
def test_key(lake, fresh: Callable[..., TableName], known: bool) -> None:
    rng = random.Random(known)
    table = fresh("staging")
    keys = [("NULL", "NULL"), ("1", "'a'"), ("1", "NULL"), ("NULL", "'a'"), ("2", "'it''s'"), ("3", "'a'")]
    state = {key: (*key, *row(rng)[2:]) for key in keys[:4]}
    filled(lake, table, Counter(state.values()), 3)
    change = Counter({state[keys[0]]: -1, state[keys[1]]: -1})
    change[(*keys[1], "2", "0.0D", "map()", "array()", "DATE'2026-01-02'")] += 1
    change[(*keys[5], *row(rng)[2:])] += 1
    plan = plan_apply(Target(table, COLUMNS, ("k", "g"), 4 if known else None), measured(lake, change))
    assert plan.method is (Method.OVERWRITE if known else Method.DELETE_BY_KEY)
    run_apply(plan, lake.runner, lambda: lake.meta(table))
    rows = Counter(state.values())
    rows.update(change)
    assert contents(lake, table) == expected(lake, rows)


def test_rows_that_all_change_are_replaced_without_a_look(lake, fresh: Callable[..., TableName]) -> None:
    rng = random.Random(7)
    table = fresh("staging")
    keys = [("NULL", "NULL"), ("1", "'a'"), ("1", "NULL")]
    rows = Counter({(*key, *row(rng)[2:]): 1 for key in keys})
    filled(lake, table, rows, 3)
    change = Counter(dict.fromkeys(rows, -1))
    change.update({(*key, *row(rng)[2:]): 1 for key in (*keys[1:], ("2", "'a'"))})
    plan = plan_apply(Target(table, COLUMNS, ("k", "g"), 3), measured(lake, change))
    assert plan.method is Method.OVERWRITE
    assert plan.statements[0].count("staging") == 1, "it is written, not read"
    meta = run_apply(plan, lake.runner, lambda: lake.meta(table))
    rows.update(change)
    assert contents(lake, table) == expected(lake, rows)
    assert meta.row_count == rows.total()


def test_what_is_in_hand_is_written_and_counted(lake, fresh: Callable[..., TableName]) -> None:
    rng = random.Random(8)
    table = fresh("staging")
    old, stays, new = ((*key, *row(rng)[2:]) for key in (("1", "'a'"), ("NULL", "NULL"), ("2", "'a'")))
    filled(lake, table, Counter({old: 1, stays: 1}), 3)
    moved = measured(lake, Counter({old: -1, new: 1}))
    target = Target(table, COLUMNS, ("k", "g"), 2)
    plan = plan_apply(target, replace(moved, contents=select([(new, 1), (stays, 1)])))
    assert plan.method is Method.OVERWRITE
    assert plan.statements[0].count("staging") == 1, "it is written, not read"
    run_apply(plan, lake.runner, lambda: lake.meta(table))
    assert contents(lake, table) == expected(lake, Counter({new: 1, stays: 1}))
    less = plan_apply(target, replace(moved, contents=select([(stays, 1)])))
    with pytest.raises(InternalError, match="STATE_DIVERGED"):
        run_apply(less, lake.runner, lambda: lake.meta(table))


def test_many_copies_are_counted_by_position(lake, fresh: Callable[..., TableName], monkeypatch) -> None:
    monkeypatch.setattr("headrace.lake.apply_change.REAPPEND_ROWS", 0)
    table = fresh("staging")
    one = ("1", "'a'", "1.5", "-0.0D", "map()", "array()", "DATE'2026-01-01'")
    other = ("1", "'a'", "1.5", "0.0D", "map()", "array()", "DATE'2026-01-01'")
    rows = Counter({one: 40, other: 5})
    filled(lake, table, rows, 3)
    change = Counter({one: -2})
    plan = plan_apply(Target(table, COLUMNS, None, None), measured(lake, change))
    run_apply(plan, lake.runner, lambda: lake.meta(table))
    rows.update(change)
    assert contents(lake, table) == expected(lake, rows)


def test_insert_only_appends_and_nothing_does_nothing(lake, fresh: Callable[..., TableName]) -> None:
    table = fresh("staging")
    first = row(random.Random(0))
    filled(lake, table, Counter({normal(first): 1}), 3)
    plan = plan_apply(Target(table, COLUMNS, None, 1), measured(lake, Counter({normal(first): 2})))
    assert plan.method is Method.APPEND
    assert run_apply(plan, lake.runner, lambda: lake.meta(table)).row_count == 3
    empty = replace(measured(lake, Counter({normal(first): 1})), inserted=0, deleted=0, rows=0)
    assert plan_apply(Target(table, COLUMNS, None, 1), empty).method is Method.NOTHING


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("key", [None, ("k", "g")])
def test_a_row_the_table_does_not_hold_is_reported(lake, fresh: Callable[..., TableName], known: bool, key) -> None:
    table = fresh("staging")
    rng = random.Random(5)
    rows = Counter({(number, *row(rng)[1:]): 1 for number in ("1", "3")})
    filled(lake, table, rows, 3)
    plan = plan_apply(
        Target(table, COLUMNS, key, 2 if known else None, rebuild="headrace refresh shop.t --full"),
        measured(lake, Counter({("2", *row(rng)[1:]): -1})),
    )
    with pytest.raises(InternalError, match="STATE_DIVERGED") as raised:
        run_apply(plan, lake.runner, lambda: lake.meta(table))
    assert "`headrace refresh shop.t --full`" in (raised.value.hint or "")


def test_a_variant_cannot_tell_rows_apart() -> None:
    columns = (Column("k", "int"), Column("x", "variant"))
    change = Change("c", 0, 1, 1)
    table = TableName("staging", ("shop",), "t")
    with pytest.raises(Unsupported, match="TYPE_NOT_COMPARABLE"):
        plan_apply(Target(table, columns, None, 1), change)
    assert plan_apply(Target(table, columns, ("k",), None), change).method is Method.DELETE_BY_KEY
