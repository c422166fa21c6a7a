"""Random histories with DDL between, while connections are cut, landings killed, servers crash and slots are dropped.

At the end of every cut the mirrors are the tables, whatever happened; money in two tables sums up at every publication,
and the count of changes only grows (`Interrupted` sees to that).
"""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path

import pytest
from kit.logical import LogicalServer
from kit.long_tests import LONG
from kit.mirrored import Mirrors
from kit.pg_child import Way
from kit.pg_history import TABLES, TOTAL, History
from kit.pg_interrupted import Interrupted

from headrace.names import LAKE, TableName
from headrace.sources.postgres.triggers import auto_capture
from headrace.sources.postgres.triggers.auto_capture import AutoCapture
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.sources.postgres.wal.wal_capture import PostgresCapture

SEEDS = range(40 if LONG else 1)
CUTS, LOST = 8, 6
NAMES = {TableName(LAKE, ("s",), t): ("public", t) for t in TABLES}


def whole(mirrors: Mirrors) -> None:
    assert sum(mirrors.total(name, "amount") for name in list(NAMES)[:2]) == TOTAL, "a transfer is seen half"


@pytest.mark.parametrize("way", [PostgresCapture, TriggerCapture, pytest.param(AutoCapture, marks=pytest.mark.long)])
@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_lost_doubled_or_torn(
    server: LogicalServer, tmp_path: Path, seed: int, way: Way, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_capture, "BRIEFLY", "50ms")
    for pause in ("PAUSE", "RESTING"):
        monkeypatch.setattr(auto_capture, pause, dt.timedelta(0))
    chance, url = random.Random(seed), server.fresh()
    history = History(url, seed, altering=True)
    try:
        interruptions = random.Random(f"{seed} interruptions")  # of which there are more on a slow machine
        source = Interrupted(url, tmp_path, NAMES, way, interruptions, whole)
        for cut in range(CUTS):
            history.altering = cut % 2 > 0
            for _ in range(chance.randint(5, 40)):
                history.step()
            if cut in (2, 5):
                server.restart("immediate")
                history.connect()
            if history.altering or cut == LOST:  # a new snapshot waits for whoever writes
                history.settle()
            if cut == LOST:
                source.lose()
            truth = history.truth()
            source.land()
            for name in NAMES:
                assert source.mirrors.by_name(name) == truth[name.table], f"{name} at cut {cut}"
    finally:
        history.close()
    source.remove()
