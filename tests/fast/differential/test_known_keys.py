"""Queries whose sources have known keys: histories that respect them, and the work that falls away.

Every query is played with and without the knowledge; recomputation judges both.
"""

from __future__ import annotations

import os
import random

import pytest
from kit.case import Case, Row, Table, Weighted, Window
from kit.duck import DuckExecutor
from kit.long_tests import LONG
from kit.maintained import Maintained, replay

from headrace.algebra.relations import Aggregate, Existence, Join, OuterJoin, Relation
from headrace.algebra.schema import Column
from headrace.algebra.tree import walk

EXECUTOR = DuckExecutor()
HISTORIES = 6 * int(os.environ.get("HEADRACE_EXAMPLES", "1"))
"""So many of each query, or fewer where its result has changed often enough before."""

ORDERS = (Column("id", "bigint"), Column("customer", "bigint"), Column("region", "string"), Column("amount", "int"))
CUSTOMERS = (Column("id", "bigint"), Column("name", "string"), Column("score", "int"))
LINES = (Column("order_id", "bigint"), Column("line", "int"), Column("price", "decimal(12,2)"))
KEYS = {"orders": (("id",),), "customers": (("id",),), "lines": (("order_id", "line"),)}
COLUMNS = {"orders": ORDERS, "customers": CUSTOMERS, "lines": LINES}

DISTINCT = "SELECT DISTINCT id, region FROM orders WHERE amount > 1"
DISTINCT_JOIN = "SELECT DISTINCT o.id, c.name, o.amount FROM orders o JOIN customers c ON o.customer = c.id"
DISTINCT_BELOW = """SELECT region, count(*) AS n FROM (SELECT DISTINCT id, region FROM orders) GROUP BY region"""
GROUPED = """SELECT id, region, count(*) AS n, count(amount) AS a, sum(amount) AS s, min(region) AS least,
    sum(amount) FILTER (WHERE amount > 2) AS big FROM orders GROUP BY id, region"""
GROUPED_PAIRS = "SELECT order_id, line, sum(price) AS p, max(price) AS m FROM lines GROUP BY order_id, line"
SEMI = """SELECT id, amount FROM orders o
    WHERE EXISTS (SELECT 1 FROM customers c WHERE c.id = o.customer AND c.score > 1)"""
IN = "SELECT region, amount FROM orders WHERE customer IN (SELECT id FROM customers WHERE score > 1)"
ANTI = "SELECT id, region FROM orders o WHERE NOT EXISTS (SELECT 1 FROM customers c WHERE c.id = o.customer)"
ANTI_MORE = """SELECT region, count(*) AS n FROM orders o LEFT ANTI JOIN customers c
    ON c.id = o.customer AND c.score > o.amount GROUP BY region"""
LEFT = "SELECT o.id, o.region, c.name, c.score FROM orders o LEFT JOIN customers c ON o.customer = c.id"
LEFT_MORE = """SELECT o.region, c.name, count(*) AS n, sum(c.score) AS s FROM orders o
    LEFT JOIN customers c ON o.customer = c.id AND c.score < o.amount GROUP BY o.region, c.name"""
LEFT_UNUSED = "SELECT o.id, o.region FROM orders o LEFT JOIN customers c ON o.customer = c.id"
LEFT_CHAIN = """SELECT l.order_id, l.price, o.region, c.name FROM lines l LEFT JOIN orders o ON l.order_id = o.id
    LEFT JOIN customers c ON o.customer = c.id"""
LEFT_DISTINCT = """SELECT DISTINCT l.order_id, l.line, o.region, c.name FROM lines l
    LEFT JOIN orders o ON l.order_id = o.id LEFT JOIN customers c ON o.customer = c.id"""
