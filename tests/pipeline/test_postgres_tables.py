"""Tables of a source that come, go and are taken anew, as users and stream tables see it."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from urllib.parse import urlparse

import psycopg
import pytest
from kit.late import commits_late

from headrace.api.facade import Headrace
from headrace.catalog import SourceStatus
from headrace.errors import HeadraceError
from headrace.reasons import FullReason
from headrace.results.refresh_results import Mode


def rows(hr: Headrace, table: str) -> list[tuple[object, ...]]:
    return sorted(tuple(r) for r in hr.sql(f"SELECT * FROM lake.{table}").collect())


def test_tables_come_and_go(hr: Headrace, ns: str, url: str, db: psycopg.Connection) -> None:
    for table in ("here", "there"):
        db.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, amount bigint)")
        db.execute(f"INSERT INTO {table} SELECT g, 100 FROM generate_series(1, 50) g")
    db.execute("CREATE VIEW seen AS SELECT 1 AS a")
    source = f"{ns}_bank"
    hr.sql(f"CREATE SOURCE {source} FROM POSTGRES '{url}' TABLES (here)")
    with pytest.raises(HeadraceError, match="SOURCE_EXISTS"):
        hr.sql(f"CREATE SOURCE {source} FROM POSTGRES '{url}' TABLES (here)")
    hr.create_stream_table(f"{ns}.alone", f"SELECT sum(amount) AS total FROM {source}.here")

    def transfer(amount: int) -> None:
        with db.transaction():
            db.execute("UPDATE here SET amount = amount - %s WHERE id < 10", (amount,))
            db.execute("UPDATE there SET amount = amount + %s WHERE id < 10", (amount,))

    transfer(1)
    with pytest.raises(HeadraceError, match="a view"):
        hr.sql(f"ALTER SOURCE {source} ADD TABLES (there, seen)")
    assert hr.sources.list()[0].mirrors == (f"{source}.here",)
    added = hr.sql(f"ALTER SOURCE {source} ADD TABLES (public.there AS others)")
    assert (added.inserted, added.deleted, added.mirrors) == (59, 9, (f"{source}.here", f"{source}.others"))
    both = f"SELECT amount FROM {source}.here UNION ALL SELECT amount FROM {source}.others"
    hr.create_stream_table(f"{ns}.both", f"SELECT sum(amount) AS total FROM ({both})", refresh_mode="DIFFERENTIAL")
    transfer(2)
    again = hr.sql(f"ALTER SOURCE {source} RESNAPSHOT TABLES (there)")
    assert (again.inserted, again.deleted) == (18, 18)
    hr.refresh()
    assert rows(hr, f"{ns}.both") == [(10_000,)]
    assert rows(hr, f"{ns}.alone") == [(5_000 - 27,)]
    with pytest.raises(HeadraceError, match="HAS_CONSUMERS"):
        hr.sql(f"ALTER SOURCE {source} DROP TABLES (others)")
    hr.drop_stream_table(f"{ns}.both")
    assert hr.sql(f"ALTER SOURCE {source} DROP TABLES (others)") == (f"{source}.others",)
    assert not hr.spark.catalog.tableExists(f"lake.{source}.others")
    held = db.execute("SELECT tablename::text FROM pg_publication_tables").fetchall()
    assert held == [("here",)]
    transfer(3)
    assert hr.refresh(f"{ns}.alone").rows_inserted == 1
    with pytest.raises(HeadraceError, match="SOURCE_WITHOUT_TABLES"):
        hr.sources.drop_tables(source, ["here"])
    hr.sources.pause(source)
    for change in ("ADD TABLES (there)", "RESNAPSHOT TABLES (here)"):
        with pytest.raises(HeadraceError, match="SOURCE_NOT_ACTIVE"):
            hr.sql(f"ALTER SOURCE {source} {change}")
    hr.sources.resume(source)
    hr.sources.add_tables(source, ["there"])
    db.execute("ALTER TABLE there RENAME TO elsewhere; UPDATE elsewhere SET amount = 0")
    result = hr.sources.resnapshot(source)
    assert (result.inserted, result.deleted) == (50, 50)
    assert rows(hr, f"{source}.there") == sorted(db.execute("SELECT * FROM elsewhere").fetchall())


def test_primary_keys_are_known_until_they_are_dropped(hr: Headrace, ns: str, url: str, db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE orders (id int PRIMARY KEY, customer int); CREATE TABLE people (id int PRIMARY KEY)")
    db.execute("INSERT INTO orders SELECT g, g % 3 FROM generate_series(1, 9) g; INSERT INTO people VALUES (0), (1)")
    source = f"{ns}_shop"
    hr.sql(f"CREATE SOURCE {source} FROM POSTGRES '{url}' TABLES (orders, people) WITH (capture = 'trigger')")
    query = f"SELECT o.id FROM {source}.orders o WHERE EXISTS (SELECT 1 FROM {source}.people p WHERE p.id = o.customer)"
    name = f"{ns}.known"
    hr.create_stream_table(name, query, refresh_mode="DIFFERENTIAL")
    sections = dict(hr.explain(name).sections)
    assert f"(id) of {source}.people\nthe plan rests on them" in sections["keys"]
    db.execute("INSERT INTO people VALUES (2); DELETE FROM people WHERE id = 1")
    assert hr.refresh(name).mode == "DIFFERENTIAL"
    db.execute("ALTER TABLE people DROP CONSTRAINT people_pkey; INSERT INTO people VALUES (0), (2)")
    with suppress(HeadraceError):
        hr.refresh(name)
    hr.sql(f"ALTER SOURCE {source} RESNAPSHOT")
    hr.refresh(name)
    assert rows(hr, name) == [(2,), (3,), (5,), (6,), (8,), (9,)]
    assert "people" not in dict(hr.explain(name).sections)["keys"]
    assert hr.verify(name).ok


@pytest.mark.parametrize(
    "change", ["INSERT INTO t VALUES (3, 1)", "UPDATE t SET amount = 5", "DELETE FROM t WHERE id = 1"]
)
def test_what_a_killed_process_still_commits_is_not_landed_with(
    hr: Headrace, ns: str, url: str, db: psycopg.Connection, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY, amount bigint)")
    db.execute("INSERT INTO t VALUES (1, 100), (2, 100)")
    source = f"{ns}_bank"
    hr.sql(f"CREATE SOURCE {source} FROM POSTGRES '{url}' TABLES (t)")
    db.execute(change)
    written = f"`staging`.`{source}`.`t`"
    late = commits_late(monkeypatch, written, f"INSERT INTO {written} VALUES (7, 7)")
    with pytest.raises(HeadraceError) as raised:
        hr.sources.land(source)
    assert late
    assert (raised.value.code, raised.value.retryable) == ("STAGING_CHANGED", True)
    hr.sources.land(source)
    assert rows(hr, f"{source}.t") == sorted(db.execute("SELECT id, amount FROM t"))


@pytest.mark.parametrize("stopped", [False, True], ids=["active", "stopped"])
def test_a_mirror_whose_files_are_lost_is_copied_anew(
    hr: Headrace, ns: str, url: str, db: psycopg.Connection, stopped: bool
) -> None:
    for table in ("here", "there"):
        db.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, amount bigint)")
        db.execute(f"INSERT INTO {table} SELECT g, 100 FROM generate_series(1, 50) g")
    source, name = f"{ns}_bank", f"{ns}.total"
    hr.sql(f"CREATE SOURCE {source} FROM POSTGRES '{url}' TABLES (here, there)")
    both = f"SELECT amount FROM {source}.here UNION ALL SELECT amount FROM {source}.there"
    hr.create_stream_table(name, f"SELECT sum(amount) AS total FROM ({both})", refresh_mode="DIFFERENTIAL")
    db.execute("UPDATE here SET amount = 0 WHERE id = 1")
    hr.refresh()
    (mirror, _) = hr._catalog.source(source).mirrors
    for stored in mirror.stored if stopped else (mirror.log,):
        Path(urlparse(hr._catalog.pointers()[stored].metadata_location).path).write_bytes(b"")
    if stopped:
        hr._catalog.set_source_status(source, SourceStatus.STOPPED, "SLOT_LOST", "Its slot is lost.")
    db.execute("UPDATE here SET amount = 0 WHERE id = 2; UPDATE there SET amount = 0 WHERE id = 3")
    done = hr.repair(f"{source}.here")
    assert done.action == "made anew"
    assert hr._catalog.source(source).status is SourceStatus.ACTIVE
    assert hr._catalog.source(source).mirrors[0].log != mirror.log
    assert rows(hr, f"{source}.here") == sorted(db.execute("SELECT * FROM here").fetchall())
    assert hr.refresh(name).reason == FullReason.SOURCE_RECREATED
    db.execute("DELETE FROM here WHERE id = 4; DELETE FROM there WHERE id < 3")
    assert hr.refresh(name).mode is Mode.DIFFERENTIAL
    assert rows(hr, name) == [(10_000 - 300 - 300,)]
    assert hr.verify(name).ok
    assert hr.repair(f"{source}.here").action == "intact"
    hr.sources.pause(source)
    Path(urlparse(hr._catalog.pointers()[mirror.name].metadata_location).path).unlink()
    with pytest.raises(HeadraceError, match="SOURCE_NOT_ACTIVE") as refused:
        hr.repair(f"{source}.here")
    assert f"headrace source resume {source}" in str(refused.value.hint)
    hr.sources.resume(source)
    allow = "UPDATE pg_database SET datallowconn = {} WHERE datname = current_database()"
    db.execute(allow.format("false"))
    with pytest.raises(HeadraceError, match="SOURCE_"):
        hr.repair(f"{source}.here")
    db.execute(allow.format("true"))
    assert mirror.name in hr._catalog.pointers()
    assert [each.action for each in hr.repair()] == ["made anew"]
    hr.refresh()
    assert hr.verify(name).ok
