"""Few changed rows with more partners than Spark can hand to all tasks at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from headrace.api.facade import Headrace
from headrace.events import RefreshStarted
from headrace.optimizer import cardinality
from headrace.results.refresh_results import Mode


@contextmanager
def least_broadcasts(hr: Headrace) -> Iterator[None]:
    """Let Spark broadcast next to nothing, and nothing of its own accord."""
    options = {"spark.sql.maxBroadcastTableSize": "1", "spark.sql.autoBroadcastJoinThreshold": "-1"}
    sessions = (hr.spark, *hr._lazy.runner().derived())
    before = [{name: session.conf.get(name) for name in options} for session in sessions]
    for session in sessions:
        for name, value in options.items():
            session.conf.set(name, value)
    try:
        yield
    finally:
        for session, values in zip(sessions, before, strict=True):
            for name, value in values.items():
                session.conf.set(name, value or "")


def test_a_change_that_outgrows_a_broadcast_is_followed_without_one(
    hr: Headrace, ns: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cardinality, "SENT_UNASKED", 0)  # tables of 30 rows would be sent to meet the change
    for table in ("sales", "stock", "days"):
        hr.sql(f"CREATE TABLE {ns}.{table} AS SELECT id % 3 AS k, id AS v FROM range(30)")
    hr.create_stream_table(
        f"{ns}.s",
        f"SELECT a.v, b.v AS w, c.v AS d FROM {ns}.sales a "
        f"JOIN {ns}.stock b ON a.k = b.k JOIN {ns}.days c ON b.v = c.v",
        refresh_mode="DIFFERENTIAL",
    )
    begun: list[RefreshStarted] = []
    unsubscribe = hr.events.subscribe(lambda event: begun.append(event) if isinstance(event, RefreshStarted) else None)
    with least_broadcasts(hr):
        for value, tries in ((100, 2), (101, 3)):  # the second refresh remembers what the first has met
            hr.sql(f"INSERT INTO {ns}.sales VALUES (1, {value})")
            assert hr.refresh(f"{ns}.s").mode is Mode.DIFFERENTIAL
            assert len(begun) == tries
    unsubscribe()
    assert hr.verify(f"{ns}.s").ok
