"""Files of landings: nobody's but the landing's that wrote them."""

from __future__ import annotations

import datetime as dt
import os
import time
from pathlib import Path

import pyarrow.parquet as pq
from fast.sources.postgres import messages as m

from headrace.sources.postgres.spool.spool import Spool
from headrace.sources.postgres.wal.net_changes import KeyedChanges
from headrace.sources.postgres.wal.pgoutput import Insert

T = m.table()


def written(spool: Spool, key: bytes) -> str:
    changes = KeyedChanges((0,))
    changes.insert(Insert(T.oid, [key, b"x", b"y"]))
    folder = spool.write_changes(T, changes).folder
    assert folder is not None
    return folder


def test_a_landing_that_was_overtaken_does_not_write_the_files_of_the_next(tmp_path: Path) -> None:
    suspended, current = Spool(str(tmp_path), few=0), Spool(str(tmp_path), few=0)
    folder = written(current, b"new")
    written(suspended, b"old")
    assert pq.read_table(folder)["c0"].to_pylist() == ["new"]
    suspended.clear()
    assert pq.read_table(folder)["c0"].to_pylist() == ["new"]


def test_what_crashes_left_is_swept_after_a_while(tmp_path: Path) -> None:
    home = tmp_path / "shop"
    crashed, recent, mine = Spool(str(home), few=0), Spool(str(home), few=0), Spool(f"file://{home}")
    old, kept = Path(written(crashed, b"1")).parent, Path(written(recent, b"2")).parent
    before = time.time() - 90_000
    for path in (*old.rglob("*"), old):
        os.utime(path, (before, before))
    mine.sweep(dt.timedelta(days=1))
    assert (old.exists(), kept.exists()) == (False, True)
    mine.sweep(None)
    assert not home.exists()
    mine.sweep(dt.timedelta(days=1))
    mine.clear()


def test_files_that_cannot_be_removed_do_not_end_a_landing(tmp_path: Path) -> None:
    (tmp_path / "shop").write_text("no folder")
    spool = Spool(str(tmp_path / "shop"))
    spool.clear()
    spool.sweep(dt.timedelta(days=1))
    spool.sweep(None)
