"""Tables that a deployment drops, and that come back with all that they had; no JVM starts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from catalog_kit.iceberg import Iceberg
from catalog_kit.ready import ready_project
from catalog_kit.samples import ORDERS, lake, refresh, see

import headrace
from headrace.catalog import Catalog, Definition, Publication, Status
from headrace.definitions.details import Details, SourceUse, to_json
from headrace.errors import HeadraceError
from headrace.frontier import Frontier
from headrace.reasons import FullReason
from headrace.semantics import Semantics

STOPPED, PAUSED, LEFT = (lake(f"shop.{name}") for name in ("stopped", "paused", "left"))

QUERY = f"SELECT * FROM {ORDERS}"
DETAILS = Details(QUERY, (), Semantics(), (), (SourceUse(ORDERS, ()),), {}, (), None)


def test_what_is_dropped_comes_back_as_it_was(tmp_path: Path) -> None:
    root = ready_project(tmp_path / "shop").root
    url = f"sqlite:///{root / 'headrace.db'}"
    with Catalog.open(url) as catalog:
        iceberg = Iceberg(url)
        for name in (STOPPED, PAUSED, LEFT):
            catalog.publish(Publication(definitions=(Definition(name, QUERY, (ORDERS,), details=to_json(DETAILS)),)))
        see(catalog)
        catalog.publish(refresh(catalog, iceberg, 1, STOPPED, PAUSED, LEFT))
        catalog.stop(STOPPED, "QUERY_FAILED", "its query fails")
        catalog.pause([PAUSED])
        former = [lake(f"shop__green_previous.{name.table}") for name in (STOPPED, PAUSED, LEFT)]
        with headrace.open(root) as hr:
            for name in (STOPPED, PAUSED, LEFT):
                hr.drop_with_green(str(name))
            hr.promote_all_green(keep_fresh=False)
            assert [t.name for t in catalog.stream_tables()] == sorted(former)
            assert catalog.stream_table(former[0]).status is Status.STOPPED
            hr.rollback_green(deployment="green")
            told = [entry.reason for entry in hr.history(str(LEFT), limit=None)]  # whatever it was called
            assert list(filter(None, told)) == [FullReason.ROLLED_BACK, FullReason.PROMOTED]
            hr.cancel_green(deployment="green")
        stopped = catalog.stream_table(STOPPED)
        assert (stopped.status, stopped.stopped_reason) == (Status.STOPPED, "its query fails")
        paused = {name for name, state in catalog.scheduling_states().items() if state.paused_at is not None}
        assert paused == {PAUSED}
        assert catalog.frontier(LEFT) == Frontier({ORDERS: 0})
        assert catalog.greens() == ()


def test_a_deployment_is_promoted_and_taken_back_whatever_part_of_it_was_already(tmp_path: Path) -> None:
    root = ready_project(tmp_path / "shop").root
    url = f"sqlite:///{root / 'headrace.db'}"
    with Catalog.open(url) as catalog, headrace.open(root) as hr:
        for name in (PAUSED, LEFT):
            catalog.publish(Publication(definitions=(Definition(name, QUERY, (ORDERS,), details=to_json(DETAILS)),)))
        see(catalog)
        catalog.publish(refresh(catalog, Iceberg(url), 1, PAUSED, LEFT))
        for name in (PAUSED, LEFT):
            hr.drop_with_green(str(name))
        hr.promote_green(str(LEFT))
        assert [t.name for t in hr.promote_all_green().tables] == [str(PAUSED)]
        assert refusal(hr.promote_all_green) == "ALREADY_PROMOTED"
        hr.rollback_green(str(LEFT))
        assert [t.name for t in hr.rollback_green(deployment="green").tables] == [str(PAUSED)]
        assert refusal(lambda: hr.rollback_green(deployment="green")) == "NOT_PROMOTED"


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(HeadraceError) as refused:
        act()
    return refused.value.code
