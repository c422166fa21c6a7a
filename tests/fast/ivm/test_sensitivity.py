"""The check notices wrong rules: each of these was a bug of some system once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from kit import maintained
from kit.duck import DuckExecutor
from kit.fixture import parse
from kit.maintained import replay

from headrace.algebra.relations import (
    Aggregate,
    Empty,
    Existence,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Project,
    Relation,
    Replicate,
    SemiJoin,
    Stored,
    TopK,
    Window,
)
from headrace.algebra.scalar import TRUE, Scalar, column, compose, literal
from headrace.algebra.tree import identity
from headrace.compiler import derive
from headrace.ivm import program
from headrace.ivm.aggregates import accumulators, root_aggregate
from headrace.ivm.change import Change, arrange, union_all, weigh
from headrace.ivm.query_root import Root
from headrace.ivm.recursion import rederive
from headrace.ivm.rules import existence, registry
from headrace.ivm.rules import top_k as topk
from headrace.names import WEIGHT
from headrace.optimizer.auxiliary_views import eager_aggregation, inner_aggregates, top_groups, top_k_buffer

ACID = Path(__file__).parents[1] / "differential" / "acid"
EXECUTOR = DuckExecutor()


def _both_after(join: Join, change: Change) -> Relation:
    """Δ(L ⋈ R) = ΔL ⋈ R′ + L′ ⋈ ΔR: counts what met within the change twice."""
    left, right = change.of(join.left), change.of(join.right)
    terms = [
        arrange(join.with_inputs(*sides), join.columns)
        for sides in ((left, change.after(join.right)), (change.after(join.left), right))
    ]
    touched = [change.touches(join.left), change.touches(join.right)]
    return union_all(*(term for term, is_touched in zip(terms, touched, strict=True) if is_touched))


def _both_before(join: Join, change: Change) -> Relation:
    """Forgets what met within the change."""
    terms = []
    if change.touches(join.left):
        terms.append(join.with_inputs(change.of(join.left), change.before(join.right)))
    if change.touches(join.right):
        terms.append(join.with_inputs(change.before(join.left), change.of(join.right)))
    return union_all(*(arrange(term, join.columns) for term in terms))


def _only_after(aggregate: Aggregate, change: Change) -> Relation:
    """Adds the new groups and forgets to take back the old ones."""
    return weigh(change.after(aggregate), 1)


def _never_taken_back(node: Existence, change: Change) -> Relation:
    """Judges the rows whose partners changed as they stay now, and forgets how they stayed."""
    right = change.of(node.right)
    if isinstance(right, Empty):
        return existence.delta(node, change)
    now = union_all(change.of(node.left), weigh(existence.affected(node, right, change), 1))
    return existence.judged(node, now, change.after(node.right), change)


def _never_padded(join: OuterJoin, change: Change) -> Relation:
    """An inner join."""
    return arrange(change.of(Join(join.left, join.right, join.condition)), join.columns)


def _uncounted(replicate: Replicate, change: Change) -> Relation:
    """Lets each row count once."""
    rows = change.of(replicate.input)
    return Project(rows, identity((*replicate.columns, WEIGHT)))


def _only_old_partitions(window: Window, change: Change) -> Relation:
    """Computes rows as they are among the old ones, and forgets that others of their partition change with them."""
    return Project(window.with_inputs(change.of(window.input)), identity((*window.columns, WEIGHT)))


def _first_of_the_change(topk: TopK, change: Change) -> Relation:
    return Project(topk.with_inputs(change.of(topk.input)), identity((*topk.columns, WEIGHT)))


def _once_each(generate: Generate, change: Change) -> Relation:
    return Project(generate.with_inputs(change.of(generate.input)), (*identity(generate.columns), (WEIGHT, literal(1))))


WRONG: dict[str, tuple[type[Relation], Callable[..., Relation], str]] = {
    "after": (Join, _both_after, "join_key_updated_while_partner_deleted"),
    "before": (Join, _both_before, "self_join"),
    "three-way": (Join, _both_before, "co_deletes_in_a_three_way_join"),
    "partners": (Existence, _never_taken_back, "semi_and_anti_join"),
    "padding": (OuterJoin, _never_padded, "left_join_finds_and_loses_partners"),
    "full": (OuterJoin, _never_padded, "full_join_using"),
    "copies": (Replicate, _uncounted, "intersect_below_a_join"),
    "partitions": (Window, _only_old_partitions, "best_of_each_group_joined"),
    "first rows": (TopK, _first_of_the_change, "rows_after_an_offset"),
    "generated": (Generate, _once_each, "positions_of_exploded_rows"),
    "groups": (Aggregate, _only_after, "outer_columns_over_groups"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_rule_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    node, wrong, fixture = WRONG[name]
    case = parse((ACID / f"{fixture}.txt").read_text()).case
    replay(EXECUTOR, case)
    monkeypatch.setattr(derive, "RULES", {**registry.RULES, node: wrong})
    # AssertionError from the check, or DuckDB's own error when the program itself notices
    with pytest.raises(Exception, match=r"missing|STATE_DIVERGED|is read|disagree"):
        replay(EXECUTOR, case)


@pytest.mark.parametrize("fixture", ["left_join_finds_and_loses_partners", "not_in_of_matching_rows"])
def test_too_few_affected_rows_are_noticed(fixture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = parse((ACID / f"{fixture}.txt").read_text()).case
    affected = existence.affected

    def fewer(node: Existence, right: Relation, change: Change) -> Relation:
        return Filter(affected(node, right, change), compose("1 = 0"))

    monkeypatch.setattr(existence, "affected", fewer)
    with pytest.raises(Exception, match=r"missing|STATE_DIVERGED|disagree"):
        replay(EXECUTOR, case)


def test_a_forgotten_rescan_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = parse((ACID / "extreme_leaves.txt").read_text()).case
    monkeypatch.setattr(root_aggregate, "_may_lose_extreme", lambda root, change: False)
    with pytest.raises(AssertionError, match="missing"):
        replay(EXECUTOR, case)


def test_first_rows_that_are_not_read_again_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = parse((ACID / "first_rows_of_a_table.txt").read_text()).case
    merged = topk.from_state

    def forgetful(tree: TopK, moved: Stored, state: Stored, again: Relation, change: Change) -> Relation:
        return merged(tree, moved, state, state, change)

    unbuffered = frozenset({"top_k_buffer"})
    replay(EXECUTOR, case, disabled=unbuffered)
    monkeypatch.setattr(topk, "from_state", forgetful)
    with pytest.raises(AssertionError, match="missing"):
        replay(EXECUTOR, case, disabled=unbuffered)


@pytest.mark.parametrize(
    ("part", "wrong"),
    [
        ("_refilled", lambda tree, kept, followed, change: followed),
        ("_known", lambda tree: TRUE),
    ],
)
def test_a_reserve_that_is_believed_too_long_is_noticed(
    part: str, wrong: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = parse((ACID / "reserve_runs_out.txt").read_text()).case
    monkeypatch.setattr(top_k_buffer, part, wrong)
    with pytest.raises(AssertionError, match="missing"):
        replay(EXECUTOR, case)


def test_groups_that_are_forgotten_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = parse((ACID / "first_rows.txt").read_text()).case

    def forgetful(root: Root, touched: Stored) -> Relation:
        keys = tuple((name, name) for _, name in root.keys)
        return SemiJoin(Stored(program.COMPANION, root.companion), touched, keys, anti=True)

    monkeypatch.setattr(top_groups, "companion_after", forgetful)
    with pytest.raises(AssertionError, match="missing"):
        replay(EXECUTOR, case)


@pytest.mark.parametrize("fixture", ["best_of_groups", "groups_against_the_whole", "values_below_groups"])
def test_kept_groups_that_are_not_read_as_they_are_now_are_noticed(
    fixture: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = parse((ACID / f"{fixture}.txt").read_text()).case
    monkeypatch.setattr(inner_aggregates, "companion_after", lambda root, _: Stored(root.place, root.companion))
    with pytest.raises(Exception, match=r"missing|STATE_DIVERGED|disagree"):
        replay(EXECUTOR, case)


@pytest.mark.parametrize(
    "wrong", [lambda call: column(call.name), lambda call: compose("COALESCE({n}, 0)", n=column(call.name))]
)
def test_rows_that_meet_the_same_partners_are_counted(
    wrong: Callable[..., Scalar], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = parse((ACID / "groups_of_partners_counted.txt").read_text()).case
    monkeypatch.setattr(eager_aggregation, "_beside", wrong)
    monkeypatch.setattr(maintained, "_VIEWS", {})  # what is compiled is kept
    with pytest.raises(AssertionError, match="differs"):
        replay(EXECUTOR, case)


def _never_taken_from_pairs(pairs: object, rows: Relation, turned: Stored, *, anti: bool = False) -> Relation:
    """Goes on by pairs that changed, too, when rows are taken back."""
    return rows if anti else rederive_among(pairs, rows, turned)


def _found_no_more(*_: object) -> Relation:
    """Forgets what still follows, another way."""
    return Empty(("a", "col_2"))


rederive_among = rederive._among


@pytest.mark.parametrize(("part", "wrong"), [("_among", _never_taken_from_pairs), ("_came", _found_no_more)])
def test_a_recursion_that_takes_back_too_much_is_noticed(
    part: str, wrong: Callable[..., Relation], monkeypatch: pytest.MonkeyPatch
) -> None:
    case = parse((ACID / "ways_through_a_graph.txt").read_text()).case
    monkeypatch.setattr(rederive, part, wrong)
    with pytest.raises(Exception, match=r"missing|STATE_DIVERGED"):
        replay(EXECUTOR, case)


def test_a_sum_that_becomes_zero_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = parse((ACID / "sum_whose_last_value_leaves.txt").read_text()).case
    moved = root_aggregate._moved

    def never_null(a: accumulators.Accumulator, *, ansi: bool) -> object:
        scalar = moved(a, ansi=ansi)
        return scalar if a.kind is not accumulators.Kind.SUM else root_aggregate.compose("COALESCE({x}, 0)", x=scalar)

    monkeypatch.setattr(root_aggregate, "_moved", never_null)
    with pytest.raises(AssertionError, match="missing"):
        replay(EXECUTOR, case)
