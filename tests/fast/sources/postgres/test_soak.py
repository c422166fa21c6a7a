"""Hours of load compressed: what lands it takes no more memory at the end, the server keeps no more, nothing is lost.

In `make test-long`, for HEADRACE_SOAK_MINUTES (20) each way; as many transactions as eight hours have at 60 a second.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import psycopg
import pytest
from kit.long_tests import LONG
from kit.mirrored import truth
from kit.pg_child import Way
from kit.pg_load import TABLES, TOTAL, Load
from kit.pg_soak import MIB, Soaked

from headrace.names import TableName
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.sources.postgres.wal.wal_capture import PostgresCapture

MINUTES = float(os.environ.get("HEADRACE_SOAK_MINUTES", "20"))
RATE = 1_440
FLAT = 1.1
ROOM = 64 * MIB


if LONG:

    @pytest.mark.parametrize("way", [PostgresCapture, TriggerCapture])
    def test_nothing_grows_and_nothing_is_lost(url: str, tmp_path: Path, way: Way) -> None:
        load = Load(url, RATE)
        soaked = Soaked(url, tmp_path, TABLES, way)
        until = time.monotonic() + MINUTES * 60
        with load.going_on():
            while time.monotonic() < until:
                soaked.land()
                whole(soaked)
        while not soaked.land():
            pass
        whole(soaked)
        with psycopg.connect(url, autocommit=True) as db:
            for name in soaked.names:
                assert soaked.mirrors.rows(name) == truth(db, name.table), name
        samples = soaked.samples
        print(f"\n{load.transactions} transactions, {soaked.landings} landings, {soaked.failures} cut\n{samples}")
        assert samples.growth("memory") < FLAT
        for what in ("log", "files"):
            assert max(samples.late(what)) < 1.5 * max(samples.early(what)) + ROOM, what
        soaked.end()
        assert not [f for f in tmp_path.rglob("*") if f.is_file()]


def whole(soaked: Soaked) -> None:
    here, there = (soaked.mirrors.total(TableName("lake", ("s",), t), "amount") for t in ("here", "there"))
    assert here + there == TOTAL, "a transfer is seen half"