NOT_A_KEY = "SELECT DISTINCT region, amount FROM orders"
MANY = "SELECT c.id, c.name, o.amount FROM customers c LEFT JOIN orders o ON o.customer = c.id"
MANY_SEMI = "SELECT id, name FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id)"
PART_OF_A_KEY = "SELECT id, region FROM orders o WHERE EXISTS (SELECT 1 FROM lines l WHERE l.order_id = o.id)"
CAST = "SELECT id, region FROM orders o WHERE EXISTS (SELECT 1 FROM customers c WHERE CAST(c.id AS string) = o.region)"
DISTINCT_OF_ONE = "SELECT DISTINCT line, price FROM lines WHERE 2 = order_id AND line < 9"
OF_EITHER = "SELECT DISTINCT line FROM lines WHERE order_id = 2 OR line = 1"
UNION = "SELECT DISTINCT id FROM (SELECT id FROM orders UNION ALL SELECT id FROM customers)"
NULLS = "SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.customer <=> c.id"

NUMBERED = """SELECT id, customer, row_number() OVER (PARTITION BY region ORDER BY amount DESC, id) AS n,
    lag(amount) OVER (PARTITION BY region ORDER BY amount DESC, id) AS before FROM orders"""
NUMBERED_JOIN = """SELECT c.id, o.region, row_number() OVER (ORDER BY o.id) AS n FROM orders o
    JOIN customers c ON o.customer = c.id"""
FIRST = "SELECT amount, id, region FROM orders ORDER BY amount DESC NULLS LAST, id LIMIT 2 OFFSET 1"
GREATEST = "SELECT region, max_by(amount, id) AS latest, count(*) AS n FROM orders GROUP BY region"
LATEST = """SELECT o.id, (SELECT l.price FROM lines l WHERE l.order_id = o.id ORDER BY l.line DESC LIMIT 1) AS price
    FROM orders o"""
OF_ONE = """SELECT id, (SELECT price FROM lines l WHERE l.order_id = 2 AND l.line <= o.amount ORDER BY line LIMIT 1)
    AS p FROM orders o"""
CUT = "SELECT amount, region FROM orders WHERE id = 2 LIMIT 5"
CUT_LINE = "SELECT id, (SELECT price FROM lines l WHERE l.order_id = o.id AND l.line = 1 LIMIT 1) AS p FROM orders o"
SETTLED = (NUMBERED, NUMBERED_JOIN, FIRST, GREATEST, LATEST, OF_ONE, CUT, CUT_LINE)

USED = (DISTINCT, DISTINCT_JOIN, DISTINCT_BELOW, GROUPED, GROUPED_PAIRS, SEMI, IN, ANTI, ANTI_MORE, LEFT, LEFT_MORE)
USED = (*USED, LEFT_UNUSED, LEFT_CHAIN, LEFT_DISTINCT, NULLS, DISTINCT_OF_ONE, *SETTLED)
UNUSED = (NOT_A_KEY, MANY, MANY_SEMI, PART_OF_A_KEY, CAST, OF_EITHER, UNION)


def _row(table: str, key: tuple[object, ...], dice: random.Random) -> Row:
    some = dice.choice([None, 1, 2, 3, 4])
    if table == "orders":
        return (*key, some, dice.choice([None, "EU", "US", "3"]), dice.choice([None, 1, 2, 3]))
    if table == "customers":
        return (*key, dice.choice([None, "ann", "bob"]), dice.choice([None, 0, 1, 2, 3]))
    return (*key, dice.choice([None, 1, 2]))


def _key(table: str, dice: random.Random) -> tuple[object, ...]:
    """Among customers NULL is a key like any other."""
    first = dice.choice([None, 1, 2, 3, 4] if table == "customers" else [1, 2, 3, 4, 5, 6])
    return (first, dice.choice([1, 2])) if table == "lines" else (first,)


def _window(contents: dict[str, dict[tuple[object, ...], Row]], dice: random.Random) -> Window:
    window: dict[str, list[Weighted]] = {}
    for _ in range(dice.randint(1, 6)):
        table = dice.choice(list(contents))
        rows, key = contents[table], _key(table, dice)
        change: list[Weighted] = [(-1, rows.pop(key))] if key in rows else []
        if not change or dice.random() < 0.6:
            moved = _key(table, dice) if dice.random() < 0.3 else key
            if moved not in rows:
                rows[moved] = _row(table, moved, dice)
                change.append((1, rows[moved]))
        window.setdefault(table, []).extend(change)
    return {table: tuple(change) for table, change in window.items()}


