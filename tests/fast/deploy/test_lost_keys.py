"""Keys that a promotion takes away from readers outside."""

from __future__ import annotations

from catalog_kit.samples import create, lake, see

from headrace.catalog import Catalog
from headrace.definitions.details import Details, to_json
from headrace.deploy.deployment_results import LostKey
from headrace.deploy.exchanging.lost_keys import lost_keys
from headrace.semantics import Semantics

ORDERS, LINES, OUTSIDE, CARELESS = (lake(f"shop.{name}") for name in ("orders", "lines", "outside", "careless"))


def details(**more: object) -> Details:
    return Details("SELECT 1", (), Semantics(), (), (), {}, (), None, {}, **more)


def test_readers_that_rest_on_a_lost_key_are_named(timed: Catalog) -> None:
    see(timed, ORDERS)
    before = (("id",), ("id", "line"))
    create(timed, LINES, ORDERS, details=to_json(details(keys=before)))
    rests = details(source_keys={LINES: before}, rests_on_keys=True)
    create(timed, OUTSIDE, LINES, details=to_json(rests))
    create(timed, CARELESS, LINES, details=to_json(details(source_keys={LINES: before})))
    tables = {t.name: t for t in timed.stream_tables()}
    green = details(keys=(("id", "line"),))
    assert lost_keys(timed, tables, {LINES: green}, {LINES}) == (LostKey(str(OUTSIDE), str(LINES), ("id",)),)
    assert lost_keys(timed, tables, {LINES: green}, {LINES, OUTSIDE}) == ()
    assert lost_keys(timed, tables, {LINES: details(keys=before)}, {LINES}) == ()
