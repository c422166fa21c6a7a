"""Tags on a table that several projects read: each sets its own, and drops none of the others'."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from catalog_kit.iceberg import Iceberg
from catalog_kit.ready import ready_catalog
from catalog_kit.samples import ORDERS, REVENUE, TOP, create, refresh, see

from headrace.catalog import Catalog, Publication
from headrace.errors import EnvironmentFault
from headrace.names import TableName
from headrace.refresh.groups.grouping import Defaults
from headrace.refresh.maintenance import MaintenanceResult, maintain

SALES = TableName("glue", ("sales",), "orders")


class Shared:
    """A session in front of a table with snapshots 1 to 9 in a catalog of its own; it knows tags alone.

    Args:
        folder: Where metadata files go.
    """

    def __init__(self, folder: Path) -> None:
        self._folder, self._files = folder, itertools.count()
        self.tags: dict[str, int] = {}
        self.gone = self.away = False

    def runner(self) -> Shared:
        return self

    def run(self, sql: str) -> list[object]:
        name, snapshot = re.fullmatch(r".* TAG (?:IF EXISTS )?`(.*?)`(?: AS OF VERSION (\d+))?", sql).groups()
        if snapshot is None:
            self.tags.pop(name, None)
        else:
            self.tags[name] = int(snapshot)
        return []

    def location(self, name: TableName) -> str | None:
        assert name == SALES
        if self.away:
            raise EnvironmentFault("SPARK_ERROR", "Catalog glue does not answer.")
        if self.gone:
            return None
        snapshots = [{"snapshot-id": n, "timestamp-ms": n, "schema-id": 0, "summary": {}} for n in range(1, 10)]
        content = {
            "format-version": 2,
            "table-uuid": "sales",
            "location": str(self._folder),
            "current-snapshot-id": 9,
            "schemas": [{"schema-id": 0, "fields": []}],
            "current-schema-id": 0,
            "snapshots": snapshots,
            "refs": {name: {"snapshot-id": snapshot, "type": "tag"} for name, snapshot in self.tags.items()},
        }
        file = self._folder / f"{next(self._files)}.metadata.json"
        file.write_text(json.dumps(content), encoding="utf-8")
        return str(file)

    def pinned(self) -> list[int]:
        return sorted(self.tags.values())


@pytest.fixture
def shared(tmp_path: Path) -> Shared:
    return Shared(tmp_path)


@pytest.fixture
def projects(tmp_path: Path) -> Iterator[list[Catalog]]:
    """Two projects with a stream table over the shared one, which reflects snapshot 1 in one and 2 in the other."""
    found = []
    for snapshot in (1, 2):
        url = ready_catalog(tmp_path / f"{snapshot}.db")
        catalog = Catalog.open(url)
        create(catalog, REVENUE, SALES)
        see(catalog, SALES, snapshot)
        catalog.publish(refresh(catalog, Iceberg(url), snapshot, REVENUE, sources=(SALES,)))
        found.append(catalog)
    yield found
    for catalog in found:
        catalog.close()


def maintained(catalog: Catalog, shared: Shared, *, dry_run: bool = False) -> tuple[MaintenanceResult, ...]:
    return maintain(
        catalog,
        shared,  # type: ignore[arg-type]
        older_than=dt.timedelta(days=7),
        orphans_older_than=dt.timedelta(days=1),
        dry_run=dry_run,
        defaults=Defaults(),
        wanted=lambda _: False,
    )


def test_projects_leave_each_others_pins(projects: list[Catalog], shared: Shared) -> None:
    for catalog in projects * 2:
        maintained(catalog, shared)
    assert shared.pinned() == [1, 2]
    marks = [catalog.pinned_sources()[SALES] for catalog in projects]
    assert shared.tags == {f"headrace-{mark}-{snapshot}": snapshot for snapshot, mark in enumerate(marks, 1)}
    assert not maintained(projects[0], shared)


def test_former_pins_go_where_they_are_of_what_the_project_has_seen(projects: list[Catalog], shared: Shared) -> None:
    shared.tags = {"headrace_1": 1, "headrace_2": 2, "headrace_mine": 1}
    maintained(projects[0], shared)
    mark = projects[0].pinned_sources()[SALES]
    assert shared.tags == {f"headrace-{mark}-1": 1, "headrace_2": 2, "headrace_mine": 1}


def test_what_nobody_reads_any_more_is_pinned_no_more(projects: list[Catalog], shared: Shared) -> None:
    first, second = projects
    for catalog in projects:
        maintained(catalog, shared)
    first.publish(Publication(drops=(REVENUE,), deletes=(REVENUE,)))
    assert [r.action for r in maintained(first, shared, dry_run=True)] == ["pin"]
    shared.away = True
    (told,) = maintained(first, shared)
    assert (told.action, told.name) == ("skipped", str(SALES))
    assert "[SPARK_ERROR] Catalog glue does not answer." in told.detail
    shared.away = False
    assert [r.action for r in maintained(first, shared)] == ["pin"]
    assert shared.pinned() == [2]
    assert not first.pinned_sources()
    shared.away = True  # nobody asks for it
    assert not maintained(first, shared)
    assert second.pinned_sources()


def test_a_source_that_is_gone_and_unread_is_forgotten(projects: list[Catalog], shared: Shared) -> None:
    first, _ = projects
    maintained(first, shared)
    first.publish(Publication(drops=(REVENUE,), deletes=(REVENUE,)))
    shared.gone = True
    assert not maintained(first, shared)
    assert not first.pinned_sources()


def test_what_is_stored_under_the_name_of_a_former_source_gets_no_tag(projects: list[Catalog], shared: Shared) -> None:
    first, _ = projects
    first.mark_pinned(TOP)
    create(first, TOP, SALES)
    maintained(first, shared)
    assert first.pinned_sources().keys() == {SALES}


def test_sources_of_one_project_have_one_mark(projects: list[Catalog]) -> None:
    first, second = projects
    marks = {first.mark_pinned(source) for source in (ORDERS, SALES, ORDERS)}
    assert len(marks) == 1
    assert second.mark_pinned(SALES) not in marks
