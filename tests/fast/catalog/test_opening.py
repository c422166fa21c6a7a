"""Catalogs that are missing, locked, damaged, older or newer."""

import datetime as dt
import os
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from catalog_kit import older
from catalog_kit.databases import sql
from catalog_kit.iceberg import Iceberg
from catalog_kit.ready import ready_catalog
from catalog_kit.samples import ORDERS, REVENUE, TOP, create, see

from headrace.catalog import Catalog, Publication
from headrace.catalog.schema import ICEBERG_DDL, REVISIONS, VERSION_TABLE, metadata
from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.events import Event, Events, Notice

SHORT = dt.timedelta(milliseconds=50)


def failure(url: str, **options: object) -> HeadraceError:
    with pytest.raises(HeadraceError) as caught:
        Catalog.open(url, **options)
    return caught.value


def path_of(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))


# ---- the shape


def test_migrations_make_exactly_the_tables_of_the_code(fresh_url: str) -> None:
    Catalog.open(fresh_url).close()
    ours = {*metadata.tables, VERSION_TABLE}

    def include(thing: object, name: str | None, kind: str, *_: object) -> bool:
        return kind != "table" or name in metadata.tables

    with sql(fresh_url) as connection:
        options = {"include_object": include, "version_table": VERSION_TABLE, "compare_type": True}
        context = MigrationContext.configure(connection, opts=options)
        assert compare_metadata(context, metadata) == []
    assert older.tables(fresh_url) == ours | set(ICEBERG_DDL)


def test_the_code_knows_every_revision_in_order() -> None:
    scripts = ScriptDirectory.from_config(older.alembic_config(None))
    assert tuple(s.revision for s in scripts.walk_revisions())[::-1] == REVISIONS


def test_tables_that_iceberg_made_are_left_as_they_are(fresh_url: str) -> None:
    with sql(fresh_url) as connection:
        for statement in ICEBERG_DDL.values():
            connection.exec_driver_sql(statement)
        connection.exec_driver_sql("INSERT INTO iceberg_tables VALUES ('lake', 'shop', 'orders', 'm1', null, 'TABLE')")
    with Catalog.open(fresh_url) as catalog:
        assert [p.metadata_location for p in catalog.pointers().values()] == ["m1"]
    if fresh_url.startswith("sqlite"):
        with sql(fresh_url) as connection:
            made = connection.exec_driver_sql("SELECT sql FROM sqlite_master WHERE name = 'iceberg_tables'").scalar()
        assert made == ICEBERG_DDL["iceberg_tables"]


def test_opening_again_changes_nothing(url: str) -> None:
    with Catalog.open(url) as catalog:
        create(catalog)
    with Catalog.open(url, create=False) as catalog:
        assert catalog.stream_table(REVENUE).sources == (ORDERS,)


def test_many_may_create_the_same_catalog_at_once(fresh_url: str) -> None:
    def work(number: int) -> int:
        with Catalog.open(fresh_url) as catalog:
            return see(catalog, ORDERS, number)

    with ThreadPoolExecutor(6) as pool:
        assert sorted(pool.map(work, range(6))) == list(range(6))


# ---- other ages


def test_an_older_catalog_is_migrated_and_keeps_its_data(fresh_url: str) -> None:
    older.make(fresh_url, REVISIONS[0])
    assert "hr_published" not in older.tables(fresh_url)
    with sql(fresh_url) as connection:
        connection.exec_driver_sql(
            "INSERT INTO hr_history (stream_name, started_at, finished_at, mode, outcome, rows_inserted, rows_deleted,"
            " stages_json) VALUES ('lake.shop.revenue', '2025-01-01T00:00:00.000000+00:00',"
            " '2025-01-01T00:00:02.000000+00:00', 'FULL', 'ok', 5, 0, '{\"compute\": 2.0}')"
        )
        connection.exec_driver_sql(
            "INSERT INTO iceberg_tables VALUES ('lake', 'shop', 'revenue', 'm1', null, 'TABLE'),"
            " ('staging', 'shop', 'revenue', 'm1', null, 'TABLE'), ('lake', 'shop', 'orders', 'u1', null, 'TABLE')"
        )
    events, told = Events(), []
    events.subscribe(told.append)
    with Catalog.open(fresh_url, events=events) as catalog:
        (entry,) = catalog.history()
        assert (entry.stream, entry.seconds, entry.stages, entry.metrics) == (REVENUE, 2.0, {"compute": 2.0}, {})
        Iceberg(fresh_url).commit(REVENUE, "foreign", catalog="lake")
        assert [w.name for w in catalog.foreign_writes()] == [REVENUE]
    check_notice(told, fresh_url)
    told.clear()
    Catalog.open(fresh_url, events=events).close()
    assert told == []


