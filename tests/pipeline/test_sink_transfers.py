"""Money moves between accounts of two servers that make one source; a sink shows all of it, whoever is killed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, suppress

import psycopg
import pytest
from kit import pg_bank
from kit.logical import LogicalServer, logical_server
from kit.long_tests import LONG
from kit.sink_writer import killed_after, looking

from headrace.api.facade import Headrace
from headrace.config import Settings
from headrace.errors import EnvironmentFault

TOTAL = 2 * pg_bank.TOTAL
ROUNDS = 6 if LONG else 3


@pytest.fixture
def target() -> Iterator[LogicalServer]:
    """A server of its own, since it is killed."""
    with logical_server() as started:
        yield started


def test_a_sink_of_two_servers_never_shows_half_a_transfer(
    hr: Headrace, ns: str, project: Settings, server: LogicalServer, target: LogicalServer
) -> None:
    """Its two tables, and the sum of them, are of one moment at every moment of the target."""
    shards, url, chance, killed = [server.fresh(), server.fresh()], target.fresh(), random.Random(3), 0
    for shard in shards:
        with psycopg.connect(shard, autocommit=True) as db:
            pg_bank.create(db)
    source = f"{ns}_bank"
    hr.sources.create(source, shards, list(pg_bank.TABLES), same_key="allowed")
    both = " UNION ALL ".join(f"SELECT '{t}' AS side, __shard, id, amount FROM {source}.{t}" for t in pg_bank.TABLES)
    hr.create_stream_table(f"{ns}.accounts", both, refresh_mode="DIFFERENTIAL")
    hr.create_stream_table(
        f"{ns}.total", f"SELECT sum(amount) AS total FROM {ns}.accounts", refresh_mode="DIFFERENTIAL"
    )
    hr.create_refresh_group(f"{ns}_g", [f"{ns}.accounts", f"{ns}.total"])
    key = ["side", "__shard", "id"]
    hr.sinks.create(f"{ns}_accounts", f"{ns}.accounts", url, "accounts", key=key, schedule="MANUAL")
    hr.sinks.create(f"{ns}_total", f"{ns}.total", url, "total", schedule="MANUAL")

    def look(db: psycopg.Connection) -> object:
        """One statement, one snapshot; and the place of a row, which tells versions apart."""
        return db.execute("SELECT (SELECT sum(amount) FROM accounts), (SELECT total FROM total)").fetchone()

    def version() -> int | None:
        return hr.sinks.status(f"{ns}_accounts").version

    with ExitStack() as stack:
        for shard in shards:
            stack.enter_context(pg_bank.Transfers(shard).going_on())
        seen = stack.enter_context(looking(url, look))
        versions = {version()}
        for round_ in range(ROUNDS):
            hr.refresh()
            killed += killed_after(project.root, chance.random() * 0.3)
            if round_ % 2:
                target.restart("immediate")
            with suppress(EnvironmentFault):
                hr.sinks.write()
            versions.add(version())
    hr.refresh()
    hr.sinks.write()
    assert {tuple(map(int, of)) for of in seen if of is not None} == {(TOTAL, TOTAL)}  # type: ignore[call-overload]
    assert killed == ROUNDS
    assert len(versions) > ROUNDS / 2
    assert len(seen) > ROUNDS
    assert hr.sinks.verify(f"{ns}_accounts").ok
    assert hr.sinks.verify(f"{ns}_total").ok
    for name in ("accounts", "total"):
        hr.sinks.drop(f"{ns}_{name}")
    hr.drop_refresh_group(f"{ns}_g")
    for name in ("total", "accounts"):
        hr.drop_stream_table(f"{ns}.{name}")
    hr.sources.drop(source)
