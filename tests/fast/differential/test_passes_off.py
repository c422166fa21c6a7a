"""Histories with each pass of the optimiser switched off: results stay equal, only costs change."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit.duck import DuckExecutor
from kit.fixture import parse
from kit.long_tests import LONG
from kit.maintained import Maintained, replay

from headrace.optimizer.passes import PASSES

EXECUTOR = DuckExecutor()
FOLDER = Path(__file__).parent / "acid"
ACID = sorted(path.stem for path in FOLDER.glob("*.txt"))
OPTIONAL = tuple(dict.fromkeys(each.name for each in PASSES if not each.required))
CHANGED = {
    "merge_projections": ("aggregate_over_aggregate", "best_of_groups"),
    "filter_pushdown": ("columns_become_rows", "exists_of_groups_and_first_rows"),
    "column_pruning": ("aggregate_over_left_join", "except_of_an_intersection"),
    "moving_filters": ("rows_leave_and_enter_as_time_goes_on",),
    "eager_aggregation": ("groups_of_partners_counted",),
    "magic_sets": ("groups_of_few_partners", "groups_that_no_partner_may_have"),
    "top_k_buffer": ("first_rows_beside_a_value", "reserve_runs_out"),
    "inner_recursion": ("recursion_below_a_group", "recursion_shown_changed"),
    "inner_aggregates": ("exists_uncorrelated", "groups_against_the_whole", "global_aggregate_below_a_join"),
    "semijoin_reduction": ("exists_of_one_row_that_having_keeps",),
    "common_subexpressions": ("lateral_first_rows", "scalar_subquery_correlated"),
    "unread_steps": ("recursion_shown_changed",),
    "semijoin_pushdown": ("best_of_each_group_joined", "equal_rows_are_numbered"),
    "existence_partners": ("full_join_using", "in_over_several_columns", "exists_correlated_and_not"),
    "integer_keys": ("copies_at_the_cut", "exists_of_groups_that_having_keeps"),
    "shared_semijoins": ("co_deletes_in_a_three_way_join", "distinct_values_come_and_go"),
    "read_once": ("having_above_a_subquery", "aggregate_over_left_join"),
}
"""Histories in whose plans a pass shows. `known_keys` needs declared keys (`test_known_keys`), `join_order` sizes."""


def _plans(view: Maintained) -> list[object]:
    compiled = view.view
    changes = [frozenset(compiled.sources), *(frozenset({each}) for each in compiled.sources)]
    return [compiled.tree, compiled.companion, *map(compiled.delta_program, changes)]


@pytest.mark.parametrize("name", OPTIONAL)
def test_results_stay_equal_without_a_pass(name: str) -> None:
    off = frozenset({name})
    for stem in CHANGED.get(name, ()):
        case = parse((FOLDER / f"{stem}.txt").read_text()).case
        with_it, without = (_plans(Maintained(EXECUTOR, case, disabled=each)) for each in (frozenset[str](), off))
        assert with_it != without, stem
    for stem in ACID if LONG else CHANGED.get(name, ())[:2]:
        replay(EXECUTOR, parse((FOLDER / f"{stem}.txt").read_text()).case, disabled=off)


def test_each_pass_shows_in_some_history() -> None:
    assert set(OPTIONAL) - CHANGED.keys() == {"known_keys", "join_order"}


def test_results_stay_equal_without_any_optional_pass() -> None:
    for stem in ACID if LONG else ACID[:: len(OPTIONAL)]:
        replay(EXECUTOR, parse((FOLDER / f"{stem}.txt").read_text()).case, disabled=frozenset(OPTIONAL))
