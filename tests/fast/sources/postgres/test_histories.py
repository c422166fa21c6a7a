"""Random concurrent histories on a real server: at every cut the mirrors are the tables, whatever was interrupted."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from kit.logical import LogicalServer
from kit.long_tests import LONG
from kit.mirrored import Mirrors
from kit.pg_history import TABLES, TOTAL, History

from headrace.names import LAKE, TableName
from headrace.sources.postgres.spool.spool import Spool
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.sources.postgres.wal.wal_capture import Captured, PostgresCapture

SEEDS = range(40 if LONG else 1)
NAMES = {TableName(LAKE, ("s",), t): ("public", t) for t in TABLES}


@pytest.mark.parametrize("way", [PostgresCapture, TriggerCapture])
@pytest.mark.parametrize("seed", SEEDS)
def test_every_cut_is_a_state_of_the_database(
    server: LogicalServer, tmp_path: Path, seed: int, way: type[PostgresCapture]
) -> None:
    def capture(url: str, mirrors: Mirrors, folder: Path, limit: int = 250_000) -> PostgresCapture:
        captured = Captured(url, "headrace_s", NAMES, known=mirrors.tables)
        return way(captured, Spool(str(folder), few=chance.choice((0, 500))), limit=limit, most=min(limit, 30))

    chance, url, mirrors = random.Random(seed), server.fresh(), Mirrors()
    history = History(url, seed)
    try:
        landing = capture(url, mirrors, tmp_path).begin()
        mirrors.publish(landing)
        position, changes = landing.position, 0
        for cut in range(8):
            for _ in range(chance.randint(5, 40)):
                history.step()
            if cut == 4:
                server.restart("immediate")
                history.connect()
            limit = chance.choice((20, 250_000))
            truth = history.truth()
            while True:
                now = capture(url, mirrors, tmp_path, limit)
                now.clear()
                landing = now.land(position)
                if chance.random() < 0.3:
                    continue  # killed before publishing: read again
                acknowledged = chance.random() < 0.7  # else killed before that: the server gives it again
                if landing.keep_position:  # else it is not published, nor is its position
                    mirrors.publish(landing)
                    position = landing.position
                    assert position["changes"] >= changes
                    changes = position["changes"]
                    money = sum(mirrors.total(name, "amount") for name in list(NAMES)[:2])
                    assert money == TOTAL, "a transfer is seen half"
                    if acknowledged:
                        now.acknowledge(position)
                if landing.caught_up:
                    break
            for name in NAMES:
                assert mirrors.by_name(name) == truth[name.table], f"{name} at cut {cut}"
    finally:
        history.close()
    capture(url, mirrors, tmp_path).remove()
