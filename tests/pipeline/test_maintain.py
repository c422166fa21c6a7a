"""Maintenance keeps what frontiers need and drops the rest, while everything still verifies."""

from __future__ import annotations

import datetime as dt
import shutil
from pathlib import Path
from urllib.parse import urlparse

import pytest
from catalog_kit.samples import TTL
from kit.late import commits_late

from headrace.api.facade import Headrace
from headrace.catalog import resource_of
from headrace.errors import HeadraceError, UserError
from headrace.names import TableName
from headrace.refresh.groups.grouping import Defaults
from headrace.refresh.maintenance import maintain
from headrace.results.refresh_results import Mode

NOW = dt.timedelta(0)


def snapshots(hr: Headrace, table: str) -> int:
    return int(hr.spark.sql(f"SELECT count(*) FROM lake.{table}.snapshots").first()[0])


def test_expiry_trimming_and_pins(hr: Headrace, ns: str) -> None:
    source = f"lake.{ns}.t"
    hr.spark.sql(f"CREATE TABLE {source} USING iceberg AS SELECT 1 AS k, 1 AS v")
    hr.create_stream_table(f"{ns}.a", f"SELECT k, v FROM {ns}.t", refresh_mode="DIFFERENTIAL")
    hr.create_stream_table(f"{ns}.fast", f"SELECT k, sum(v) v FROM {ns}.a GROUP BY k", refresh_mode="DIFFERENTIAL")
    hr.create_stream_table(
        f"{ns}.slow", f"SELECT a.k FROM {ns}.a a JOIN {ns}.t t ON a.k = t.k", refresh_mode="DIFFERENTIAL"
    )
    hr.sql(f"ALTER STREAM TABLE {ns}.slow SET PROPERTIES (diamond_consistency = none)")  # else it comes along with a
    for i in range(3):
        hr.spark.sql(f"INSERT INTO {source} VALUES ({i}, {i})")
        hr.refresh([f"{ns}.a", f"{ns}.fast"])
    [log] = [t.log for t in hr._catalog.stream_tables() if str(t.name) == f"{ns}.a"]
    before = snapshots(hr, f"{ns}.a")
    names = [f"{ns}.{name}" for name in ("a", "fast", "slow")]
    planned = hr.maintain(names, older_than=NOW, dry_run=True)
    assert snapshots(hr, f"{ns}.a") == before
    done = hr.maintain(names, older_than=NOW)
    assert [r.action for r in done] == [r.action for r in planned]
    # slow still stands at the first version: its snapshot, the change log since then and the source's pin must stay
    assert snapshots(hr, f"{ns}.a") < before
    assert hr.spark.table(f"lake.{log}").count() == 3
    hr.spark.sql(f"CALL lake.system.expire_snapshots(table => '{ns}.t', older_than => TIMESTAMP '2100-01-01')")
    assert hr.refresh(f"{ns}.slow").mode is Mode.DIFFERENTIAL
    hr.maintain(names, older_than=NOW)
    assert hr.spark.table(f"lake.{log}").count() == 0
    hr.spark.sql(f"INSERT INTO {source} VALUES (9, 9)")
    hr.refresh([f"{ns}.a", f"{ns}.fast", f"{ns}.slow"])
    assert all(v.ok for v in hr.verify([f"{ns}.a", f"{ns}.fast", f"{ns}.slow"]))


