"""Which sides of joins Spark is asked to send to every task, by the sizes of changes and tables."""

from __future__ import annotations

from dataclasses import replace

import pytest
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.maintained import Maintained, table_name
from kit.planned import facts_of, source

from headrace.algebra.relations import Join, SemiJoin
from headrace.algebra.schema import Column
from headrace.algebra.tree import nodes
from headrace.physical.facts import Common, Facts
from headrace.physical.shared_semijoins import shared_semijoins_of
from headrace.physical.stage_planner import asked, compute_stages
from headrace.physical.stages import Compute

T = Table("t", (Column("k", "bigint"), Column("v", "bigint")), ())
U = Table("u", (Column("j", "bigint"), Column("w", "bigint")), ())
JOINED = "SELECT v, w FROM t JOIN u ON k = j"
GROUPED = "SELECT k, max(v) AS m FROM t GROUP BY k"


def stages(
    query: str, t: tuple[int, int | None], u: tuple[int, int | None] = (10, None), *, carried: bool = False
) -> list[Compute]:
    """The steps of following a change; of each table its rows, and how many of them changed."""
    view = Maintained(DuckExecutor(), Case(query, (T, U) if "u" in query else (T,))).view
    sizes = {"t": t, "u": u}
    facts = facts_of(
        view, {name: source(name, *sizes[name.table], carried=carried) for name in view.sources}, state=100
    )
    program = asked(facts).of(view)
    assert program is not None
    return [stage for stage in compute_stages(facts, program) if isinstance(stage, Compute)]


def sent(found: list[Compute], kind: type[Join] | type[SemiJoin]) -> set[bool]:
    """Whether joins that start from a change have it sent."""
    relations = (node for stage in found for node in nodes(stage.relation))
    return {n.small_left if isinstance(n, Join) else n.small_right for n in relations if isinstance(n, kind)}


@pytest.mark.parametrize(
    ("changed", "other", "expected"),
    [
        (1_000, 5_000_000, True),
        (600_000, 5_000_000, True),
        (600_000, 500_000, False),
        (5_000_000, 90_000_000, False),
        (1_000, 50_000, False),
    ],
    ids=["few", "more, of a table of more", "more than the table", "too many for memory", "a table that Spark sends"],
)
def test_a_change_is_sent_to_meet_a_table_of_more_rows(changed: int, other: int, expected: bool) -> None:
    found = stages(JOINED, (20_000_000, changed), (other, 0))
    assert sent(found, Join) == {expected}
    assert all(stage.hints for stage in found if any(isinstance(n, Join) for n in nodes(stage.relation)))


@pytest.mark.parametrize(("changed", "expected"), [(1_000, True), (1_500_000, True), (9_000_000, False)])
def test_keys_are_sent_to_find_their_rows_while_they_fit_into_memory(changed: int, expected: bool) -> None:
    assert sent(stages(GROUPED, (20_000_000, changed)), SemiJoin) == {expected}


def test_nothing_is_sent_of_a_change_of_unknown_size() -> None:
    assert not any(stage.hints for stage in stages(JOINED, (20_000_000, None), (5_000_000, 0)))


def test_rows_of_rewritten_files_count_as_changed() -> None:
    """As a rule few of them did; the memory must do where all did."""
    assert sent(stages(JOINED, (20_000_000, 5_000_000), (90_000_000, 0), carried=True), Join) == {False}


def test_nothing_is_sent_of_what_several_share_where_nothing_is_to_be_sent() -> None:
    """Its rows are the same either way, so it is found by those who do send them, and they find it."""
    view = Maintained(DuckExecutor(), Case(JOINED, (T, U))).view
    others = frozenset({table_name("a"), table_name("b")})
    sources = {}
    for name, columns in {"t": "kv", "u": "jw"}.items():
        common = Common(f"change_{name}", "c", "c", others, frozenset(columns), readers=3)
        sources[table_name(name)] = source(table_name(name), 20_000_000, 1_000, common=common, names=frozenset(columns))

    def sharing(facts: Facts) -> Facts:
        return replace(facts, shared_semijoins=shared_semijoins_of(facts, needs, lambda _: False, frozenset()))

    facts = facts_of(view, sources, state=100)
    program = asked(facts).of(view)
    assert program is not None
    needs = {name: program.needs for name in (facts.name, *others)}
    facts = sharing(facts)
    program = asked(facts).of(view)
    assert program is not None

    def collected(facts: Facts) -> dict[str, bool]:
        shared = (stage for stage in compute_stages(facts, program) if isinstance(stage, Compute) and stage.common)
        return {stage.common.view: stage.hints for stage in shared if stage.common}

    sending = collected(facts)
    assert set(sending.values()) == {True}
    nothing = dict.fromkeys(sending, False)
    assert collected(replace(facts, broadcast=False)) == nothing, "as it was planned, computed again"
    assert collected(sharing(replace(facts, broadcast=False))) == nothing, "planned anew"
    uncounted = tuple(replace(source, change_rows=None) for source in facts.sources)
    assert collected(sharing(replace(facts, sources=uncounted))) == nothing
