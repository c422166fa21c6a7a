"""Each pass does what its text says, and keeps the rows of every query in all the texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from fast.optimizer.specs import TABLES, Spec, kept, specs, tree_of
from kit.case import bag
from kit.duck import DuckExecutor

from headrace.algebra.pruned_columns import prune
from headrace.algebra.relations import (
    Aggregate,
    AggregateCall,
    Empty,
    Filter,
    Join,
    Project,
    Relation,
    Scan,
    SemiJoin,
    Stored,
    Union,
)
from headrace.algebra.scalar import column, compose
from headrace.algebra.text import text
from headrace.names import LAKE, TableName
from headrace.optimizer.empty_relations import drop_empty
from headrace.optimizer.filter_pushdown import push_filters
from headrace.optimizer.join_order import order_joins
from headrace.optimizer.merge_projections import merge
from headrace.optimizer.optimizer import Optimizer
from headrace.optimizer.optimizer_pass import QueryFacts
from headrace.optimizer.semijoin_pushdown import push_semi_joins
from headrace.sql.lower import lower

PASSES: dict[str, Callable[[Relation], Relation]] = {
    "merge": merge,
    "push_filters": push_filters,
    "prune": prune,
    "order_joins": order_joins,
}
FOLDER = Path(__file__).parent
CASES = [(name, spec) for name in PASSES for spec in specs(FOLDER / f"{name}.txt")]
ROWS = {
    "a": [(1, 1, "p"), (1, 1, "p"), (2, None, None), (None, 3, "q")],
    "b": [(1, 5), (2, 5), (None, 6), (1, None)],
    "c": [(1, 0), (2, 1), (2, 2)],
}


def optimized(tree: Relation) -> Relation:
    """What becomes of a query's tree of which no types are known."""
    return Optimizer().query(tree, QueryFacts({}, lambda _: {}))[0]


def step(relation: Relation) -> Relation:
    """What becomes of a step of which no types are known."""
    return Optimizer().relation(relation, {})


@pytest.fixture(scope="module")
def executor() -> DuckExecutor:
    duck = DuckExecutor()
    for name, rows in ROWS.items():
        duck.define(name, TABLES[name], rows)
    return duck


def _rows(executor: DuckExecutor, relation: Relation) -> Counter[tuple[object, ...]]:
    def bind(leaf: Scan | Stored) -> str:
        assert isinstance(leaf, Scan)
        return leaf.source.table

    return bag(executor.rows(lower(relation, bind)))


@pytest.mark.parametrize(("name", "spec"), CASES, ids=lambda value: value.name if isinstance(value, Spec) else value)
def test_pass(name: str, spec: Spec, executor: DuckExecutor) -> None:
    before = kept(tree_of(spec.view), spec.keep)
    after = PASSES[name](before)
    assert text(after) == (text(before) if spec.after is None else spec.after)
    assert after.columns == before.columns
    assert _rows(executor, after) == _rows(executor, before)


@pytest.mark.parametrize("spec", [spec for _, spec in CASES], ids=lambda spec: spec.name)
@pytest.mark.parametrize("rewrite", [optimized, step])
def test_all_passes_together_keep_the_rows(
    spec: Spec, rewrite: Callable[[Relation], Relation], executor: DuckExecutor
) -> None:
    before = kept(tree_of(spec.view), spec.keep)
    after = rewrite(before)
    assert after.columns == before.columns
    assert _rows(executor, after) == _rows(executor, before)
    assert rewrite(after) == after, "a second round finds nothing left to do"


def test_filters_and_unions_that_meet_are_one() -> None:
    scan = Scan(TableName(LAKE, ("shop",), "a"), (("k", "k"), ("x", "x")))
    either = compose("{k} = 1 OR {x} = 2", k=column("k"), x=column("x"))
    filtered = Filter(Filter(scan, either), compose("{x} > 0", x=column("x")))
    assert text(merge(filtered)).splitlines()[0] == "Filter (`k` = 1 OR `x` = 2) AND `x` > 0"
    assert merge(Union((scan, Union((scan, scan))))) == Union((scan, scan, scan))


def test_empty_terms_vanish_but_an_aggregate_without_keys_keeps_its_row() -> None:
    scan = Scan(TableName(LAKE, ("shop",), "a"), (("k", "k"),))
    nothing = Empty(("k",))
    count = (AggregateCall("n", "count"),)
    other = Project(nothing, (("j", column("k")),))
    assert drop_empty(Union((nothing, scan, nothing))) == scan
    assert drop_empty(Union((Empty(("m",)), scan))) == Project(scan, (("m", column("k")),))
    assert drop_empty(Join(scan, other)) == Empty(("k", "j"))
    assert drop_empty(SemiJoin(scan, nothing, (("k", "k"),))) == Empty(("k",))
    assert drop_empty(SemiJoin(scan, nothing, (("k", "k"),), anti=True)) == scan
    assert drop_empty(Aggregate(Filter(nothing, column("k")), ("k",), count)) == Empty(("k", "n"))
    assert drop_empty(Aggregate(nothing, (), count)) == Aggregate(nothing, (), count)


