"""A change as the rows it adds and the rows it removes."""

from __future__ import annotations

from collections import Counter

from kit.case import Row, bag
from kit.duck import DuckExecutor

from headrace.algebra.relations import Relation, Scan, Stored
from headrace.algebra.schema import Column
from headrace.ivm.consolidate import difference
from headrace.ivm.split_change import delete_rows, insert_rows
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


def test_rows_to_insert_and_to_delete() -> None:
    assert BAG.rows(insert_rows(CHANGE)) == Counter({(2, "b"): 3})
    assert BAG.rows(delete_rows(CHANGE)) == Counter({(1, "a"): 1, (None, None): 1})


def test_the_difference_of_two_tables_is_the_change_between_them() -> None:
    tables = Tables([(1, "a"), (1, "a"), (None, None)], [])
    tables.duck.define("new", COLUMNS, [(1, "a"), (None, None), (2, "b")])
    found = tables.rows(difference(STATE, Stored("new", NAMES)))
    assert found == Counter({(1, "a", -1): 1, (2, "b", 1): 1})