def test_companions_of_older_catalogs_are_as_they_should_be(fresh_url: str) -> None:
    older.make(fresh_url, "0009")
    moment = "'2025-01-01T00:00:00.000000+00:00'"
    with sql(fresh_url) as connection:
        connection.exec_driver_sql(
            "INSERT INTO hr_relation (id, name, catalog_name, table_namespace, table_name, kind)"
            " VALUES (1, 'lake.shop.revenue', 'lake', 'shop', 'revenue', 'stream')"
        )
        connection.exec_driver_sql(
            "INSERT INTO hr_stream_table (relation_id, query, refresh_mode, definition_json, companion, generation,"
            " status, created_at, updated_at) VALUES (1, 'SELECT 1', 'AUTO', '{}', 'lake._headrace.companion', 1,"
            f" 'ACTIVE', {moment}, {moment})"
        )
    with Catalog.open(fresh_url) as catalog:
        assert catalog.stream_table(REVENUE).companion_behind is False


def test_sources_of_older_catalogs_may_have_pins(fresh_url: str) -> None:
    older.make(fresh_url, "0021")
    names = {"lake.shop.revenue": "stream", "lake.shop.orders": "source", "glue.shop.items": "source"}
    names |= {"lake._headrace.clock": "source", "lake.pg.mirror": "source"}
    with sql(fresh_url) as connection:
        for number, (name, kind) in enumerate(names.items(), 1):
            catalog, namespace, table = name.split(".")
            connection.exec_driver_sql(
                "INSERT INTO hr_relation (id, name, catalog_name, table_namespace, table_name, kind)"
                f" VALUES ({number}, '{name}', '{catalog}', '{namespace}', '{table}', '{kind}')"
            )
        connection.exec_driver_sql(
            "INSERT INTO hr_source (id, name, kind, options_json, status, created_at)"
            " VALUES (1, 'pg', 'postgres', '{}', 'NEW', '2025-01-01T00:00:00.000000+00:00')"
        )
        connection.exec_driver_sql(
            "INSERT INTO hr_mirror (relation_id, source_id, log, gone) VALUES (5, 1, 'lake._headrace.log', false)"
        )
    with Catalog.open(fresh_url) as catalog:
        pinned = catalog.pinned_sources()
    assert [str(name) for name in pinned] == ["glue.shop.items", "shop.orders"]
    assert len(set(pinned.values())) == 1


def test_epochs_of_older_catalogs_go_on(fresh_url: str) -> None:
    """They were kept by the name of a group's last member, also when that was dropped."""
    older.make(fresh_url, "0011")
    moment = "'2025-01-01T00:00:00.000000+00:00'"
    with sql(fresh_url) as connection:
        for number, name in enumerate(("revenue", "top"), 1):
            connection.exec_driver_sql(
                "INSERT INTO hr_relation (id, name, catalog_name, table_namespace, table_name, kind)"
                f" VALUES ({number}, 'lake.shop.{name}', 'lake', 'shop', '{name}', 'stream')"
            )
            connection.exec_driver_sql(
                "INSERT INTO hr_stream_table (relation_id, query, refresh_mode, definition_json, generation, status,"
                f" created_at, updated_at)"
                f" VALUES ({number}, 'SELECT 1', 'AUTO', '{{}}', 1, 'ACTIVE', {moment}, {moment})"
            )
        connection.exec_driver_sql(f"INSERT INTO hr_publication VALUES (7, 'u', {moment})")
        connection.exec_driver_sql("INSERT INTO hr_group VALUES ('shop.top', 3, 7), ('shop.gone', 5, 7)")
    with Catalog.open(fresh_url) as catalog:
        assert {name: (of.epoch, of.publication.id) for name, of in catalog.epochs().items()} == {TOP: (3, 7)}
        catalog.publish(Publication(groups=((REVENUE, TOP),)))
        assert {name: of.epoch for name, of in catalog.epochs().items()} == {REVENUE: 4, TOP: 4}
    assert "hr_group" not in older.tables(fresh_url)


