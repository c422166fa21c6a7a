"""Values that a mirror cannot hold: told with column, row and remedy, and forgotten once they are corrected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from kit.mirrored import Follower, truth
from kit.pg_child import Way

from headrace.errors import EnvironmentFault
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.sources.postgres.wal.wal_capture import PostgresCapture


def refused(attempt: Callable[[], object], *words: str) -> None:
    with pytest.raises(EnvironmentFault, match="VALUE_NOT_REPRESENTABLE") as caught:
        attempt()
    assert not [word for word in words if word not in caught.value.message], caught.value.message
    assert "TEXT COLUMNS (public.t." in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("way", "identity"), [(PostgresCapture, "DEFAULT"), (PostgresCapture, "FULL"), (TriggerCapture, "")]
)
def test_a_corrected_or_deleted_row_is_landed(
    url: str, db: psycopg.Connection, tmp_path: Path, way: Way, identity: str
) -> None:
    db.execute("CREATE TABLE t (id int, tag text, tax numeric(4,1), price numeric(8,2), PRIMARY KEY (tag, id))")
    if identity:
        db.execute(f"ALTER TABLE t REPLICA IDENTITY {identity}")
    db.execute("INSERT INTO t VALUES (1, 'a', 1, 1)")
    follower = Follower(url, tmp_path, "t", way=way)
    follower.begin()
    db.execute("INSERT INTO t VALUES (2, 'b', 'NaN', 2), (3, 'c', NULL, 'NaN'), (4, 'd', 'NaN', 4)")
    refused(follower.land, "public.t", "tag = ")
    db.execute("UPDATE t SET tax = NULL WHERE id = 2; UPDATE t SET price = 3 WHERE id = 3")
    refused(follower.land, "Column tax", "NaN", "tag = d, id = 4", "decimal(4,1)")
    db.execute("DELETE FROM t WHERE id = 4; UPDATE t SET price = 'NaN' WHERE id = 1")
    refused(follower.land, "Column price", "NaN", "tag = a, id = 1")
    db.execute("UPDATE t SET tax = 2, price = 9 WHERE id = 1")
    follower.land()
    assert follower.rows("t") == truth(db, "t")
    db.execute("UPDATE t SET tax = 'NaN'; DELETE FROM t WHERE id < 3; UPDATE t SET tax = NULL")
    follower.land()
    assert follower.rows("t") == truth(db, "t")


def test_arrays_under_triggers(url: str, db: psycopg.Connection, tmp_path: Path) -> None:
    db.execute("CREATE TABLE t (id int PRIMARY KEY, n int[], d numeric(4,1)[], words text[])")
    db.execute("INSERT INTO t VALUES (1, '{1,NULL}', '{1.5}', '{\"{{\",NaN}')")
    follower = Follower(url, tmp_path, "t", way=TriggerCapture)
    follower.begin()
    db.execute("UPDATE t SET n = '{{1,2},{3,4}}'")
    refused(follower.land, "Column n", "{{1,2},{3,4}}", "id = 1", "array<int>")
    db.execute("UPDATE t SET n = '[0:1]={1,2}'; INSERT INTO t VALUES (2, '{}', '{NaN}', NULL)")
    refused(follower.land, "public.t")
    db.execute("DELETE FROM t WHERE id = 2; UPDATE t SET n = '{5}', words = '{NaN}'")
    follower.land()
    assert [(key, n, words) for key, n, _, words in follower.mirrors.listed("t")] == [(1, [5], ["NaN"])]


@pytest.mark.parametrize("type_", ["date", "timestamp", "timestamptz"])
def test_endless_times_are_told_before_they_are_landed(
    url: str, db: psycopg.Connection, tmp_path: Path, type_: str
) -> None:
    db.execute(f"CREATE TABLE t (id int, kept {type_}, many {type_}[], at {type_})")
    db.execute("INSERT INTO t VALUES (1, 'infinity', '{infinity}', '2026-01-01')")
    as_text = ("public.t.kept", "public.t.many")
    Follower(url, tmp_path, "t", as_text=as_text, slot="headrace_a", way=TriggerCapture).capture().begin()
    db.execute("INSERT INTO t VALUES (7, NULL, NULL, '-infinity')")
    again = Follower(url, tmp_path, "t", as_text=as_text, slot="headrace_b", way=TriggerCapture)
    refused(again.begin, "Column at", "-infinity", "the mirror's")
