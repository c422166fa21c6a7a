"""What others did to stored tables is refused, seen and undone, without a JVM."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from catalog_kit.statements import statements
from kit.stored_project import StoredProject, with_revenue

from headrace.errors import EnvironmentFault, UserError
from headrace.lake import metadata as lake_metadata
from headrace.refresh.repair import lost_files, lost_unchanged, restore
from headrace.results.refresh_results import Status


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StoredProject]:
    with with_revenue(tmp_path_factory.mktemp("repair") / "shop") as made:
        yield made


COMPANION, LOG = "_headrace.shop_revenue_companion", "_headrace.shop_revenue_log"

REFUSED = [
    ("INSERT INTO shop.revenue VALUES (1)", "REFRESH STREAM TABLE shop.revenue"),
    ("INSERT OVERWRITE TABLE lake.shop.revenue SELECT 1", "REFRESH STREAM TABLE shop.revenue"),
    ("WITH x AS (SELECT 1) INSERT INTO shop.revenue SELECT * FROM x", "change its sources"),
    ("FROM shop.orders INSERT INTO shop.revenue SELECT k", "change its sources"),
    ("UPDATE shop.revenue SET k = 1", "SET QUERY AS SELECT"),
    ("DELETE FROM `shop`.`revenue`", "change its sources"),
    ("delete from shop.revenue.branch_audit where k = 1", "change its sources"),
    ("MERGE INTO shop.revenue USING shop.orders o ON o.k = revenue.k WHEN MATCHED THEN DELETE", "change its sources"),
    ("MERGE WITH SCHEMA EVOLUTION INTO shop.revenue USING x ON true WHEN MATCHED THEN DELETE", "change its sources"),
    ("TRUNCATE TABLE shop.revenue", "Empty its sources"),
    ("DROP TABLE shop.revenue", "DROP STREAM TABLE shop.revenue"),
    ("DROP TABLE IF EXISTS shop.revenue PURGE", "DROP STREAM TABLE shop.revenue"),
    ("DROP TABLE IDENTIFIER('shop.revenue')", "DROP STREAM TABLE shop.revenue"),
    ("DROP NAMESPACE shop CASCADE", "DROP STREAM TABLE shop.revenue and the others first"),
    ("ALTER TABLE shop.revenue ADD COLUMN x INT", "ALTER STREAM TABLE shop.revenue SET"),
    ("CREATE OR REPLACE TABLE shop.revenue (k INT) USING iceberg", "CREATE OR REPLACE STREAM TABLE shop.revenue"),
    ("REPLACE TABLE shop.revenue USING iceberg AS SELECT 1 AS k", "CREATE OR REPLACE STREAM TABLE shop.revenue"),
    ("CALL lake.system.rollback_to_snapshot('shop.revenue', 1)", "headrace maintain"),
    ("CALL lake.system.expire_snapshots(table => 'lake.shop.revenue')", "headrace maintain"),
    ("EXECUTE IMMEDIATE 'DROP TABLE shop.revenue'", "DROP STREAM TABLE shop.revenue"),
    ("BEGIN IF true THEN DROP TABLE shop.revenue; END IF; END", "DROP STREAM TABLE shop.revenue"),
    ("DROP TABLE staging.shop.revenue", "DROP STREAM TABLE shop.revenue"),
    (f"DELETE FROM {COMPANION} WHERE true", "REPAIR STREAM TABLE shop.revenue"),
    (f"DROP TABLE lake.{LOG}", "DROP STREAM TABLE shop.revenue removes both"),
]


@pytest.mark.parametrize(("statement", "hint"), REFUSED)
def test_a_statement_that_would_damage_a_stream_table_is_refused(
    project: StoredProject, statement: str, hint: str
) -> None:
    script = f"-- a script\n{statement}"
    with pytest.raises(UserError) as caught:
        project.hr.sql(script)
    assert caught.value.code == "MANAGED_TABLE"
    assert hint in str(caught.value.hint)
    assert caught.value.place is not None
    assert caught.value.place.line == 2
    assert not project.hr._lazy.started, "nothing of it needs Spark"


LET_THROUGH = [
    "SELECT delete FROM shop.revenue",
    "SELECT 'DROP TABLE shop.revenue'",
    "EXPLAIN DELETE FROM shop.revenue",
    "INSERT INTO shop.orders SELECT k FROM shop.revenue",
    "CREATE TABLE shop.copy USING iceberg AS SELECT * FROM shop.revenue",
    "CREATE OR REPLACE TEMPORARY VIEW revenue AS SELECT * FROM shop.revenue",
    "MERGE INTO shop.orders USING shop.revenue r ON r.k = orders.k WHEN MATCHED THEN DELETE",
    "CALL lake.system.create_changelog_view(table => 'shop.revenue')",
    "DROP TABLE other.shop.revenue",
    "DROP TABLE shop.orders",
    "DROP NAMESPACE other",
    "DESCRIBE TABLE shop.revenue",
]


@pytest.mark.parametrize("statement", LET_THROUGH)
def test_what_reads_a_stream_table_or_writes_another_is_let_through(project: StoredProject, statement: str) -> None:
    project.hr._lazy._settings.spark_options.setdefault("spark.sql.catalog.other", "x")
    project.hr.refuse_own_tables(statement, statement, 0)


def damage_dropped(project: StoredProject) -> str:
    project.lake.drop_table("shop.revenue")
    return "shop.revenue was dropped"


def damage_companion_dropped(project: StoredProject) -> str:
    project.lake.drop_table(COMPANION)
    return f"{COMPANION} was dropped"


def damage_log_dropped(project: StoredProject) -> str:
    project.lake.drop_table(LOG)
    return f"{LOG} was dropped"


def damage_rows(project: StoredProject) -> str:
    project.append("shop.revenue", 2)
    return "shop.revenue was written by another program"


def damage_rolled_back(project: StoredProject) -> str:
    project.append("shop.revenue", 2)
    project.roll_back("shop.revenue")
    return "shop.revenue was written by another program"


def damage_made_anew(project: StoredProject) -> str:
    schema = project.lake.load_table("shop.revenue").schema()
    project.lake.drop_table("shop.revenue")
    project.lake.create_table("shop.revenue", schema=schema)
    return "shop.revenue was written by another program"


DAMAGES = [
    damage_dropped,
    damage_companion_dropped,
    damage_log_dropped,
    damage_rows,
    damage_rolled_back,
    damage_made_anew,
]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_what_another_engine_did_is_seen_at_once_and_undone(project: StoredProject, damage) -> None:
    hr = project.hr
    pointers = dict(hr._catalog.pointers())
    what = damage(project)
    for info in (hr.status()[0], hr.sql("SHOW STREAM TABLES")[0]):
        assert (info.status, info.damage) == (Status.DAMAGED, what)
    for refresh in (
        lambda: hr.refresh(),
        lambda: hr.refresh("shop.revenue"),
        lambda: hr.sql("REFRESH ALL STREAM TABLES"),
    ):
        with pytest.raises(EnvironmentFault) as caught:
            refresh()
        assert caught.value.code in ("FOREIGN_WRITER", "STORED_TABLE_DROPPED")
        assert "headrace repair shop.revenue" in str(caught.value.hint)
    if damage is damage_rows:
        (done,) = hr.sql("REPAIR ALL STREAM TABLES")
    else:
        done = hr.repair("shop.revenue")
    assert (done.name, done.action) == ("shop.revenue", "restored")
    assert what in done.detail
    assert dict(hr._catalog.pointers()) == pointers
    assert hr._catalog.dirty_staging() == ()
    assert hr.status()[0].status is Status.ACTIVE
    assert project.rows("shop.revenue") == 3
    assert hr.repair() == ()
    assert hr.repair("shop.revenue").action == "intact"
    assert not hr._lazy.started


def test_schedules_go_on_with_all_that_failed_because_of_the_damage(tmp_path: Path) -> None:
    """What is published together has failed together, and so has what reads the damaged table."""
    project = StoredProject(tmp_path / "shop")
    project.source()
    tables = [project.stream_table(name) for name in ("revenue", "together", "paused", "other")]
    catalog = project.hr._catalog
    catalog.note_failure(tables[:3], "FOREIGN_WRITER", "It was written.", lambda number: None)
    catalog.note_failure(tables[3:], "TYPE_MISMATCH", "It is another failure.", lambda number: None)
    catalog.pause(tables[2:3])
    damage_rows(project)
    project.hr.repair("shop.revenue")
    states = catalog.scheduling_states()
    assert [bool(states[name].suspended_at) for name in tables] == [False, False, False, True]
    assert [bool(states[name].paused_at) for name in tables] == [False, False, True, False]
    project.close()


def test_files_that_are_gone_are_told_before_anything_is_pointed_at_them(project: StoredProject) -> None:
    hr, kept = project.hr, project.root / "kept"
    table = project.lake.load_table("shop.revenue")
    files = [Path(f.removeprefix("file://")) for f in table.inspect.files()["file_path"].to_pylist()]
    pointer = hr._catalog.pointers()[hr._name("shop.revenue")].metadata_location
    shutil.copytree(project.root / "warehouse", kept)
    for gone in (files[0], Path(pointer.removeprefix("file://"))):
        project.lake.drop_table("shop.revenue")
        gone.unlink()
        restored = restore(hr._catalog, [hr._name("shop.revenue")], tuple)
        assert not restored.back
        assert gone.name in str(lost_files(restored.lost).detail)
        shutil.rmtree(project.root / "warehouse")
        shutil.copytree(kept, project.root / "warehouse")
        assert hr.repair("shop.revenue").action == "restored"


@pytest.mark.parametrize("content", [b"", b'{"cut', b"[1]", b"\x1f\x8b\x08cut"])
def test_a_lost_metadata_file_is_found_and_what_comes_back_is_restored(project: StoredProject, content: bytes) -> None:
    hr, name = project.hr, project.hr._name("shop.revenue")
    pointers = dict(hr._catalog.pointers())
    file = Path(pointers[name].metadata_location.removeprefix("file://"))
    whole = file.read_bytes()
    file.write_bytes(content)
    for thorough in (True, False):
        assert lost_unchanged(hr._catalog, [name], whole=thorough) == {name: pointers[name].metadata_location}
    assert hr._catalog.withdraw_pointers([name], held=())
    assert hr.status()[0].damage == "shop.revenue was dropped"
    assert len(hr._catalog.retired(hr._catalog.now())) == 1
    file.write_bytes(whole)
    assert hr.repair("shop.revenue").action == "restored"
    assert dict(hr._catalog.pointers()) == pointers
    assert not hr._catalog.retired(hr._catalog.now()), "its files would be removed"


def test_what_cannot_be_read_for_another_reason_is_not_lost(project: StoredProject) -> None:
    hr, name = project.hr, project.hr._name("shop.revenue")
    pointers = dict(hr._catalog.pointers())
    file = Path(pointers[name].metadata_location.removeprefix("file://"))
    whole = file.read_bytes()
    file.unlink()
    file.mkdir()
    try:
        for names in ("shop.revenue", None):
            with pytest.raises(EnvironmentFault, match="METADATA_UNREADABLE"):
                hr.repair(names)
    finally:
        file.rmdir()
        file.write_bytes(whole)
    warehouse = project.root / "warehouse"
    warehouse.rename(project.root / "away")
    try:
        for names in ("shop.revenue", None):
            with pytest.raises(EnvironmentFault, match="Nothing of the lake can be read"):
                hr.repair(names)
    finally:
        (project.root / "away").rename(warehouse)
    assert dict(hr._catalog.pointers()) == pointers
    assert hr.repair() == ()


def test_looking_at_many_tables_costs_the_same_statements_and_reads_no_stored_metadata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = StoredProject(tmp_path / "many")
    try:
        made.source()
        made.stream_table("a")
        read: list[str] = []
        plain = lake_metadata.read_bytes
        monkeypatch.setattr(lake_metadata, "read_bytes", lambda at: read.append(at) or plain(at))
        few = _statements(made)
        for number in range(12):
            made.stream_table(f"t{number}")
        assert _statements(made) == few
        assert not [at for at in read if "/orders" not in at]
    finally:
        made.close()


def _statements(project: StoredProject) -> int:
    project.hr.status()  # what is observed first is written
    with statements(project.hr._catalog) as sent:
        project.hr.status()
    return len(sent)
