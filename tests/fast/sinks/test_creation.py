"""Sinks over real Iceberg tables, without Spark: how they are created and written, and what goes wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from catalog_kit.proxy import BreakingProxy
from catalog_kit.stream_tables import create_stream_table
from kit.logical import LogicalServer
from kit.sink_rows import new_sink, options
from kit.stored_project import StoredProject, with_revenue

from headrace.catalog import Definition, LogChange, NewVersion, Publication, Swap
from headrace.delivery import deliverer
from headrace.errors import EnvironmentFault, UserError
from headrace.events import SinkFailed, StageStarted
from headrace.names import LAKE, TableName
from headrace.refresh.definition import stored_tables

REVENUE = TableName(LAKE, ("shop",), "revenue")

Meanwhile = Callable[[Callable[[], object]], None]


@pytest.fixture
def project(tmp_path: Path) -> Iterator[StoredProject]:
    with with_revenue(tmp_path / "shop") as made:
        yield made


def advance(project: StoredProject, version: int) -> None:
    """Publish a version of `shop.revenue` with one more row."""
    catalog = project.hr._catalog
    before = catalog.pointers(LAKE, [REVENUE])[REVENUE].metadata_location
    table = project.staging.load_table("shop.revenue")
    table.append(pa.table({"k": pa.array([100 + version], pa.int64())}))
    snapshot = table.current_snapshot()
    assert snapshot is not None
    new = NewVersion(REVENUE, version, snapshot.snapshot_id, 3 + version, str(table.metadata.table_uuid))
    catalog.publish(Publication(swaps=(Swap(REVENUE, before),), versions=(new,)))


def there(db: psycopg.Connection) -> list[Any]:
    return [row[0] for row in db.execute("SELECT k FROM out ORDER BY k").fetchall()]


def test_a_change_log_that_a_new_sink_reads_is_not_ended(
    project: StoredProject, url: str, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sink comes after it was found that nobody reads the log, and before the log is ended."""
    holding = stored_tables.holding_leases

    def held_once_a_sink_reads_it(catalog: Any, resources: Sequence[str], **given: Any) -> AbstractContextManager[Any]:
        monkeypatch.setattr(stored_tables, "holding_leases", holding)
        project.hr.sinks.create("out", "shop.revenue", url, "public.out")
        return holding(catalog, resources, **given)

    monkeypatch.setattr(stored_tables, "holding_leases", held_once_a_sink_reads_it)
    project.hr._engine().creator.tables.end_unread_logs()
    assert project.hr.sinks.status("out").version == 0
    assert project.hr._catalog.stream_table(REVENUE).log is not None


