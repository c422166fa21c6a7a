"""`headrace lineage`, and what it reads: definitions in the catalog, without Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from catalog_kit.samples import lake
from catalog_kit.stream_tables import create_stream_table

from headrace import Headrace, config
from headrace.algebra.schema import Column
from headrace.catalog import Catalog, Definition
from headrace.definitions.details import Details, SourceUse, to_json
from headrace.errors import UserError
from headrace.names import CLOCK
from headrace.semantics import Semantics

from .conftest import Run

QUERIES = {
    "s.big": ("SELECT id, amount * 2 AS twice, region FROM s.orders WHERE id > 1", "s.orders", "id amount region"),
    "s.sums": ("SELECT region, sum(twice) AS total, count(*) AS n FROM s.v GROUP BY region", "s.big", "region twice"),
    "s.odd": ("SELECT unheard_of(region) AS r FROM s.orders", "s.orders", "region"),
    "s.drawn": ("SELECT region AS `<r>`, rand() AS x FROM s.orders", "s.orders", "region"),
    "s.on_odd": ("SELECT r FROM s.odd", "s.odd", "r"),
}
OUTPUT = {"s.big": "id twice region", "s.sums": "region total n", "s.odd": "r", "s.drawn": "<r> x", "s.on_odd": "r"}


@pytest.fixture
def defined(project: Path) -> Path:
    with Catalog.open(f"sqlite:///{project / 'headrace.db'}") as catalog:
        for name, (query, source, columns) in QUERIES.items():
            use = SourceUse(lake(source), _columns(columns), tuple(columns.split()))
            views = {lake("s.v"): "SELECT * FROM s.big"} if "s.v" in query else {}
            details = Details(query, (), Semantics(), _columns(OUTPUT[name]), (use,), views, (), None)
            create_stream_table(catalog, Definition(lake(name), query, (lake(source),), details=to_json(details)))
    return project


def test_the_time_of_a_refresh_is_no_table(project: Path) -> None:
    query = f"SELECT id, (SELECT at FROM {CLOCK.sql}) AS t FROM s.orders WHERE at > (SELECT at FROM {CLOCK.sql})"
    uses = (SourceUse(lake("s.orders"), _columns("id at")), SourceUse(CLOCK, _columns("at")))
    details = Details(query, (), Semantics(), _columns("id t"), uses, {}, (), None)
    definition = Definition(lake("s.recent"), query, (lake("s.orders"), CLOCK), details=to_json(details))
    with Catalog.open(f"sqlite:///{project / 'headrace.db'}") as catalog:
        create_stream_table(catalog, definition)
    with Headrace(config.load(project)) as hr:
        found = hr.lineage("s.recent", base=True)
    assert found.unknown is None
    assert found.reads == ("s.orders",)
    assert [(c.name, len(c.origins)) for c in found.columns] == [("id", 1), ("t", 0)]
    assert {(o.table, o.column, o.influence.value) for o in found.rows} == {("s.orders", "at", "FILTER")}


def _columns(names: str) -> tuple[Column, ...]:
    return tuple(Column(name, "int") for name in names.split())


def test_columns_are_shown_with_how_they_come_about(run: Run, defined: Path) -> None:
    lines = run("lineage", "s.sums", "-p", defined).stdout.splitlines()
    found = [line.split() for line in lines if "s.big" in line or "counted" in line]
    assert found == [
        ["region", "IDENTITY", "s.big.region"],
        ["total", "AGGREGATION", "s.big.twice"],
        ["n", "–", "constants,", "or", "rows", "that", "are", "counted"],
        ["which", "rows", "GROUP_BY", "s.big.region"],
    ]


def test_stream_tables_are_followed(run: Run, defined: Path) -> None:
    found = json.loads(run("lineage", "s.sums.TOTAL", "--base", "--json", "-p", defined).stdout)
    assert found == {
        "table": "s.sums",
        "reads": ["s.big"],
        "columns": [
            {
                "name": "total",
                "origins": [{"table": "s.orders", "column": "amount", "influence": "AGGREGATION"}],
            }
        ],
        "rows": [
            {"table": "s.orders", "column": "id", "influence": "FILTER"},
            {"table": "s.orders", "column": "region", "influence": "GROUP_BY"},
        ],
        "unknown": None,
        "base": True,
    }


def test_queries_that_are_recomputed_have_one_as_far_as_they_are_read(run: Run, defined: Path) -> None:
    assert "s.orders.region" in run("lineage", "s.drawn.`<r>`", "-p", defined).stdout
    unknown = run("lineage", "s.odd", "-p", defined)
    assert unknown.exit_code == 0
    assert "is not known. Headrace does not read unheard_of()." in unknown.stdout
    above = json.loads(run("lineage", "s.on_odd", "--base", "--json", "-p", defined).stdout)
    assert above["columns"][0]["origins"] == [{"table": "s.odd", "column": "r", "influence": "IDENTITY"}]


def test_names_that_are_not_there(run: Run, defined: Path) -> None:
    assert "STREAM_TABLE_NOT_FOUND" in run("lineage", "s.sum", "-p", defined).output
    missing = run("lineage", "s.sums.totl", "-p", defined)
    assert (missing.exit_code, "COLUMN_NOT_FOUND" in missing.output) == (1, True)
    assert "total" in missing.output
    with Headrace(config.load(defined)) as hr, pytest.raises(UserError, match="There is no stream table"):
        hr.lineage("s.orders")
