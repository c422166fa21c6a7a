"""Installing capture waits for open transactions, and says for whom; what is landed then is all there was."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from kit.mirrored import Follower, truth
from kit.pg_child import Way

from headrace.errors import EnvironmentFault, UserError
from headrace.sources.postgres.setup.open_capture import WAYS, open_capture, options_of
from headrace.sources.postgres.snapshot import open_transactions
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.sources.postgres.wal import slots
from headrace.sources.postgres.wal.wal_capture import PostgresCapture


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_transactions, "FIRST_SECONDS", 0.1)
    monkeypatch.setattr(open_transactions, "EVERY_SECONDS", 0.2)


@pytest.fixture
def writer(url: str, db: psycopg.Connection) -> Iterator[psycopg.Connection]:
    """Somebody who has written and goes on with something else."""
    db.execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
    with psycopg.connect(url, application_name="nightly load") as long:
        long.execute("INSERT INTO t VALUES (2)")
        yield long


@pytest.mark.parametrize("capture", sorted(WAYS))
def test_whom_a_first_snapshot_waits_for_is_told(
    url: str, db: psycopg.Connection, writer: psycopg.Connection, tmp_path: Path, capture: str
) -> None:
    names = next(iter(Follower(url, tmp_path, "t").names)), ("public", "t")
    told: list[str] = []
    options = options_of("s", url, {"t": names[1]}, capture=capture)
    beginning = open_capture(options, {names[0]: None}, str(tmp_path), told=told.append)
    landed: list[object] = []
    thread = threading.Thread(target=lambda: landed.append(beginning.begin().caught_up))
    thread.start()
    until = time.monotonic() + 30
    while not any("wait" in text for text in told):
        assert time.monotonic() < until
        time.sleep(0.05)
    writer.commit()
    thread.join()
    beginning.remove()
    (first, *_) = (text for text in told if "wait" in text)
    assert f"process {writer.info.backend_pid} (nightly load, role postgres" in first
    assert re.search(r"whose transaction began \d s ago", first), first
    assert landed == [True]


def test_who_kept_a_slot_waiting_is_in_the_error(url: str, writer: psycopg.Connection) -> None:
    waiting = slots.exported(url, "headrace_tmp_1", temporary=True, patience="1s")
    with pytest.raises(EnvironmentFault, match=r"SOURCE_BUSY.*nightly load"), waiting:
        pass


@pytest.mark.parametrize("way", [PostgresCapture, TriggerCapture])
def test_tables_in_shards_are_refused(url: str, db: psycopg.Connection, tmp_path: Path, way: Way) -> None:
    """As Citus has them in its catalog; its extension is not here."""
    db.execute("CREATE TABLE here (id int PRIMARY KEY); CREATE TABLE there (id int PRIMARY KEY)")
    db.execute("SET allow_system_table_mods = on")
    db.execute('CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass, partmethod "char", repmodel "char")')
    db.execute("INSERT INTO pg_catalog.pg_dist_partition VALUES ('there', 'h', 's')")
    with pytest.raises(UserError, match="SOURCE_NOT_READY") as caught:
        Follower(url, tmp_path / "both", "here", "there", way=way).begin()
    assert "public.there: is a distributed table of Citus" in (caught.value.detail or "")
    follower = Follower(url, tmp_path / "one", "here", way=way, slot="headrace_one")
    follower.begin()
    db.execute("INSERT INTO here VALUES (1)")
    follower.land()
    assert follower.rows("here") == truth(db, "here")
    db.execute("INSERT INTO pg_catalog.pg_dist_partition VALUES ('here', 'n', 't')")
    with pytest.raises(UserError, match=r"CAPTURE_REMOVED.*public.here is a reference table of Citus now"):
        follower.land()
    db.execute("DROP TABLE pg_catalog.pg_dist_partition")
    follower.capture().remove()