def test_a_sink_goes_on_without_a_change_log(project: StoredProject, url: str, db: psycopg.Connection) -> None:
    catalog = project.hr._catalog
    catalog.publish(Publication(logs=(LogChange(REVENUE, None),)))
    catalog.create_sink("out", new_sink(), "postgres", REVENUE, options(url), None)
    (written,) = project.hr.sinks.write("out")
    assert (written.how, written.rows) == ("load", 3)
    for version in (1, 2):
        advance(project, version)
        (written,) = project.hr.sinks.write("out")
        assert (written.how, written.inserted, written.deleted) == ("difference", 1, 0)
    assert there(db) == [0, 1, 2, 101, 102]


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Has something done by others while the leases of a sink that is written next are waited for."""
    holding = deliverer.holding_leases

    def arrange(act: Callable[[], object]) -> None:
        def held_afterwards(*given: Any, **named: Any) -> AbstractContextManager[Any]:
            monkeypatch.setattr(deliverer, "holding_leases", holding)
            act()
            return holding(*given, **named)

        monkeypatch.setattr(deliverer, "holding_leases", held_afterwards)

    return arrange


def test_a_sink_that_was_dropped_while_it_was_waited_for_is_not_written(
    project: StoredProject, url: str, db: psycopg.Connection, meanwhile: Meanwhile
) -> None:
    sinks = project.hr.sinks
    sinks.create("out", "shop.revenue", url, "public.out", on_conflict="overwrite")
    advance(project, 1)
    meanwhile(lambda: sinks.drop("out"))
    assert sinks.write_for(None) is None
    assert there(db) == [0, 1, 2]
    assert db.execute("SELECT count(*) FROM headrace.sink_position").fetchone() == (0,)


def test_a_sink_that_was_dropped_while_it_was_waited_for_is_not_resynced(
    project: StoredProject, url: str, meanwhile: Meanwhile
) -> None:
    sinks = project.hr.sinks
    sinks.create("out", "shop.revenue", url, "public.out", on_conflict="overwrite")
    meanwhile(lambda: sinks.drop("out"))
    with pytest.raises(UserError, match="SINK_UNKNOWN"):
        sinks.resync("out")


def test_a_sink_of_a_stream_table_that_was_never_loaded_is_not_resynced(project: StoredProject, url: str) -> None:
    catalog, young = project.hr._catalog, TableName(LAKE, ("shop",), "young")
    of = catalog.stream_table(REVENUE)
    create_stream_table(catalog, Definition(young, of.query, of.sources, details=of.details))
    catalog.create_sink("out", new_sink(), "postgres", young, options(url), None)
    assert project.hr.sinks.write("out") == ()
    with pytest.raises(UserError, match="NOT_LOADED") as told:
        project.hr.sinks.resync("out")
    assert "shop.young" in str(told.value)


def test_a_sink_that_was_made_anew_while_its_drop_waited_leaves_no_position(
    project: StoredProject, url: str, db: psycopg.Connection, meanwhile: Meanwhile
) -> None:
    sinks = project.hr.sinks

    def create() -> None:
        sinks.create("out", "shop.revenue", url, "public.out", on_conflict="overwrite")

    def made_anew() -> None:
        sinks.drop("out")
        create()

    create()
    sinks.create("beside", "shop.revenue", url, "public.beside", on_conflict="overwrite")  # keeps the change log
    meanwhile(made_anew)
    sinks.drop("out")
    assert [sink.name for sink in sinks.list()] == ["beside"]
    assert db.execute("SELECT count(*) FROM headrace.sink_position").fetchone() == (1,)
    create()
    meanwhile(lambda: sinks.drop("out"))
    with pytest.raises(UserError, match="SINK_UNKNOWN"):
        sinks.drop("out")


def test_a_sink_that_was_paused_while_it_was_waited_for_is_not_written(
    project: StoredProject, url: str, db: psycopg.Connection, meanwhile: Meanwhile
) -> None:
    sinks = project.hr.sinks
    sinks.create("out", "shop.revenue", url, "public.out")
    advance(project, 1)
    (due,) = sinks.due()
    writes: tuple[Callable[[], object], ...] = (lambda: sinks.write_for(None), lambda: sinks.write_batch(due))
    for write in writes:
        meanwhile(lambda: sinks.pause("out"))
        assert write() is None
        assert there(db) == [0, 1, 2]
        sinks.resume("out")
    meanwhile(lambda: sinks.pause("out"))
    with pytest.raises(UserError, match="SINK_HELD"):
        sinks.write("out")
    assert sinks.resync("out").version == 1
    assert there(db) == [0, 1, 2, 101]


def test_a_sink_that_was_altered_while_it_was_waited_for_is_written_as_it_is_now(
    project: StoredProject, url: str, db: psycopg.Connection, meanwhile: Meanwhile
) -> None:
    db.execute("CREATE TABLE out (k bigint); INSERT INTO out VALUES (7)")
    project.hr._catalog.create_sink("out", new_sink(), "postgres", REVENUE, options(url), None)
    meanwhile(lambda: project.hr.sinks.alter("out", on_conflict="overwrite"))
    project.hr.sinks.write("out")
    assert there(db) == [0, 1, 2]


@pytest.fixture
def proxy(server: LogicalServer) -> Iterator[BreakingProxy]:
    proxy = BreakingProxy(server.host)
    yield proxy
    proxy.close()


@pytest.mark.parametrize("how", ["broken connection", "Ctrl-C"])
@pytest.mark.parametrize("target", ["made", "empty"])
def test_nothing_is_left_of_a_creation_that_failed_after_its_target_was_committed(
    project: StoredProject,
    url: str,
    db: psycopg.Connection,
    proxy: BreakingProxy,
    monkeypatch: pytest.MonkeyPatch,
    how: str,
    target: str,
) -> None:
    if target == "empty":
        db.execute("CREATE TABLE out (k bigint)")
    far = f"{url.partition('?')[0]}?host=127.0.0.1&port={proxy.port}&sslmode=disable&gssencmode=disable"

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def break_once(event: object) -> None:
        if isinstance(event, StageStarted) and event.stage == "sink positioned":
            proxy.arm("after")
        if isinstance(event, SinkFailed):
            proxy.arm("never")

    with monkeypatch.context() as patched:
        if how == "Ctrl-C":
            patched.setattr(type(project.hr._catalog), "note_sink_written", interrupted)
        else:
            project.hr.events.subscribe(break_once)
        with pytest.raises((KeyboardInterrupt, EnvironmentFault), match=r"SINK_LOST|^$"):
            project.hr.sinks.create("out", "shop.revenue", far, "public.out")
    assert project.hr.sinks.list() == ()
    assert db.execute("SELECT count(*) FROM headrace.sink_position").fetchone() == (0,)
    if target == "empty":
        assert there(db) == []
    else:
        assert db.execute("SELECT to_regclass('public.out')").fetchone() == (None,)
    again = project.hr.sinks.create("out", "shop.revenue", url, "public.out")
    assert again is not None
    assert (again.how, there(db)) == ("load", [0, 1, 2])


def test_what_others_wrote_is_not_taken_back(
    project: StoredProject, url: str, db: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.execute("CREATE TABLE out (k bigint)")

    def interrupted(*_: object, **__: object) -> None:
        db.execute("INSERT INTO out VALUES (7)")
        raise KeyboardInterrupt

    monkeypatch.setattr(type(project.hr._catalog), "note_sink_written", interrupted)
    with pytest.raises(KeyboardInterrupt):
        project.hr.sinks.create("out", "shop.revenue", url, "public.out")
    assert there(db) == [0, 1, 2, 7]
    assert db.execute("SELECT count(*) FROM headrace.sink_position").fetchone() == (0,)


def test_a_sink_beside_one_that_is_paused_waits_with_it(
    project: StoredProject, url: str, db: psycopg.Connection
) -> None:
    """They are written together, or not at all."""
    sinks = project.hr.sinks
    sinks.create("first", "shop.revenue", url, "public.first")
    sinks.pause("first")
    assert sinks.create("second", "shop.revenue", url, "public.second") is None
    assert [sink.name for sink in sinks.list()] == ["first", "second"]
    sinks.resume("first")
    assert {result.sink: result.how for result in sinks.write()}["second"] == "load"
    assert db.execute("SELECT count(*) FROM second").fetchone() == (3,)


def test_the_status_of_a_sink_that_is_dropped_just_then_is_told(
    project: StoredProject, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sinks = project.hr.sinks
    sinks.create("out", "shop.revenue", url, "public.out")
    batches = type(sinks).batches

    def dropped_just_then(self: Any) -> Any:
        project.hr._catalog.drop_sink("out")
        return batches(self)

    monkeypatch.setattr(type(sinks), "batches", dropped_just_then)
    assert sinks.status("out").version == 0
    with pytest.raises(UserError, match="SINK_UNKNOWN"):
        sinks.status("out")