def test_a_semi_join_goes_to_the_scan_its_key_comes_from() -> None:
    tree = tree_of("SELECT b.k AS key, x FROM a, b WHERE a.k = b.k AND x > 1 UNION ALL SELECT k, z FROM c")
    keys = Stored("touched", ("key",))
    pushed = push_semi_joins(optimized(SemiJoin(tree, keys, (("key", "key"),))))
    lines = text(pushed).splitlines()
    at = [lines.index(line) for line in lines if "SemiJoin" in line]
    assert [lines[i + 1].strip().split(" [")[0] for i in at] == ["Scan shop.b AFTER", "Scan shop.c AFTER"]


def _restricted(query: str, *keys: str, stored: bool = True, **types: str) -> list[str]:
    """What the semi-joins stand on after a semi-join of a query with keys was pushed."""
    right: Relation = Stored("touched", keys)
    right = right if stored else Join(right, Scan(TableName(LAKE, ("shop",), "d"), (("d", "d"),)))
    semi = SemiJoin(tree_of(query), right, tuple((key, key) for key in keys))
    named = {name.replace("_", "."): type_ for name, type_ in types.items()}
    lines = text(push_semi_joins(optimized(semi), named)).splitlines()
    below = (lines[i + 1].split() for i, line in enumerate(lines) if line.strip().startswith("SemiJoin"))
    return [" ".join(words[:2]).removeprefix("Scan ") for words in below]


def test_each_side_of_a_join_is_restricted_by_its_part_of_the_key() -> None:
    query = "SELECT a.s, b.y FROM a JOIN b ON a.k = b.k"
    assert _restricted(query, "s", "y") == ["Join on", "shop.a", "shop.b"]
    assert _restricted(query, "s", "y", stored=False) == ["Join on"], "keys that are costly to read are read once"


def test_a_restriction_crosses_an_equality_of_one_type() -> None:
    inner = "SELECT a.k, b.y FROM a JOIN b ON a.k = b.k"
    assert _restricted(inner, "k") == ["shop.a"]
    assert _restricted(inner, "k", a_k="int", b_k="int") == ["shop.a", "shop.b"]
    assert _restricted(inner, "k", a_k="int", b_k="string") == ["shop.a"], "Spark casts, and equality is not transitive"
    assert _restricted("SELECT b.k FROM a JOIN b ON a.k < b.k", "k", a_k="int", b_k="int") == ["shop.b"]
    left = "SELECT a.k, b.y FROM a LEFT JOIN b ON a.k = b.k AND b.y > 1"
    assert _restricted(left, "k", a_k="int", b_k="int") == ["shop.a", "shop.b"]
    looked_up = "SELECT a.k FROM a LEFT ANTI JOIN b ON a.k = b.k"
    assert _restricted(looked_up, "k", a_k="int", b_k="int") == ["shop.a", "shop.b"]


def test_the_side_that_stays_is_not_restricted_by_the_other() -> None:
    query = "SELECT a.s, b.k FROM a LEFT JOIN b ON a.k = b.k"
    assert _restricted(query, "k", a_k="int", b_k="int") == ["OuterJoin left"]
    assert _restricted(query, "s", "k", a_k="int", b_k="int") == ["OuterJoin left", "shop.a"]


def test_a_semi_join_passes_by_what_only_keeps_rows_of_the_side_of_its_key() -> None:
    keys = Stored("touched", ("key",))
    kept = tree_of("SELECT a.k AS key, b.y FROM a LEFT JOIN b ON a.k = b.k LEFT ANTI JOIN c ON a.x = c.z")
    lines = text(push_semi_joins(optimized(SemiJoin(kept, keys, (("key", "key"),))))).splitlines()
    (at,) = (i for i, line in enumerate(lines) if "SemiJoin" in line)
    assert lines[at + 1].strip().startswith("Scan shop.a")
    for lost in (
        "SELECT b.k AS key FROM a LEFT JOIN b ON a.k = b.k",
        "SELECT a.k AS key FROM a FULL JOIN b ON a.k = b.k",
    ):
        pushed = push_semi_joins(optimized(SemiJoin(tree_of(lost), keys, (("key", "key"),))))
        lines = [line.strip() for line in text(pushed).splitlines()]
        assert lines[1].startswith("SemiJoin")
        assert lines[2].startswith("OuterJoin")


def test_a_semi_join_on_group_keys_chooses_rows_before_they_are_grouped() -> None:
    keys = Stored("touched", ("key",))
    grouped = optimized(tree_of("SELECT k AS key, s, count(*) AS n FROM a GROUP BY k, s"))
    lines = [line.strip() for line in text(push_semi_joins(SemiJoin(grouped, keys, (("key", "key"),)))).splitlines()]
    assert [line.split()[0] for line in lines] == ["Project", "Aggregate", "Project", "SemiJoin", "Scan", "Stored"]
    by_count = SemiJoin(grouped, Stored("touched", ("n",)), (("n", "n"),))
    assert text(push_semi_joins(by_count)).splitlines()[1].strip().startswith("SemiJoin")


def test_a_semi_join_on_a_computed_key_stays() -> None:
    tree = tree_of("SELECT k + 1 AS key FROM a")
    semi = SemiJoin(tree, Stored("touched", ("key",)), (("key", "key"),))
    assert push_semi_joins(semi) == semi
