"""Moving a project from the catalog's own database to a REST catalog and back: whole, disturbed, killed in between."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.moving_project import MovingProject, disturbed_by
from kit.nessie_server import Nessie
from kit.object_store import SECRET
from kit.rest_server import RestServer
from kit.surviving_spark import with_kit

import headrace
from headrace.api.facade import Headrace
from headrace.catalog import NewVersion, Publication, Swap, resource_of
from headrace.errors import EnvironmentFault, HeadraceError
from headrace.events import Event, Events, Notice
from headrace.names import LAKE, TableName
from headrace.project.lake_move import move_catalog as door

REVENUE = TableName(LAKE, ("shop",), "revenue")
THERE = ["_headrace.shop_revenue_companion", "_headrace.shop_revenue_log", "shop.orders", "shop.revenue"]


@pytest.fixture
def project(server: RestServer, tmp_path: Path) -> Iterator[MovingProject]:
    made = MovingProject(tmp_path / "shop", server.uri)
    made.hr.close()
    made.name_server()
    yield made
    made.close()
    made.clear()


@pytest.fixture
def in_nessie(nessie: Nessie, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MovingProject]:
    monkeypatch.setenv("TEST_S3_SECRET", SECRET)
    where = {"warehouse": f"{nessie.warehouse}/{tmp_path.name}", "storage": nessie.storage}
    made = MovingProject(tmp_path / "shop", nessie.uri, **where, settings="\n" + nessie.store.settings())
    made.hr.close()
    made.name_server()
    yield made
    made.close()
    made.clear()


def whole(project: MovingProject, *, orders: int = 3, revenue: int = 3) -> None:
    """The project opens, nothing of it is damaged, and readers of the server find its rows."""
    with headrace.open(project.root) as hr:
        assert [(row.name, row.damage) for row in hr.status()] == [("shop.revenue", None)]
        assert hr._catalog.foreign_writes() == ()
        assert hr._catalog.dirty_staging() == ()
    assert (project.rows_there("shop.orders"), project.rows_there("shop.revenue")) == (orders, revenue)
    assert project.registered() == THERE


def refused(project: MovingProject, **how: bool) -> HeadraceError:
    with pytest.raises(HeadraceError) as caught:
        project.move(**how)
    assert caught.value.hint
    return caught.value


def still_there(project: MovingProject) -> None:
    """The project goes on in its own database, as if nobody had moved it."""
    project.name_server(named=False)
    with headrace.open(project.root) as hr:
        assert [row.damage for row in hr.status()] == [None]
    assert project.rows("shop.revenue") == 3
    project.name_server()


def publish_one(hr: Headrace, project: MovingProject) -> None:
    """Publish three more rows of the stream table."""
    catalog = hr._catalog
    shown = catalog.pointers(LAKE, [REVENUE])[REVENUE].metadata_location
    staged = project.staged_rows("shop.revenue")
    newest = catalog.newest_versions()[REVENUE].version
    version = NewVersion(REVENUE, newest + 1, staged.snapshot)
    catalog.publish(Publication(swaps=(Swap(REVENUE, shown, staged.location),), versions=(version,)))


def test_a_project_moves_and_goes_on_there(project: MovingProject) -> None:
    project.view("few", "SELECT k FROM orders WHERE k < 2")
    with pytest.raises(HeadraceError) as caught:
        headrace.open(project.root)
    assert caught.value.code == "LAKE_CHANGED"
    assert "move-catalog" in str(caught.value.hint)
    planned = project.move(dry_run=True)
    assert not planned.moved
    assert {row.action for row in planned.tables} == {"registered"}
    assert project.registered() == []
    still_there(project)
    done = project.move()
    assert done.moved
    kinds = {row.name: row.kind for row in done.tables}
    assert kinds == dict(zip(THERE, ("companion", "change log", "table", "stream table"), strict=True)) | {
        "shop.few": "view"
    }
    whole(project)
    view = project.server.load_view("shop.few").metadata
    assert "k < 2" in str(view.versions[0].representations[0])
    assert view.properties["comment"] == "of a shop"
    with headrace.open(project.root) as hr:
        publish_one(hr, project)
    whole(project, revenue=6)
    again = project.move()
    assert (again.moved, again.tables) == (False, ())


def test_a_project_moves_to_a_product_and_back(in_nessie: MovingProject) -> None:
    """Nessie writes metadata files of its own, so that none is the one that was registered."""
    project = in_nessie
    assert project.move().moved
    whole(project)
    with headrace.open(project.root) as hr:
        publish_one(hr, project)
    whole(project, revenue=6)
    assert project.move(back=True).moved
    project.name_server(named=False)
    with headrace.open(project.root) as hr:
        assert [row.damage for row in hr.status()] == [None]
        publish_one(hr, project)
    assert (project.rows("shop.orders"), project.rows("shop.revenue")) == (3, 9)
    project.name_server()
    assert {row.name: row.action for row in project.move().tables}["shop.revenue"] == "registered anew"
    whole(project, revenue=9)


@pytest.mark.parametrize("step", ["one registered", "all registered", "moved"])
def test_a_move_that_was_killed_is_run_again(project: MovingProject, step: str) -> None:
    child = [sys.executable, "-m", "kit.moving_project", str(project.root), step]
    done = subprocess.run(child, capture_output=True, text=True, env=with_kit(), timeout=300, check=False)
    assert done.returncode == -9, done.stderr
    if step == "moved":
        whole(project)
    else:
        still_there(project)
        assert project.registered()
    result = project.move()
    assert result.moved is (step != "moved")
    if result.moved:
        assert "there already" in {row.action for row in result.tables}
    whole(project)


def test_an_interrupted_move_is_found_again_though_tables_were_written_meanwhile(project: MovingProject) -> None:
    child = [sys.executable, "-m", "kit.moving_project", str(project.root), "all registered"]
    subprocess.run(child, capture_output=True, text=True, env=with_kit(), timeout=300, check=False)
    project.append("shop.orders", 2)
    actions = {row.name: row.action for row in project.move().tables}
    assert actions["shop.orders"] == "registered anew"
    whole(project, orders=5)


def test_names_that_others_have_are_not_taken(project: MovingProject) -> None:
    project.server.create_namespace_if_not_exists("shop")
    schema = project.lake.load_table("shop.orders").schema()
    project.server.create_table("shop.revenue", schema=schema)
    error = refused(project)
    assert (error.code, "shop.revenue" in error.message) == ("LAKE_NAME_TAKEN", True)
    assert project.registered() == ["shop.revenue"]
    assert refused(project, dry_run=True).code == "LAKE_NAME_TAKEN"
    still_there(project)


def test_what_was_registered_before_a_failure_is_withdrawn(
    project: MovingProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(done: int, _: str) -> None:
        if done == 3:
            raise EnvironmentFault("LAKE_DENIED", "No.", hint="Be somebody else.")

    monkeypatch.setattr(door, "open_registrar", disturbed_by(fail))
    assert refused(project).code == "LAKE_DENIED"
    assert len(project.registered()) <= 1, "what the failure itself hides is found by the next move"
    still_there(project)
    monkeypatch.undo()
    project.move()
    whole(project)


def test_a_server_that_dies_in_between_leaves_what_the_next_move_finds(
    project: MovingProject, server: RestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Event] = []
    events = Events()
    events.subscribe(told.append)
    monkeypatch.setattr(door, "open_registrar", disturbed_by(lambda *_: server.kill()))
    with pytest.raises(HeadraceError) as caught:
        project.move(events=events)
    assert (caught.value.code, caught.value.retryable) == ("LAKE_UNREACHABLE", True)
    assert any("stay registered" in event.message for event in told if isinstance(event, Notice))
    monkeypatch.undo()
    server.start()
    still_there(project)
    project.move()
    whole(project)


def test_what_is_written_while_it_moves_moves_too(project: MovingProject, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []

    def write(_: int, name: str) -> None:
        if name == "shop.orders" and len(written) < 2:
            written.append(name)
            project.append(name, 2)

    monkeypatch.setattr(door, "open_registrar", disturbed_by(write))
    project.move()
    assert len(written) == 2
    whole(project, orders=7)


def test_a_table_that_is_written_all_the_time_cannot_move(
    project: MovingProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(_: int, name: str) -> None:
        if name == "shop.orders":
            project.append(name)

    monkeypatch.setattr(door, "open_registrar", disturbed_by(write))
    error = refused(project)
    assert (error.code, error.retryable) == ("LAKE_BUSY", True)
    assert project.registered() == []
    still_there(project)


def test_a_process_that_was_open_publishes_nothing_any_more(project: MovingProject) -> None:
    project.name_server(named=False)
    with headrace.open(project.root) as old:
        project.name_server()
        project.move()
        for attempt in (
            lambda: old._catalog.acquire([resource_of(REVENUE)], "old", dt.timedelta(minutes=1)),
            lambda: publish_one(old, project),
        ):
            with pytest.raises(HeadraceError) as caught:
                attempt()
            assert caught.value.code == "LAKE_CHANGED"
    with headrace.open(project.root) as new:
        new._catalog.reset_staging()
    whole(project)


def test_it_moves_back_and_forth(project: MovingProject) -> None:
    project.move()
    schema = project.lake.load_table("shop.orders").schema()
    project.server.create_table("shop.others", schema=schema)
    rows = project.lake.load_table("shop.orders").scan().to_arrow()
    project.server.load_table("shop.orders").append(rows)
    with headrace.open(project.root) as hr:
        publish_one(hr, project)
        hr._catalog.look()  # as somebody does who lists all tables
    planned = project.move(back=True, dry_run=True)
    assert (planned.moved, planned.left) == (False, ("shop.others",))
    done = project.move(back=True)
    assert [row.name for row in done.tables] == THERE
    assert "[lake]" in done.notes[0]
    with pytest.raises(HeadraceError) as caught:
        headrace.open(project.root)
    assert caught.value.code == "LAKE_CHANGED"
    project.name_server(named=False)
    with headrace.open(project.root) as hr:
        assert [row.damage for row in hr.status()] == [None]
    assert (project.rows("shop.orders"), project.rows("shop.revenue")) == (6, 6)
    assert not project.lake.table_exists("shop.others")
    project.append("shop.orders", 1)
    project.server.drop_table("shop.others")
    project.name_server()
    assert {row.name: row.action for row in project.move().tables} == dict.fromkeys(THERE, "there already") | {
        "shop.orders": "registered anew"
    }
    whole(project, orders=7, revenue=6)


def test_a_killed_way_back_is_done_or_not(project: MovingProject) -> None:
    project.move()
    child = [sys.executable, "-m", "kit.moving_project", str(project.root), "moved back"]
    done = subprocess.run(child, capture_output=True, text=True, env=with_kit(), timeout=300, check=False)
    assert done.returncode == -9, done.stderr
    assert not project.move(back=True).moved
    still_there(project)


def test_a_damaged_table_does_not_move_back(project: MovingProject) -> None:
    project.move()
    project.server.load_table("shop.revenue").delete()
    error = refused(project, back=True)
    assert error.code == "FOREIGN_WRITER"
    with headrace.open(project.root) as hr:
        hr.repair("shop.revenue")
    whole(project)
    assert project.move(back=True).moved