def check_notice(told: list[Event], url: str) -> None:
    (notice,) = told
    assert isinstance(notice, Notice)
    assert f"from revision 0001 to {REVISIONS[-1]}" in notice.message
    if not url.startswith("sqlite"):
        assert "PostgreSQL" in notice.message
        return
    (backup,) = path_of(url).parent.glob("fresh.db.backup-0001-*")
    assert str(backup) in notice.message
    kept = f"sqlite:///{backup}"
    assert "hr_published" not in older.tables(kept)
    with sql(kept) as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM hr_history").scalar() == 1


def test_a_backup_that_cannot_be_written_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / ("x" * 240 + ".db")  # with the backup's suffix the name is too long for any file system
    older.make(f"sqlite:///{file}", REVISIONS[0])
    error = failure(f"sqlite:///{file}")
    assert error.code == "CATALOG_BACKUP_FAILED"
    assert "hr_published" not in older.tables(f"sqlite:///{file}")


def test_a_backup_is_for_those_who_may_read_the_catalog(tmp_path: Path) -> None:
    file = tmp_path / "headrace.db"
    older.make(f"sqlite:///{file}", REVISIONS[0])
    file.chmod(0o600)
    Catalog.open(f"sqlite:///{file}").close()
    (backup,) = tmp_path.glob("headrace.db.backup-*")
    assert backup.stat().st_mode & 0o777 == 0o600
    assert not backup.name.endswith(".part")


def test_a_newer_catalog_is_refused_and_not_touched(url: str) -> None:
    older.pretend(url, "9999")
    error = failure(url)
    assert (error.code, error.retryable) == ("CATALOG_TOO_NEW", False)
    assert isinstance(error, EnvironmentFault)
    assert "9999" in str(error)
    with pytest.raises(EnvironmentFault):
        Catalog.open(url, create=False)
    older.pretend(url, REVISIONS[-1])
    Catalog.open(url).close()


# ---- in the way


def test_a_missing_catalog_is_not_made_unless_asked(fresh_url: str) -> None:
    error = failure(fresh_url, create=False)
    assert error.code == "CATALOG_UNREACHABLE"
    assert not fresh_url.startswith("sqlite") or not path_of(fresh_url).exists()


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:////no/such/folder/headrace.db",
        "postgresql://nobody@127.0.0.1:1/nothing?connect_timeout=2",
        "postgresql://postgres@no-such-host.invalid/x",
    ],
)
def test_what_cannot_be_reached_says_so(url: str) -> None:
    error = failure(url)
    assert (error.code, error.retryable) == ("CATALOG_UNREACHABLE", True)


def test_a_missing_database_or_role_says_so(postgres) -> None:
    for url in (postgres.url("no_such_database"), postgres.prepared.replace("postgres@", "nobody@")):
        error = failure(url)
        assert error.code == "CATALOG_UNREACHABLE"
        assert "does not exist" in str(error.detail)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://nobody:s3cret@127.0.0.1:1/x",
        "postgresql://127.0.0.1:1/x?user=nobody&password=s3cret&sslpassword=s3cret",
        "mysql://nobody:of/s3cret@127.0.0.1/x",
        "mysql://127.0.0.1/x?password=s3cret",
    ],
)
def test_passwords_are_not_shown(url: str) -> None:
    error = failure(url)
    assert "s3cret" not in f"{error} {error.detail}"
    assert "127.0.0.1" in str(error)


@pytest.mark.parametrize("url", ["mysql://x/y", "sqlite://", "sqlite:///:memory:", "no url", ""])
def test_other_urls_are_refused(url: str) -> None:
    error = failure(url)
    assert isinstance(error, UserError)
    assert error.code == "CONFIG_INVALID"


def test_a_locked_catalog_says_so(url: str) -> None:
    with Catalog.open(url, busy_timeout=SHORT) as catalog, sql(url) as other:
        lock = "BEGIN EXCLUSIVE" if url.startswith("sqlite") else "LOCK TABLE hr_relation IN ACCESS EXCLUSIVE MODE"
        other.exec_driver_sql(lock)
        with pytest.raises(EnvironmentFault) as caught:
            create(catalog)
        other.exec_driver_sql("ROLLBACK")
        assert (caught.value.code, caught.value.retryable) == ("CATALOG_LOCKED", True)
        create(catalog)


