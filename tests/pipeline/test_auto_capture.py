"""`capture = 'auto'` from the first row to the last, while money moves: triggers, the log, triggers again."""

from __future__ import annotations

import time

import psycopg
from kit import pg_bank
from kit.logical import LogicalServer
from kit.pg_bank import TABLES, TOTAL, Transfers

from headrace.api.facade import Headrace

PATIENCE = 300.0
INSTALLED = (
    "SELECT EXISTS (SELECT FROM pg_trigger WHERE NOT tgisinternal), "
    "EXISTS (SELECT FROM pg_replication_slots WHERE database = current_database())"
)
BY_TRIGGERS, FROM_THE_LOG = (True, False), (False, True)


def test_nothing_is_missed_or_doubled_on_the_way_to_the_log_and_back(
    hr: Headrace, ns: str, server: LogicalServer
) -> None:
    source, url = f"{ns}_auto", server.fresh()
    transfers = Transfers(url)
    with psycopg.connect(url, autocommit=True) as db:
        pg_bank.create(db)
        hr.sources.create(source, url, TABLES, capture="auto")
        assert db.execute(INSTALLED).fetchone() == BY_TRIGGERS
        both = " UNION ALL ".join(f"SELECT amount FROM {source}.{table}" for table in TABLES)
        query = f"SELECT sum(amount) AS total, count(*) AS n FROM ({both}) AS b"
        hr.create_stream_table(f"{ns}.total", query, refresh_mode="DIFFERENTIAL")
        sums = f"SELECT (SELECT sum(amount) FROM ({both})) AS mirrors, (SELECT total FROM {ns}.total) AS total"

        def refreshed_until(installed: tuple[bool, bool]) -> None:
            until = time.monotonic() + PATIENCE
            while True:
                before = transfers.count
                hr.refresh()
                assert tuple(map(int, hr.at().sql(sums).first() or ())) == (TOTAL, TOTAL)
                if db.execute(INSTALLED).fetchone() == installed and transfers.count > before:
                    return
                assert time.monotonic() < until, f"never came to {installed}"

        with transfers.going_on():
            for _ in range(2):
                refreshed_until(FROM_THE_LOG)
            db.execute(
                "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots "
                "WHERE database = current_database() AND NOT active"
            )
            for _ in range(2):
                refreshed_until(BY_TRIGGERS)
        hr.refresh()
        assert pg_bank.same(hr, source, db)
        assert hr.verify(f"{ns}.total").ok
        hr.drop_stream_table(f"{ns}.total")
        hr.sources.drop(source)
        assert db.execute(INSTALLED).fetchone() == (False, False)