def test_what_a_killed_process_still_commits_is_not_published(
    hr: Headrace, ns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t (k INT) USING iceberg")
    hr.create_stream_table(f"{ns}.a", f"SELECT k FROM {ns}.t", refresh_mode="DIFFERENTIAL")
    for number in range(3):
        hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES ({number})")
        hr.refresh(f"{ns}.a")
    late = commits_late(monkeypatch, f"`{ns}`.`a`", f"INSERT INTO staging.{ns}.a VALUES (7)")
    (told,) = [r for r in hr.maintain(f"{ns}.a", older_than=NOW) if r.action == "skipped"]
    assert late
    assert "written by somebody else" in told.detail
    assert sorted(hr.spark.table(f"lake.{ns}.a").collect()) == [(0,), (1,), (2,)]
    assert not [r for r in hr.maintain(f"{ns}.a", older_than=NOW) if r.action == "skipped"]
    assert sorted(hr.spark.table(f"lake.{ns}.a").collect()) == [(0,), (1,), (2,)]


def test_what_cannot_be_maintained_is_told_when_the_others_are(hr: Headrace, ns: str) -> None:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t (k INT) USING iceberg")
    names = [f"{ns}.{name}" for name in "ab"]
    for name in names:
        hr.create_stream_table(name, f"SELECT k FROM {ns}.t", refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (1)")
    hr.refresh(names)
    shown = hr._catalog.pointers()[TableName("lake", (ns,), "a")].metadata_location
    file = Path(urlparse(shown).path)
    away = file.rename(file.with_name("away"))
    done = hr.maintain(names, older_than=NOW)
    assert [r.detail[:14] for r in done if r.action == "failed"] == ["[FILE_MISSING]"], done
    assert {r.name for r in done if r.action == "expire"} == {f"{ns}.b"}, done
    assert "pin" in {r.action for r in done}
    away.rename(file)
    assert "failed" not in {r.action for r in hr.maintain(names, older_than=NOW)}


def test_an_unread_log_goes_and_a_new_reader_starts_another(hr: Headrace, ns: str) -> None:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t (k INT) USING iceberg")
    hr.create_stream_table(f"{ns}.a", f"SELECT k FROM {ns}.t", refresh_mode="DIFFERENTIAL")
    hr.create_stream_table(f"{ns}.b", f"SELECT count(*) AS n FROM {ns}.a", refresh_mode="DIFFERENTIAL")
    busy = hr._catalog.acquire([resource_of(hr._name(f"{ns}.a"))], "somebody", TTL)
    hr.drop_stream_table(f"{ns}.b")
    hr._catalog.release(busy)
    assert "drop_log" in [r.action for r in hr.maintain(f"{ns}.a", older_than=NOW)]
    hr.create_stream_table(f"{ns}.b", f"SELECT count(*) AS n FROM {ns}.a", refresh_mode="DIFFERENTIAL")
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (1)")
    assert [r.mode for r in hr.refresh([f"{ns}.a", f"{ns}.b"])] == [Mode.DIFFERENTIAL, Mode.DIFFERENTIAL]
    assert hr.spark.table(f"lake.{ns}.b").first()[0] == 1


def test_what_is_dropped_or_stored_anew_meanwhile_is_taken_as_it_is_then(hr: Headrace, ns: str) -> None:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t USING iceberg AS SELECT 1 AS k")
    names = [hr._name(f"{ns}.{name}") for name in ("gone", "anew")]
    for name in names:
        hr.create_stream_table(str(name), f"SELECT k FROM {ns}.t")
        hr.create_stream_table(f"{name}_reader", f"SELECT k FROM {name}")
        busy = hr._catalog.acquire([resource_of(name)], "somebody", TTL)  # so that its log stays, unread
        hr.drop_stream_table(f"{name}_reader")
        hr._catalog.release(busy)

    def change(name: TableName) -> bool:
        if name == names[0]:
            hr.drop_stream_table(str(name))
        else:
            hr.create_stream_table(str(name), f"SELECT k, 2 AS v FROM {ns}.t", or_replace=True)
            hr.create_stream_table(f"{name}_reader", f"SELECT v FROM {name}", refresh_mode="DIFFERENTIAL")
        return True

    done = maintain(
        hr._catalog,
        hr._lazy,
        older_than=NOW,
        orphans_older_than=dt.timedelta(days=1),
        dry_run=False,
        names=names,
        wanted=change,
        defaults=Defaults(),
    )
    assert "drop_log" not in {result.action for result in done if str(names[1]) in result.name}
    hr.spark.sql(f"INSERT INTO lake.{ns}.t VALUES (5)")
    assert hr.refresh([f"{ns}.anew", f"{ns}.anew_reader"])[1].mode is Mode.DIFFERENTIAL
    assert hr.verify(f"{ns}.anew_reader").ok


def test_ages_that_endanger_readers_are_refused(hr: Headrace) -> None:
    with pytest.raises(UserError, match="INVALID_OPTION"):
        hr.maintain(orphans_older_than=dt.timedelta(hours=1))


def test_what_is_no_stream_table_is_not_maintained(hr: Headrace, ns: str) -> None:
    with pytest.raises(UserError, match="STREAM_TABLE_NOT_FOUND"):
        hr.maintain([f"{ns}.nothing"])


def test_files_of_what_was_dropped_or_replaced_or_never_published_go(hr: Headrace, ns: str) -> None:
    hr.spark.sql(f"CREATE TABLE lake.{ns}.t USING iceberg AS SELECT 1 AS k, 2 AS v")
    hr.create_stream_table(f"{ns}.s", f"SELECT k, sum(v) AS v FROM {ns}.t GROUP BY k")
    hr.create_stream_table(f"{ns}.s", f"SELECT k, max(v) AS w FROM {ns}.t GROUP BY k", or_replace=True)
    replaced = [r for r in hr.maintain(older_than=NOW, dry_run=True) if r.action == "remove_dropped" and ns in r.name]
    assert len(replaced) == 2  # the state and the companion
    hr.drop_stream_table(f"{ns}.s")
    assert not [
        r for r in hr.maintain(older_than=dt.timedelta(days=1)) if r.action == "remove_dropped" and ns in r.name
    ]
    with pytest.raises(HeadraceError):
        hr.create_stream_table(f"{ns}.s", f"SELECT CAST(concat('none', k) AS INT) AS n FROM {ns}.t")
    shutil.rmtree(urlparse(replaced[0].detail.removeprefix("files of ")).path)  # somebody was there before
    done = [r for r in hr.maintain(older_than=NOW) if r.action in ("remove_dropped", "skipped") and ns in r.name]
    assert [r.action for r in done] == ["remove_dropped"] * 5, done  # one was never published
    folders = [r.detail.removeprefix("files of ").partition(",")[0] for r in done]
    left = [f for folder in folders for f in Path(urlparse(folder).path).rglob("*") if f.is_file()]
    assert not left
    assert hr.spark.table(f"lake.{ns}.t").count() == 1
    assert not [r for r in hr.maintain(older_than=NOW) if r.action == "remove_dropped"]