def _case(query: str, seed: int) -> Case:
    dice = random.Random(seed)
    contents: dict[str, dict[tuple[object, ...], Row]] = {name: {} for name in COLUMNS}
    _window(contents, dice)
    _window(contents, dice)
    tables = tuple(Table(name, COLUMNS[name], tuple(contents[name].values())) for name in COLUMNS)
    return Case(query, tables, tuple(_window(contents, dice) for _ in range(4)))


@pytest.mark.parametrize("query", [*USED, *UNUSED])
def test_histories_that_respect_the_keys(query: str) -> None:
    moved = 0
    for seed in range(HISTORIES):
        case = _case(query, seed)
        try:
            moved += replay(EXECUTOR, case, keys=KEYS)
        except Exception:
            print(f"seed {seed}", case.script())
            raise
        if moved > 1 and not LONG:
            break
    assert moved


def _tree(query: str, keys: dict[str, tuple[tuple[str, ...], ...]] | None = None) -> Relation:
    tree = Maintained(EXECUTOR, _case(query, 0), keys=KEYS if keys is None else keys).view.tree
    assert tree is not None
    return tree


def _has(tree: Relation, *kinds: type[Relation]) -> bool:
    return any(isinstance(node, kinds) for node in walk(tree))


@pytest.mark.parametrize("query", [DISTINCT, DISTINCT_JOIN, GROUPED, GROUPED_PAIRS, LEFT_DISTINCT, DISTINCT_OF_ONE])
def test_rows_that_are_unique_are_not_grouped(query: str) -> None:
    assert _has(_tree(query, {}), Aggregate)
    assert not _has(_tree(query), Aggregate)
    assert Maintained(EXECUTOR, _case(query, 0), keys=KEYS).view.companion is None


@pytest.mark.parametrize("query", SETTLED)
def test_a_key_settles_what_ties_leave_open(query: str) -> None:
    """Without it the query would be refused, as the same rows could give several results."""
    assert Maintained(EXECUTOR, _case(query, 0), keys=KEYS).view.rests_on_keys


def test_distinct_below_an_aggregate_falls_away() -> None:
    assert sum(isinstance(node, Aggregate) for node in walk(_tree(DISTINCT_BELOW))) == 1


@pytest.mark.parametrize("query", [SEMI, IN])
def test_a_single_partner_makes_a_join(query: str) -> None:
    assert _has(_tree(query, {}), Existence)
    assert not _has(_tree(query), Existence)
    assert _has(_tree(query), Join)


@pytest.mark.parametrize("query", [ANTI, ANTI_MORE, LEFT, LEFT_MORE, LEFT_CHAIN])
def test_with_a_single_partner_nothing_is_judged_before_and_after(query: str) -> None:
    view = Maintained(EXECUTOR, _case(query, 0), keys=KEYS).view
    program = view.delta_program(frozenset(view.sources))
    assert program is not None
    assert not any(step.name.startswith(("met", "affected")) for step in program.steps)
    before = Maintained(EXECUTOR, _case(query, 0)).view.delta_program(frozenset(view.sources))
    assert before is not None
    assert any(step.name.startswith("affected") for step in before.steps)


def test_a_partner_that_nobody_reads_is_not_looked_for() -> None:
    assert not _has(_tree(LEFT_UNUSED), OuterJoin)
    assert _has(_tree(LEFT_UNUSED, {}), OuterJoin)


@pytest.mark.parametrize("query", UNUSED)
def test_where_keys_say_nothing_the_plan_stays(query: str) -> None:
    assert _tree(query) == _tree(query, {})


def test_keys_of_many_joins_are_found_once_each() -> None:
    joins = " ".join(f"LEFT JOIN customers c{i} ON o.customer = c{i}.id" for i in range(40))
    tree = _tree(f"SELECT DISTINCT o.id, {', '.join(f'c{i}.name AS n{i}' for i in range(40))} FROM orders o {joins}")
    assert not _has(tree, Aggregate)
