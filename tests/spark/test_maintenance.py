"""Maintenance drops what nobody needs, and nothing else."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

import pytest
from kit.sparks import interpreting
from spark.conftest import Lake

from headrace.algebra.schema import Column
from headrace.errors import EnvironmentFault, HeadraceError
from headrace.lake.maintenance_tasks import (
    Policy,
    compact,
    expire,
    plan_maintenance,
    remove_orphans,
    run_tasks,
    trim_log,
)
from headrace.lake.pins import plan_pins
from headrace.lake.tables import COMPLETE_AFTER, create_log, create_table
from headrace.names import TableName
from headrace.spark.runner import SparkRunner

COLUMNS = (Column("k", "int"),)
SOON = dt.timedelta(days=30)
POLICY = Policy(keep=dt.timedelta(days=7), orphan_age=dt.timedelta(days=3))


@pytest.fixture(scope="module")
def lake(lake: Lake) -> Lake:
    return replace(lake, runner=SparkRunner(interpreting(lake.runner.session)))


def made(lake, table: TableName) -> list[int]:
    """A table of six snapshots: five appends and a delete."""
    location = f"{lake.settings.warehouse}/{table.table}"
    lake.runner.run(create_table(table, COLUMNS, location=location, format_version=3))
    ids = []
    for n in range(5):
        lake.runner.run(f"INSERT INTO {table.sql} SELECT id FROM range({n * 4}, {n * 4 + 4})")
        ids.append(lake.meta(table).current_snapshot_id)
    lake.runner.run(f"DELETE FROM {table.sql} WHERE k % 2 = 0")
    return [*ids, lake.meta(table).current_snapshot_id]


def count(lake, table: TableName, snapshot: int) -> int:
    return lake.runner.scalar(f"SELECT count(*) FROM {table.sql} VERSION AS OF {snapshot}")


def test_expiry_keeps_what_is_needed_and_compaction_keeps_the_rows(lake, fresh: Callable[..., TableName]) -> None:
    table = fresh("staging")
    ids = made(lake, table)
    now = dt.datetime.now(dt.UTC) + SOON
    tasks = plan_maintenance(table, lake.meta(table), needed={ids[1]}, now=now, policy=POLICY)
    assert [t.chore for t in tasks] == ["COMPACT", "EXPIRE"]
    assert run_tasks(tasks, lake.runner, lambda: lake.meta(table))
    meta = lake.meta(table)
    assert meta.row_count == 10
    assert meta.current is not None
    assert meta.current.operation == "replace"
    assert ids[1] in meta.snapshots
    assert count(lake, table, ids[1]) == 8
    assert not {ids[0], ids[2], ids[3], ids[4]} & meta.snapshots.keys()
    assert not plan_maintenance(table, meta, needed={ids[1], ids[5]}, now=now, policy=POLICY)
    run_tasks([remove_orphans(table, dt.datetime.now(dt.UTC), POLICY)], lake.runner, lambda: lake.meta(table))
    assert count(lake, table, ids[1]) == 8


def test_what_expired_and_was_not_published_can_be_expired_again(lake, fresh: Callable[..., TableName]) -> None:
    table = fresh("staging")
    ids = made(lake, table)
    for path in Path(lake.meta(table).location.removeprefix("file:")).rglob(f"snap-{ids[0]}-*"):
        path.unlink()
    gone, there = expire(table, ids[:1]), expire(table, [ids[1]])
    assert run_tasks([gone], lake.runner, lambda: lake.meta(table))
    assert ids[0] not in lake.meta(table).snapshots
    with pytest.raises(HeadraceError, match="FILE_MISSING"):  # whatever else is missing
        run_tasks([there], Lost(), lambda: lake.meta(table))


class Lost:
    """A session over Spark Connect; files are missing before anything was done."""

    def run(self, sql: str) -> list[object]:
        raise EnvironmentFault("FILE_MISSING", "A file is missing.")

    def forget(self, table: TableName, snapshots: Collection[int], *, files: bool = False) -> bool:
        return False

    def purge(self, metadata_location: str, table: TableName) -> bool:
        return False


@pytest.mark.parametrize("classic", [True, False])
def test_files_of_expired_snapshots_go(lake, fresh: Callable[..., TableName], classic: bool) -> None:
    table = fresh("staging")
    ids = made(lake, table)
    folder = Path(lake.meta(table).location.removeprefix("file:"))
    run_tasks([compact(table)], lake.runner, lambda: lake.meta(table))
    before = len(list(folder.rglob("*.parquet")))
    task = expire(table, ids)
    if classic:
        run_tasks([task], lake.runner, lambda: lake.meta(table))
    else:
        lake.runner.run(task.sql)
    assert not set(lake.meta(table).snapshots) & set(ids)
    assert not list(folder.rglob(f"snap-{ids[0]}-*"))
    assert len(list(folder.rglob("*.parquet"))) < before


def test_forgotten_snapshots_leave_their_files(lake, fresh: Callable[..., TableName]) -> None:
    table = fresh("staging")
    ids = made(lake, table)
    files = {p for p in Path(lake.meta(table).location.removeprefix("file:")).rglob("*") if p.is_file()}
    assert lake.runner.forget(table, ids[1:4])
    meta = lake.meta(table)
    assert set(meta.snapshots) == {ids[0], ids[4], ids[5]}
    assert [count(lake, table, s) for s in (ids[0], ids[4], ids[5])] == [4, 20, 10]
    assert all(p.exists() for p in files)
    lake.runner.run(f"DELETE FROM {table.sql} WHERE k = 1")
    assert lake.meta(table).row_count == 9


def test_nothing_is_due_while_it_is_young(lake, fresh: Callable[..., TableName]) -> None:
    table = fresh("staging")
    made(lake, table)
    policy = replace(POLICY, deleted_share=0.9)
    assert plan_maintenance(table, lake.meta(table), needed=set(), now=dt.datetime.now(dt.UTC), policy=policy) == ()


def test_a_pin_survives_the_users_own_expiry(lake, fresh: Callable[..., TableName]) -> None:
    table = fresh("lake")
    ids = made(lake, table)
    for statement in plan_pins(table, lake.meta(table), {ids[2]}, "me"):
        lake.runner.run(statement)
    assert plan_pins(table, lake.meta(table), {ids[2]}, "me") == ()
    future = "older_than => TIMESTAMP'2100-01-01 00:00:00', retain_last => 1"
    lake.runner.run(f"CALL lake.system.expire_snapshots(table => 'shop.{table.table}', {future})")
    meta = lake.meta(table)
    assert set(meta.snapshots) == {ids[2], ids[5]}
    assert count(lake, table, ids[2]) == 12
    for statement in plan_pins(table, meta, {ids[5]}, "me"):
        lake.runner.run(statement)
    assert set(lake.meta(table).refs.values()) == {ids[5]}


def test_trimming_a_log_rewrites_nothing(lake, fresh: Callable[..., TableName]) -> None:
    log = fresh("staging")
    location = f"{lake.settings.warehouse}/{log.table}"
    lake.runner.run(create_log(log, COLUMNS, location=location, format_version=3))
    for version in (1, 2, 3):
        lake.runner.run(f"INSERT INTO {log.sql} SELECT 1, 1L, {version}L")
    for task in trim_log(log, 2):
        lake.runner.run(task.sql)
    summary = lake.meta(log).current.summary
    assert (summary["operation"], summary["deleted-data-files"]) == ("delete", "2")
    assert "added-data-files" not in summary
    assert lake.runner.scalar(f"SELECT min(__hr_version) FROM {log.sql}") == 3
    assert lake.meta(log).properties[COMPLETE_AFTER] == "2"


def test_compacting_a_missing_table_is_a_plain_error(lake) -> None:
    with pytest.raises(HeadraceError, match="TABLE_NOT_FOUND") as caught:
        lake.runner.run(compact(TableName("staging", ("shop",), "nope")).sql)
    assert "\n\tat " not in str(caught.value)
