"""What is written for a change."""

from __future__ import annotations

from collections import Counter

import duckdb
import pytest
from kit.case import Row, bag
from kit.duck import DuckExecutor

from headrace.algebra.relations import Relation, Scan, Stored
from headrace.algebra.schema import Column
from headrace.ivm.consolidate import difference
from headrace.ivm.new_contents import delete_rows, insert_rows, merged_state, replaced_state
from headrace.names import WEIGHT
from headrace.sql.lower import lower

COLUMNS = (Column("k", "int"), Column("v", "string"))
NAMES = ("k", "v")
STATE, CHANGE = Stored("state", NAMES), Stored("change", (*NAMES, WEIGHT))


class Tables:
    """A state and a change in DuckDB."""

    def __init__(self, state: list[Row], change: list[Row]) -> None:
        self.duck = DuckExecutor()
        self.duck.define("state", COLUMNS, state)
        self.duck.define("change", (*COLUMNS, Column(WEIGHT, "bigint")), change)

    def rows(self, relation: Relation) -> Counter[Row]:
        def bind(leaf: Scan | Stored) -> str:
            assert isinstance(leaf, Stored)
            return leaf.name

        return bag(self.duck.rows(lower(relation, bind)))


BAG = Tables([(1, "a"), (1, "a"), (None, None)], [(1, "a", -1), (None, None, -1), (2, "b", 3)])
KEYED = Tables([(1, "a"), (None, "n"), (3, "c")], [(1, "a", -1), (1, "b", 1), (None, "n", -1), (4, "d", 1)])


def test_a_bag_is_merged_with_its_copies() -> None:
    assert BAG.rows(merged_state(STATE, CHANGE, None)) == Counter({(1, "a"): 1, (2, "b"): 3})


def test_a_keyed_table_is_merged() -> None:
    expected = Counter({(1, "b"): 1, (3, "c"): 1, (4, "d"): 1})
    assert KEYED.rows(merged_state(STATE, CHANGE, ("k",))) == expected
    assert KEYED.rows(replaced_state(STATE, CHANGE, ("k",))) == expected


def test_a_table_of_one_row_is_merged() -> None:
    one = Tables([(1, "a")], [(1, "a", -1), (2, "b", 1)])
    assert one.rows(merged_state(STATE, CHANGE, ())) == Counter({(2, "b"): 1})


@pytest.mark.parametrize("key", [None, ("k",)])
def test_removing_what_is_not_there_fails(key: tuple[str, ...] | None) -> None:
    wrong = Tables([(1, "a")], [(1, "other", -1)])
    with pytest.raises(duckdb.Error, match="STATE_DIVERGED"):
        wrong.rows(merged_state(STATE, CHANGE, key))


def test_rows_to_insert_and_to_delete() -> None:
    assert BAG.rows(insert_rows(CHANGE)) == Counter({(2, "b"): 3})
    assert BAG.rows(delete_rows(CHANGE)) == Counter({(1, "a"): 1, (None, None): 1})
    assert KEYED.rows(insert_rows(CHANGE, repeated=False)) == KEYED.rows(insert_rows(CHANGE))
    assert KEYED.rows(delete_rows(CHANGE, repeated=False)) == KEYED.rows(delete_rows(CHANGE))


def test_the_difference_of_two_tables_is_the_change_between_them() -> None:
    tables = Tables([(1, "a"), (1, "a"), (None, None)], [])
    tables.duck.define("new", COLUMNS, [(1, "a"), (None, None), (2, "b")])
    found = tables.rows(difference(STATE, Stored("new", NAMES)))
    assert found == Counter({(1, "a", -1): 1, (2, "b", 1): 1})
