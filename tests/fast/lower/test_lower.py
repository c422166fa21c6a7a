"""The SQL of trees: read it in `queries.txt`; it also runs, and says what the user's text says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from fast.optimizer.specs import TABLES, tree_of
from kit.case import Row, bag
from kit.duck import DuckExecutor

from headrace.algebra.relations import (
    Aggregate,
    AggregateCall,
    Empty,
    Filter,
    Join,
    LookupJoin,
    Moment,
    Project,
    Relation,
    Repeat,
    Scan,
    SemiJoin,
    Stored,
    Union,
    Values,
)
from headrace.algebra.scalar import FALSE, NULL, call_of, column, compose, equals, literal, text_literal
from headrace.errors import InternalError
from headrace.names import LAKE, WEIGHT, TableName
from headrace.optimizer.optimizer import Optimizer
from headrace.optimizer.optimizer_pass import QueryFacts
from headrace.sql.lower import lower

ROWS: dict[str, list[Row]] = {
    "a": [(1, 1, "p"), (1, 1, "p"), (2, None, None), (None, 3, "it's")],
    "b": [(1, 5), (2, 5), (None, 6), (1, None)],
    "c": [(1, 0), (2, 1), (2, 2)],
}
BLOCKS = [block.split("\n", 1) for block in (Path(__file__).parent / "queries.txt").read_text().strip().split("\n\n")]
A = Scan(TableName(LAKE, ("shop",), "a"), (("a.k", "k"), ("a.x", "x")))
B = Scan(TableName(LAKE, ("shop",), "b"), (("b.k", "k"), ("b.y", "y")))


@pytest.fixture(scope="module")
def executor() -> DuckExecutor:
    duck = DuckExecutor()
    for name, rows in ROWS.items():
        duck.define(name, TABLES[name], rows)
    duck.keep("keys", "SELECT 1 AS k UNION ALL SELECT NULL")
    duck.keep("zero", "SELECT 0 AS k")
    duck.keep("counted", "SELECT 1 AS g, 'one' AS t UNION ALL SELECT NULL, 'null'")
    return duck


def bind(leaf: Scan | Stored) -> str:
    return leaf.source.table if isinstance(leaf, Scan) else leaf.name


def rows(executor: DuckExecutor, relation: Relation) -> Counter[Row]:
    """What a relation gives, through both dialects' texts."""
    found = bag(executor.rows(lower(relation, bind)))
    duck = executor.connection.execute(lower(relation, bind, "duckdb")).fetchall()
    assert bag(duck) == found
    return found


@pytest.mark.parametrize(("view", "sql"), BLOCKS, ids=[block[0] for block in BLOCKS])
def test_query(view: str, sql: str, executor: DuckExecutor) -> None:
    tree, _ = Optimizer().query(tree_of(view), QueryFacts({}, lambda _: {}))
    assert lower(tree, bind) == sql
    assert rows(executor, tree) == bag(executor.rows(view))


def test_null_is_not_the_number_that_stands_in_for_it(executor: DuckExecutor) -> None:
    on, numbers = (("k", "k"),), frozenset({"k"})
    keys, zero = Stored("keys", ("k",)), Stored("zero", ("k",))
    assert rows(executor, SemiJoin(zero, keys, on, numbers=numbers)) == Counter()
    assert rows(executor, SemiJoin(keys, zero, on, numbers=numbers)) == Counter()
    assert rows(executor, SemiJoin(keys, zero, on, anti=True, numbers=numbers)) == Counter({(1,): 1, (None,): 1})


def test_semi_and_anti_joins_take_null_for_equal(executor: DuckExecutor) -> None:
    keys = Stored("keys", ("k",))
    on = (("a.k", "k"),)
    for numbers in (frozenset[str](), frozenset({"a.k"})):
        assert rows(executor, SemiJoin(A, keys, on, numbers=numbers)) == Counter({(1, 1): 2, (None, 3): 1})
        assert rows(executor, SemiJoin(A, keys, on, anti=True, numbers=numbers)) == Counter({(2, None): 1})
    assert rows(executor, SemiJoin(A, keys, ())) == rows(executor, A), "no key: anything on the right is enough"
    assert not rows(executor, SemiJoin(A, Filter(keys, FALSE), ()))


def test_a_computed_key_is_an_operand() -> None:
    computed = Project(A, (("null", compose("{k} IS NULL", k=column("a.k"))),))
    sql = lower(SemiJoin(computed, Stored("touched", ("null",)), (("null", "null"),)), bind)
    assert "(__hr_t1.`k` IS NULL) <=> __hr_t2.`null`" in sql, "Spark does not take IS NULL <=>"


