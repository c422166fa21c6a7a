"""Surroundings of a table as a refresh reads them, over a real catalog."""

from __future__ import annotations

from dataclasses import replace

from catalog_kit.iceberg import Iceberg
from catalog_kit.samples import ITEMS, ORDERS, REVENUE, TOP, create, define, entry, lake, refresh, see

from headrace.catalog import Catalog, Mirror, Outcome, Publication, SourceMove
from headrace.definitions.details import Details, to_json
from headrace.reasons import FullReason
from headrace.refresh.cut.align_cut import wants_alignment
from headrace.refresh.definition.source_keys import SourceKeys
from headrace.refresh.fuses.fuse import CHANGED, ENOUGH, FEW_ROWS, Fuse, judge
from headrace.refresh.gather_facts import known, redefined
from headrace.refresh.groups.grouping import Defaults
from headrace.semantics import Semantics


def test_a_fuse_that_stays_blown_does_not_forget_what_is_usual(catalog: Catalog) -> None:
    create(catalog)
    usual = entry(REVENUE, outcome=Outcome.OK, metrics={CHANGED: {str(ORDERS): 10}})
    catalog.record([usual] * ENOUGH)
    for _ in range(50):
        assert judge(Fuse(factor=10), {ORDERS: FEW_ROWS + 1}, known(catalog, REVENUE).history) is not None
        catalog.record((entry(REVENUE, outcome=Outcome.FAILED, error_code="FUSE_BLOWN"),))


def test_surroundings_are_those_of_the_new_definition(catalog: Catalog, url: str) -> None:
    see(catalog)
    create(catalog, options={"diamond_consistency": "aligned"})
    create(catalog, TOP, REVENUE)
    iceberg = Iceberg(url)
    catalog.publish(refresh(catalog, iceberg, 1, REVENUE))
    catalog.publish(refresh(catalog, iceberg, 1, TOP, sources=(REVENUE,)))
    before = known(catalog, REVENUE)
    new = define(REVENUE, ITEMS, options={"diamond_consistency": "none"})
    after = redefined(before, new, FullReason.DEFINITION_CHANGED)
    assert wants_alignment(before.table, Defaults())
    assert not wants_alignment(after.table, Defaults())
    assert after.streams == {**before.streams, REVENUE: after.table}
    assert set(after.frontiers) == {TOP}
    same = redefined(before, define(REVENUE, ITEMS), FullReason.DEFINITION_CHANGED)
    assert wants_alignment(same.table, Defaults())  # options that are not given stay


def test_mirrors_have_the_keys_of_their_tables(catalog: Catalog) -> None:
    mirrors = [Mirror(name, lake(f"_headrace.{name.table}_log")) for name in (ORDERS, ITEMS)]
    catalog.create_source("shop", "postgres", {}, mirrors)
    assert SourceKeys(catalog).of([ORDERS]) == {}
    keys = {ORDERS: ["line", "id"], ITEMS: []}
    landed = tuple(Mirror(m.name, m.log, {"key": keys[m.name]}) for m in mirrors)
    catalog.publish(Publication(sources=(SourceMove("shop", None, {"lsn": 1}, landed),)))
    catalog.declare_key(ORDERS, ["id", "line"])
    assert SourceKeys(catalog).of([ORDERS, ITEMS]) == {ORDERS: (("id", "line"),)}


def test_a_key_counts_where_no_version_without_it_can_be_read(catalog: Catalog, url: str) -> None:
    """The table gained its key at version 1; a gate, or who is read beside it, may still show version 0."""
    iceberg = Iceberg(url)
    mirror = Mirror(ORDERS, lake("_headrace.orders_log"))
    catalog.create_source("shop", "postgres", {}, [mirror])
    see(catalog)
    plain = to_json(Details("", (), Semantics("UTC", ansi=True, case_sensitive=False), (), (), {}, (), None))
    create(catalog, REVENUE, ORDERS, details=plain)
    catalog.publish(refresh(catalog, iceberg, 1, REVENUE))
    catalog.close_gates([ORDERS])
    see(catalog, snapshot=2)
    keyed = replace(mirror, details={"key": ["id"], "key_since": 1})
    catalog.publish(Publication(sources=(SourceMove("shop", None, {"lsn": 1}, (keyed,)),)))
    assert SourceKeys(catalog).of([ORDERS]) == {}
    catalog.open_gates([ORDERS])
    assert SourceKeys(catalog).of([ORDERS]) == {ORDERS: (("id",),)}
    # aligned with a table that reflects version 0, a reader of both reads that one
    assert SourceKeys(catalog).of([ORDERS, REVENUE]) == {}
    create(catalog, TOP, REVENUE, details=plain)
    assert SourceKeys(catalog).of([ORDERS, TOP]) == {}
    catalog.publish(refresh(catalog, iceberg, 2, REVENUE))
    assert SourceKeys(catalog).of([ORDERS, REVENUE]) == {ORDERS: (("id",),)}
