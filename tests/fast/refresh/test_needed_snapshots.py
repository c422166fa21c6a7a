"""Which snapshots maintenance leaves, and what the catalog is asked for them."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
from catalog_kit.iceberg import Iceberg
from catalog_kit.samples import ORDERS, create, entry, lake, refresh, see
from catalog_kit.statements import statements

from headrace.catalog import Catalog, Publication, resource_of
from headrace.catalog import schema as t
from headrace.catalog.state import old_versions
from headrace.errors import EnvironmentFault
from headrace.names import TableName
from headrace.refresh.groups.grouping import Defaults
from headrace.refresh.held_leases import holding_leases
from headrace.refresh.maintenance import MaintenanceResult, maintain, needs_of

FEW, MORE = 2, 8


class NothingThere:
    """A runner in front of a warehouse that does not answer with a file."""

    def run(self, sql: str) -> list[object]:
        return []

    def purge(self, metadata_location: str, table: TableName) -> bool:
        raise EnvironmentFault("FILE_MISSING", "A file that a table needs is missing.")


def kept_up(
    catalog: Catalog,
    runner: object,
    *,
    dry_run: bool = False,
    wanted: Callable[[TableName], bool] = lambda _: False,
    waits: Callable[[], bool] = lambda: False,
    keep_history: dt.timedelta | None = None,
    older_than: dt.timedelta = dt.timedelta(0),
) -> tuple[MaintenanceResult, ...]:
    """Maintain no table that is there, unless others are wanted, and what was dropped."""
    return maintain(
        catalog,
        SimpleNamespace(location=lambda _: None, runner=lambda: runner),
        older_than=older_than,
        orphans_older_than=dt.timedelta(days=1),
        dry_run=dry_run,
        wanted=wanted,
        waits=waits,
        keep_history=keep_history,
        defaults=Defaults(),
    )


def refreshed(catalog: Catalog, url: str, first: int, count: int) -> None:
    """Make stream tables with a sink each; of every one the frontier is of another version of `orders`."""
    iceberg = Iceberg(url)
    for number in range(first, first + count):
        name = lake(f"shop.t{number}")
        create(catalog, name, ORDERS)
        see(catalog, ORDERS, 100 + number)
        catalog.publish(refresh(catalog, iceberg, number, name))
        catalog.create_sink(f"s{number}", f"uuid-{number}", "postgres", name, {}, None)
        catalog.note_sink_written(f"uuid-{number}", 0, 0)


def test_versions_of_all_frontiers_gates_and_sinks_are_needed(catalog: Catalog, url: str) -> None:
    refreshed(catalog, url, 0, FEW)
    see(catalog, ORDERS, 200)
    catalog.close_gates([ORDERS])
    see(catalog, ORDERS, 300)
    first = lake("shop.t0")
    catalog.publish(refresh(catalog, Iceberg(url), 7, first))
    found = needs_of(catalog, Defaults()).snapshots
    assert found[ORDERS] == {101, 200, 300}  # 300 is what the first now reflects
    assert found[first] == {1000, 1007}  # its sink has the earlier one
    assert found[lake("shop.t1")] == {1001}


def test_the_catalog_is_asked_as_often_for_many_tables_as_for_few(catalog: Catalog, url: str) -> None:
    refreshed(catalog, url, 0, FEW)
    with statements(catalog) as few:
        needs_of(catalog, Defaults())
    refreshed(catalog, url, FEW, MORE)
    with statements(catalog) as many:
        found = needs_of(catalog, Defaults())
    assert found.snapshots[ORDERS] == {100 + number for number in range(FEW + MORE)}
    assert len(many) == len(few)


def test_a_server_is_asked_for_all_tables_at_once_whether_it_keeps_files(
    catalog: Catalog, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    refreshed(catalog, url, 0, 3)
    catalog.drop_sink("s0")
    catalog.publish(Publication(drops=(lake("shop.t0"),), deletes=(lake("shop.t0"),)))
    asked: list[set[TableName]] = []

    def kept(names: Collection[TableName]) -> frozenset[TableName]:
        asked.append(set(names))
        return frozenset()

    monkeypatch.setattr(catalog, "files_kept_by_server", kept)
    done = kept_up(catalog, None, dry_run=True)
    assert [result.action for result in done] == ["remove_dropped"]
    assert asked == [{lake("shop.t1"), lake("shop.t2")}]


def test_dropped_tables_whose_files_are_gone_are_removed_unless_all_files_are_away(
    catalog: Catalog, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # metadata files of these tables have no folder
    refreshed(catalog, url, 0, 2)
    catalog.drop_sink("s0")
    catalog.publish(Publication(drops=(lake("shop.t0"),), deletes=(lake("shop.t0"),)))
    assert [result.action for result in kept_up(catalog, NothingThere())] == ["skipped"]  # such as a disk not mounted
    (tmp_path / "t1-1").write_text("{}")
    assert [result.action for result in kept_up(catalog, NothingThere())] == ["remove_dropped"]
    assert not kept_up(catalog, NothingThere())


def test_a_table_that_is_being_refreshed_is_waited_for_where_that_is_asked(catalog: Catalog, url: str) -> None:
    refreshed(catalog, url, 0, 1)
    with ExitStack() as others:
        others.enter_context(holding_leases(catalog, [resource_of(lake("shop.t0"))]))
        asked: list[int] = []

        def waits() -> bool:
            asked.append(len(asked))
            if len(asked) == 2:
                others.close()
            return len(asked) < 5

        (left,) = kept_up(catalog, None, wanted=lambda _: True)
        assert left.action == "skipped"
        (came,) = kept_up(catalog, None, wanted=lambda _: True, waits=waits)
    assert "METADATA_UNREADABLE" in came.detail  # its turn came, and there are no files


def test_maintenance_of_all_tables_forgets_old_refreshes(catalog: Catalog) -> None:
    ended = catalog.now() - dt.timedelta(days=3)
    catalog.record([replace(entry(lake("shop.dropped")), finished_at=ended) for _ in range(2)])
    assert not kept_up(catalog, None)
    assert not kept_up(catalog, None, keep_history=dt.timedelta(days=4))
    (told,) = kept_up(catalog, None, keep_history=dt.timedelta(days=2), dry_run=True)
    assert (told.name, told.action, told.detail[:16]) == ("history", "trim_history", "2 that ended bef")
    assert [r.action for r in kept_up(catalog, None, keep_history=dt.timedelta(days=2))] == ["trim_history"]
    assert not catalog.history()


def test_maintenance_of_all_tables_forgets_versions_with_their_snapshots(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(old_versions, "PAST", 1)
    source = lake("shop.unread")
    for number in range(4):
        see(catalog, source, number)
    assert not kept_up(catalog, None)
    with catalog._database.write() as connection:
        connection.execute(sa.update(t.version).values(committed_at=catalog.now() - dt.timedelta(days=8)))
    assert not kept_up(catalog, None, older_than=dt.timedelta(days=9))
    (told,) = kept_up(catalog, None, dry_run=True)
    assert (told.name, told.action, told.detail[:22]) == ("versions", "trim_versions", "2 that were superseded")
    assert [r.action for r in kept_up(catalog, None)] == ["trim_versions"]
    assert [v.version for v in catalog.versions(source)] == [2, 3]