def test_a_lookup_keeps_rows_without_a_partner(executor: DuckExecutor) -> None:
    found = rows(executor, LookupJoin(A, Stored("counted", ("g", "t")), (("a.k", "g"),)))
    assert found == Counter({(1, 1, 1, "one"): 2, (2, None, None, None): 1, (None, 3, None, "null"): 1})


def test_rows_are_repeated_as_their_weight_says(executor: DuckExecutor) -> None:
    weighted = Project(A, (("k", column("a.k")), (WEIGHT, call_of("coalesce", column("a.x"), literal(2)))))
    assert rows(executor, Repeat(weighted)) == Counter({(1,): 2, (2,): 2, (None,): 3})


def test_values_and_unions_match_by_position(executor: DuckExecutor) -> None:
    values = Values(("p", "q"), ((literal(1), text_literal("x")), (NULL, text_literal("it's"))))
    union = Union((values, Project(A, (("s", column("a.k")), ("r", text_literal("a"))))))
    assert union.columns == ("p", "q")
    assert rows(executor, Filter(union, equals(column("p"), literal(1)))) == Counter({(1, "x"): 1, (1, "a"): 2})
    assert rows(executor, Filter(union, equals(column("q"), text_literal("it's")))) == Counter({(None, "it's"): 1})


def test_many_values_are_read_as_few_are(executor: DuckExecutor) -> None:
    many = Values(("p", "a b"), tuple((compose(f"{i} - 1"), text_literal("x")) for i in range(300)))
    assert sum(rows(executor, Filter(many, compose("{p} > 250", p=column("p")))).values()) == 48
    joined = Join(many, A, equals(column("p"), column("a.k")))
    assert rows(executor, Project(joined, (("p", column("p")), ("b", column("a b"))))) == Counter(
        {(1, "x"): 2, (2, "x"): 1}
    )


SHORT = (
    ("upper(trim({n}))", True),
    ("{n} + 1", True),
    ("{n} || {n}", True),
    ("substring({n}, 1, 2)", False),
    ("'a text of twenty-two'", True),
    ("'a text of twenty-seven or so'", False),
)


@pytest.mark.parametrize(("expression", "repeated"), SHORT)
def test_a_short_expression_is_repeated_whatever_tables_are_called(expression: str, repeated: bool) -> None:
    scan = Scan(TableName(LAKE, ("shop",), "t"), (("t.name", "name"),))
    computed = Project(scan, (("u", compose(expression, n=column("t.name"))),))
    sql = lower(Project(computed, (("x", compose("{u} = lower({u})", u=column("u"))),)), lambda _: "t")
    assert (sql.count("SELECT") == 1) == repeated


def test_grouping_by_a_constant_is_not_grouping_by_a_column(executor: DuckExecutor) -> None:
    constant = Project(A, (("one", literal(1)), ("x", column("a.x"))))
    assert rows(executor, Aggregate(constant, ("one",), (AggregateCall("n", "count"),))) == Counter({(1, 4): 1})


def test_a_constant_over_a_global_aggregate_is_one_row(executor: DuckExecutor) -> None:
    count = Aggregate(A, (), (AggregateCall("n", "count"),))
    assert rows(executor, Project(count, (("one", literal(1)),))) == Counter({(1,): 1})
    again = Project(Project(count, (("m", column("n")),)), (("one", literal(1)),))
    assert rows(executor, again) == Counter({(1,): 1})


def test_a_relation_that_occurs_twice_gets_a_name() -> None:
    grouped = Aggregate(A, ("a.k",), (AggregateCall("n", "count"),))
    both = Union((grouped, Project(grouped, (("k", column("a.k")), ("m", literal(0))))))
    sql = lower(both, bind)
    assert sql.startswith("WITH `c1` AS (")
    assert sql.count("GROUP BY") == 1
    assert lower(Union((A, A)), bind).count("WITH") == 0, "a table needs none"


def test_small_sides_are_broadcast_when_asked() -> None:
    change = Scan(A.source, A.fields, Moment.CHANGE)
    join = Join(change, B, equals(column("a.k"), column("b.k")), small_left=True)
    semi = SemiJoin(join, Stored("keys", ("k",)), (("a.k", "k"),))
    assert "BROADCAST" not in lower(semi, bind)
    assert "/*+ BROADCAST(__hr_t1, __hr_t3) */" in lower(semi, bind, hints=True)


def test_names_may_be_anything(executor: DuckExecutor) -> None:
    odd = 'a "strange`.name'
    renamed = Project(A, ((odd, column("a.k")),))
    assert rows(executor, Filter(renamed, equals(column(odd), literal(2)))) == Counter({(2,): 1})


def test_what_has_no_sql_is_our_fault() -> None:
    with pytest.raises(InternalError, match="NOT_LOWERED"):
        lower(Empty(("a",)), bind)
