"""What is loaded together with a stream table that is new, or defined anew."""

from __future__ import annotations

from pathlib import Path

import pytest
from catalog_kit.ready import ready_catalog
from catalog_kit.samples import create, define, lake
from catalog_kit.stream_tables import replace_stream_table

from headrace.algebra.schema import Column
from headrace.catalog import Catalog, Status
from headrace.clock import SystemClock
from headrace.definitions.details import Details, SourceUse, to_json
from headrace.names import TableName
from headrace.refresh.groups.grouping import Defaults, grouping
from headrace.refresh.groups.load_plan import held_up, load_plan, lose_columns
from headrace.semantics import Semantics

A, B, C, D, E, F = (lake(f"shop.{name}") for name in "abcdef")
READS = {B: (A,), C: (A,), D: (B, C), E: (D,), F: (A, E)}
"""A diamond b, c, d, and one around it that makes all five one group."""


@pytest.fixture
def catalog(tmp_path: Path) -> Catalog:
    opened = Catalog.open(ready_catalog(tmp_path / "headrace.db"), clock=SystemClock())
    for name, sources in READS.items():
        create(opened, name, *sources)
    return opened


def planned(catalog: Catalog, *left_alone: TableName, name: TableName = D) -> tuple[str, bool, bool]:
    cut = grouping({t.name: t for t in catalog.stream_tables()}, Defaults())
    plan = load_plan(cut, name, frozenset(left_alone))
    assert plan.group in ((), plan.members)
    return "".join(member.table for member in plan.members), bool(plan.group), plan.aligned


def test_a_member_is_loaded_with_its_group(catalog: Catalog) -> None:
    assert planned(catalog) == ("bcdef", True, False)
    assert planned(catalog, E) == ("bcd", False, False)  # e is left out with f, which reads it
    assert planned(catalog, C) == ("d", False, True)  # what it reads stays: alone, from versions that agree
    assert planned(catalog, C, name=B) == ("b", False, False)
    assert planned(catalog, D) == ("bcdef", True, False)  # what is mended is not left out


def test_who_cannot_go_along(catalog: Catalog) -> None:
    catalog.stop(B, "SOURCE_SCHEMA_CHANGED", "gone")
    catalog.pause([C])
    tables = {t.name: t for t in catalog.stream_tables()}
    assert tables[B].status is Status.STOPPED
    assert held_up(tables, catalog.scheduling_states()) == {B, C}


def test_readers_of_a_column_that_a_new_definition_does_not_give(catalog: Catalog) -> None:
    def details(output: tuple[Column, ...], *uses: SourceUse) -> Details:
        return Details("SELECT 1", ("shop",), Semantics(), output, uses, {}, (), None)

    k, v = Column("k", "bigint"), Column("v", "bigint")
    for name, columns in ((D, (k,)), (C, (k, v))):
        use = details((k,), SourceUse(B, columns))
        replace_stream_table(catalog, define(name, B, details=to_json(use)))
    replace_stream_table(catalog, define(E, A, details=to_json(details((k,), SourceUse(A, (k,))))))
    tables = {t.name: t for t in catalog.stream_tables() if t.name not in (B, F)}
    assert lose_columns(tables, B, details((k, v))) == set()
    assert lose_columns(tables, B, details((Column("K", "bigint"),))) == {C}
    assert lose_columns(tables, B, details((Column("k", "string"), v))) == {C, D}
