"""Before there is a history, the model takes the faster mode wherever what was measured leaves no doubt."""

from __future__ import annotations

import pytest
from catalog_kit.samples import REVENUE
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.maintained import Maintained, table_name
from kit.tpch import COLUMNS, compiled

from headrace.algebra.relations import Scan
from headrace.algebra.schema import Column
from headrace.algebra.tree import walk
from headrace.compiler import CompiledView
from headrace.demo import tpch22
from headrace.engine.choose import choose
from headrace.engine.details import Details, SourceUse
from headrace.engine.estimate import differential_seconds, full_seconds
from headrace.engine.facts import Common, Facts, SourceFacts
from headrace.engine.results import Mode, RefreshMode
from headrace.names import LAKE, TableName
from headrace.semantics import Semantics

SIZES = {
    "region": 5, "nation": 25, "supplier": 10_000, "customer": 150_000, "part": 200_000, "partsupp": 800_000,
    "orders": 1_500_000, "lineitem": 6_000_000,
}  # fmt: skip

TPCH = {
    "q01": (2.63, 0.45, 22.68, 0.79), "q03": (0.98, 0.52, 9.90, 1.41), "q04": (1.08, 0.56, 7.99, 1.09),
    "q05": (1.59, 0.48, 20.73, 1.08), "q06": (0.30, 0.19, 1.61, 0.46), "q07": (1.19, 0.46, 12.04, 1.07),
    "q08": (0.90, 0.69, 5.31, 1.26), "q09": (1.64, 0.56, 15.63, 1.76), "q10": (1.08, 0.77, 7.95, 1.62),
    "q12": (0.83, 0.34, 5.73, 0.94), "q13": (1.32, 0.89, 11.45, 1.38), "q14": (0.41, 0.23, 2.53, 0.57),
    "q15": (0.69, 0.76, 6.08, 1.38), "q17": (2.30, 0.77, 29.50, 3.21), "q18": (3.79, 0.81, 40.03, 1.78),
    "q19": (0.42, 0.16, 2.60, 0.40), "q20": (0.49, 0.62, 3.03, 1.89), "q21": (3.77, 1.07, 36.76, 1.82),
    "q22": (0.61, 0.51, 4.47, 1.66),
}  # fmt: skip
"""Seconds of FULL and of DIFFERENTIAL at scale 1, and at scale 10, 0.1 % of orders and line items changed.

What several of them read together was charged to each in equal parts.
"""
TOGETHER = frozenset(TableName(LAKE, ("s",), name) for name in list(TPCH)[1:17])

SRC = tuple(Column(*each.split()) for each in ("id bigint", "region int", "category string", "amount int", "score int"))
DIM = (Column("region", "int"), Column("label", "string"))
QUERIES = {
    "scan": "SELECT id, region, category, amount, score FROM src",
    "filter": "SELECT id, region, amount FROM src WHERE amount > 5000",
    "aggregate": "SELECT region, sum(amount) AS total, count(*) AS n FROM src GROUP BY region",
    "join": "SELECT s.id, s.region, s.amount, d.label FROM src s JOIN dim d ON d.region = s.region",
    "join + aggregate": "SELECT d.label, sum(s.amount) AS total, count(*) AS n FROM src s JOIN dim d "
    "ON d.region = s.region GROUP BY d.label",
}
SHARES = (0.01, 0.1, 0.5)
MATRIX = {
    ("scan", 1): ((0.54, 1.2), (0.53, 0.87), (0.44, 3.1)),
    ("filter", 1): ((0.30, 0.76), (0.30, 1.2), (0.34, 2.3)),
    ("aggregate", 1): ((0.21, 0.49), (0.23, 0.69), (0.25, 1.0)),
    ("join", 1): ((0.49, 0.78), (0.43, 1.2), (0.56, 2.7)),
    ("join + aggregate", 1): ((0.27, 0.45), (0.33, 0.73), (0.50, 1.3)),
    ("scan", 10): ((2.7, 2.0), (2.6, 4.5), (2.0, 31.0)),
    ("filter", 10): ((1.0, 1.4), (1.0, 2.7), (0.9, 11.0)),
    ("aggregate", 10): ((0.49, 0.96), (0.54, 1.7), (0.50, 14.3)),
    ("join", 10): ((2.5, 1.8), (2.2, 5.1), (2.0, 38.5)),
    ("join + aggregate", 10): ((0.99, 1.0), (0.99, 1.9), (0.71, 9.0)),
}
"""Seconds of FULL and of DIFFERENTIAL over so many million rows at each share."""
CLEAR = 1.5
"""By how much one mode must be faster to be taken for certain."""


