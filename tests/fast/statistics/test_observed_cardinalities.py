"""How many rows are expected of a step."""

from __future__ import annotations

from catalog_kit.samples import REVENUE, TOP

from headrace.definitions.table_memory import TableMemory
from headrace.statistics.observed_cardinalities import MARGIN, ObservedCardinalities


def test_rows_grow_with_the_change() -> None:
    sizes = ObservedCardinalities()
    assert sizes.at_most(REVENUE, "change", 30_000) is None
    sizes.note(REVENUE, "change", 30_000, 10)
    sizes.note(REVENUE, "touched", 30_000, 0)
    assert sizes.at_most(REVENUE, "change", 30_000) == 10 * MARGIN
    assert sizes.at_most(REVENUE, "change", 3_000_000) == 1_000 * MARGIN
    assert sizes.at_most(REVENUE, "change", 25_000) == 10 * MARGIN  # they need not become fewer
    assert sizes.at_most(REVENUE, "touched", 3_000_000) == 100 * MARGIN
    assert sizes.at_most(TOP, "change", 30_000) is None


def test_tables_that_are_gone_are_forgotten() -> None:
    memory = TableMemory()
    sizes = ObservedCardinalities(memory)
    sizes.note(REVENUE, "change", 30_000, 10)
    sizes.note(TOP, "change", 30_000, 10)
    memory.keep_only([TOP])
    assert sizes.at_most(REVENUE, "change", 1) is None
    assert sizes.at_most(TOP, "change", 1) is not None