def test_a_catalog_locked_while_it_must_be_migrated_says_so(fresh_url: str) -> None:
    older.make(fresh_url, REVISIONS[0])
    with sql(fresh_url) as other:
        lock = "BEGIN IMMEDIATE" if fresh_url.startswith("sqlite") else "LOCK TABLE hr_history IN ACCESS SHARE MODE"
        other.exec_driver_sql(lock)
        assert failure(fresh_url, busy_timeout=SHORT).code == "CATALOG_LOCKED"
        other.exec_driver_sql("ROLLBACK")
    Catalog.open(fresh_url).close()


def test_a_file_that_somebody_else_just_makes_is_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "fresh.db"
    with closing(sqlite3.connect(file, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")  # as who turns the journal of a new file into a write-ahead log
        assert failure(f"sqlite:///{file}", busy_timeout=SHORT).code == "CATALOG_LOCKED"
        later = threading.Timer(0.2, other.execute, ("COMMIT",))
        later.start()
        Catalog.open(f"sqlite:///{file}").close()
        later.join()


def test_a_file_that_is_no_database_says_so(tmp_path: Path) -> None:
    file = tmp_path / "headrace.db"
    file.write_bytes(b"once upon a time " * 500)
    assert failure(f"sqlite:///{file}").code == "CATALOG_CORRUPT"
    assert file.read_bytes().startswith(b"once upon")


def test_a_damaged_file_says_so(tmp_path: Path) -> None:
    file = tmp_path / "headrace.db"
    url, whole = ready_catalog(file), file.read_bytes()
    file.write_bytes(whole[:4096] + b"\xff" * (len(whole) - 4096))
    with pytest.raises(EnvironmentFault) as caught, Catalog.open(url) as catalog:
        catalog.stream_tables()
    assert caught.value.code == "CATALOG_CORRUPT"


def test_a_full_disk_changes_nothing(tmp_path: Path) -> None:
    with Catalog.open(f"sqlite:///{tmp_path / 'headrace.db'}") as catalog:
        with catalog._database.read() as connection:  # the pool's one connection keeps the limit
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 1}")
        with pytest.raises(EnvironmentFault) as caught:
            create(catalog, details={"long": "x" * 100_000})
        assert (caught.value.code, caught.value.retryable) == ("DISK_FULL", True)
        assert catalog.stream_tables() == ()


def test_a_catalog_that_cannot_be_written_says_so(url: str, postgres) -> None:
    if url.startswith("sqlite"):
        url = f"sqlite:///file:{path_of(url)}?mode=ro&uri=true"
    else:
        url += "&options=-c%20default_transaction_read_only%3Don"
    with Catalog.open(url, create=False) as catalog:
        assert catalog.stream_tables() == ()
        with pytest.raises(EnvironmentFault) as caught:
            create(catalog)
        assert (caught.value.code, caught.value.retryable) == ("CATALOG_READ_ONLY", True)


# ---- fast


def test_an_up_to_date_catalog_opens_without_alembic(url: str, tmp_path: Path) -> None:
    code = (
        "import sys; from headrace.catalog import Catalog; assert 'psycopg' not in sys.modules;"
        "Catalog.open(sys.argv[1]).stream_tables();"
        "assert 'alembic' not in sys.modules; assert 'sqlalchemy.orm' not in sys.modules"
    )
    source = Path(sys.modules["headrace"].__file__ or "").parents[1]
    env = os.environ | {"PYTHONPATH": str(source)}
    subprocess.run([sys.executable, "-c", code, url], check=True, env=env, cwd=tmp_path)


def test_sqlite_is_set_up_for_several_processes(url: str) -> None:
    if not url.startswith("sqlite"):
        return
    with Catalog.open(url) as catalog, catalog._database.read() as connection:
        found = {p: connection.exec_driver_sql(f"PRAGMA {p}").scalar() for p in ("journal_mode", "busy_timeout")}
    assert found == {"journal_mode": "wal", "busy_timeout": 30_000}
    with sqlite3.connect(path_of(url)) as plain:
        assert plain.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_a_closed_catalog_leaves_no_connection(postgres) -> None:
    url = postgres.prepared
    catalog = Catalog.open(url)
    catalog.stream_tables()
    catalog.close()
    with sql(url) as connection:
        others = (  # not the server's own, such as autovacuum
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() "
            "AND backend_type = 'client backend'"
        )
        deadline = dt.datetime.now() + dt.timedelta(seconds=30)
        while connection.execute(sa.text(others)).scalar_one() and dt.datetime.now() < deadline:
            connection.rollback()
        assert connection.execute(sa.text(others)).scalar_one() == 0