def _facts(
    view: CompiledView,
    sizes: dict[str, int],
    changed: dict[str, int],
    state: int,
    together: frozenset[TableName] = frozenset(),
) -> Facts:
    scans = [node for node in walk(view.tree) if isinstance(node, Scan)] if view.tree is not None else []
    read = {name: {c for s in scans if s.source == name for c, _ in s.fields} for name in view.sources}
    uses = tuple(SourceUse(name, tuple(Column(c, "int") for c in sorted(read[name]))) for name in view.sources)
    details = Details(view.query, (), Semantics(), view.output, uses, {}, (), view.companion)
    common = Common("v", "c", "c", together)
    sources = tuple(
        SourceFacts(name, "t", "t", 2, "c", changed[name.table], rows=sizes[name.table], common=common)
        if name.table in changed
        else SourceFacts(name, "t", "t", 1, rows=sizes[name.table])
        for name in view.sources
    )
    companion = TableName(LAKE, ("s",), "companion") if view.companion is not None else None
    return Facts(REVENUE, details, RefreshMode.AUTO, sources, state, companion, None, 1, companion_rows=10_000)


def _told(view: CompiledView, facts: Facts) -> tuple[Mode, float, float]:
    sizes = {source.name: source.rows or 0 for source in facts.sources}
    program = view.delta_program(facts.changed, sizes=sizes)
    assert program is not None
    return choose(facts, view, program).mode, full_seconds(facts, view), differential_seconds(facts, program)


def _agrees(mode: Mode, measured: tuple[float, float]) -> bool:
    full, differential = measured
    if max(full, differential) < CLEAR * min(full, differential):
        return True
    return mode is (Mode.FULL if full < differential else Mode.DIFFERENTIAL)


@pytest.mark.parametrize("scale", [1, 10])
@pytest.mark.parametrize("name", TPCH)
def test_of_tpch(name: str, scale: int) -> None:
    view = compiled(tpch22.text(name))
    sizes = {table: rows if table in ("region", "nation") else rows * scale for table, rows in SIZES.items()}
    changed = {table: sizes[table] // 1000 for table in ("orders", "lineitem")}
    mode, full, differential = _told(view, _facts(view, sizes, changed, 100, TOGETHER))
    measured = TPCH[name][:2] if scale == 1 else TPCH[name][2:]
    assert _agrees(mode, measured), (mode, full, differential, measured)


@pytest.mark.parametrize("case", MATRIX)
def test_of_one_large_table(case: tuple[str, int]) -> None:
    name, millions = case
    rows = millions * 1_000_000
    tables = Table("src", SRC, ()), Table("dim", DIM, ())
    view = Maintained(DuckExecutor(), Case(QUERIES[name], tables)).view
    state = {"scan": rows, "filter": rows // 2, "join": rows}.get(name, 5)
    for share, measured in zip(SHARES, MATRIX[case], strict=True):
        # what is updated leaves and arrives
        facts = _facts(view, {"src": rows, "dim": 5}, {"src": int(1.7 * share * rows)}, state)
        mode, full, differential = _told(view, facts)
        assert _agrees(mode, measured), (share, mode, full, differential, measured)


def test_the_largest_are_followed() -> None:
    columns = "l_extendedprice, l_orderkey, l_linenumber"
    view = compiled(f"SELECT {columns} FROM lineitem ORDER BY {columns} LIMIT 100")
    assert _told(view, _facts(view, {"lineitem": 100_000_000}, {"lineitem": 1_000}, 100))[0] is Mode.DIFFERENTIAL


def test_names_are_of_tables_that_are_there() -> None:
    assert SIZES.keys() == COLUMNS.keys()
    assert table_name("src").table == "src"
