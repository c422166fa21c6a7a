"""Random histories over shards: whatever lands, a mirror has the rows of all of them, and each row once."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from kit.logical import LogicalServer
from kit.long_tests import LONG
from kit.sharded import KeyTwice, ShardFollower, truth

EXAMPLES = int(os.environ.get("HEADRACE_EXAMPLES", "12" if LONG else "4"))
SCHEMA = """
CREATE TABLE orders (id int PRIMARY KEY, amount bigint, body text);
ALTER TABLE orders ALTER body SET STORAGE EXTERNAL;
CREATE TABLE bag (x int, y text);
ALTER TABLE bag REPLICA IDENTITY FULL
"""
KEYS = st.integers(1, 6)
ACTIONS = st.one_of(
    st.tuples(st.sampled_from(["insert", "update", "delete", "move", "bag", "rekey"]), st.integers(0, 1), KEYS, KEYS),
    st.tuples(st.sampled_from(["truncate", "lose"]), st.integers(0, 1), KEYS, KEYS),
    st.tuples(st.just("land"), st.integers(0, 2), KEYS, KEYS),
    st.tuples(st.just("land"), st.integers(0, 2), KEYS, KEYS),
)
_numbers = itertools.count(1)


@pytest.mark.parametrize(
    "ways",
    [pytest.param(("wal", "wal"), marks=pytest.mark.long, id="wal"), pytest.param(("wal", "trigger"), id="both")],
)
@settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    phases=tuple(Phase) if LONG else (Phase.explicit, Phase.generate),  # making a case smaller takes minutes
    deadline=None,
)
@given(actions=st.lists(ACTIONS, min_size=25, max_size=45))
def test_every_landing_has_the_rows_of_all_shards(
    server: LogicalServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    ways: tuple[str, str],
    actions: list[tuple[str, int, int, int]],
) -> None:
    urls = {"a": server.fresh(), "b": server.fresh()}
    number = next(_numbers)
    monkeypatch.setattr("headrace.sources.postgres.shards.open_shards.MOST", (8, 1_000_000)[number % 2])
    variables = {name: f"HR_SHARD_{name}_{number}" for name in urls}
    for name, variable in variables.items():
        monkeypatch.setenv(variable, urls[name])
    dbs = [psycopg.connect(url, autocommit=True) for url in urls.values()]
    for db in dbs:
        db.execute(SCHEMA)
    shards = {n: {"url": f"env:{v}", "capture": way} for (n, v), way in zip(variables.items(), ways, strict=True)}
    source = ShardFollower(shards, tmp_path / str(number), ("orders", "bag"))
    source.begin()
    try:
        for action, shard, key, other in actions:
            if action == "land":
                land(source, urls, dict(list(variables.items())[:shard]), monkeypatch, acknowledge=key % 2 == 0)
            else:
                change(action, dbs, shard, key, other)
        land(source, urls, {}, monkeypatch)
        assert source.rows("orders", "id", "amount", "body", "__shard") == truth(urls, "orders")
    finally:
        for db in dbs:
            db.close()
        source.capture().remove()


def land(
    source: ShardFollower,
    urls: dict[str, str],
    down: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    *,
    acknowledge: bool = True,
) -> None:
    """Land while some shards are down; what was landed of them before stays."""
    before = {table: source.rows(table) for table in ("orders", "bag")}
    if len(down) == len(urls):
        return
    for variable in down.values():
        monkeypatch.delenv(variable)
    up = {name: url for name, url in urls.items() if name not in down}
    try:
        landings = source.land(acknowledge=acknowledge)
    except KeyTwice:  # a key is on both: nothing was landed, and it is really so, or was when a shard was last landed
        assert {table: source.rows(table) for table in before} == before
        keys = [row[0] for row in truth(up, "orders")] + [r[0] for r in before["orders"] if r[-1] in down]
        assert len(set(keys)) < len(keys)
        if down:
            return
        settle(urls)
        landings = source.land()
    finally:
        for name, variable in down.items():
            monkeypatch.setenv(variable, urls[name])
    assert set(landings[-1].held) == set(down)
    for table in ("orders", "bag"):
        now, columns = source.rows(table), "id, amount, body" if table == "orders" else "x, y"
        assert sum(now.values()) == sum(1 for _ in now.elements())
        stays = [row for row in before[table].elements() if row[-1] in down]
        assert sorted(now.elements(), key=repr) == sorted([*truth(up, table, columns).elements(), *stays], key=repr)


def settle(urls: dict[str, str]) -> None:
    """Delete on the second shard what the first has, too."""
    with psycopg.connect(urls["a"], autocommit=True) as a, psycopg.connect(urls["b"], autocommit=True) as b:
        for (key,) in a.execute("SELECT id FROM orders").fetchall():
            b.execute("DELETE FROM orders WHERE id = %s", (key,))


def change(action: str, dbs: list[psycopg.Connection], shard: int, key: int, other: int) -> None:
    db, there = dbs[shard], dbs[1 - shard]
    key += 10 * shard  # so that most keys are on one shard; moves take them along
    if action == "insert":
        row = (key, other, "b" * 3000 if other == 3 else None)
        db.execute("INSERT INTO orders VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", row)
    elif action == "update":
        db.execute("UPDATE orders SET amount = amount + %s WHERE id > %s", (other, key - 3))
    elif action == "delete":
        db.execute("DELETE FROM orders WHERE id %% 7 = %s", (key % 7,))
    elif action == "rekey":
        db.execute("UPDATE orders SET id = id + 100 WHERE id = (SELECT min(id) FROM orders WHERE id < 100)")
    elif action == "move":
        rows = db.execute("DELETE FROM orders WHERE id %% 2 = %s RETURNING *", (other % 2,)).fetchall()
        for row in rows:
            there.execute("INSERT INTO orders VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", row)
    elif action == "bag":
        db.execute("INSERT INTO bag VALUES (%s, 'y'), (%s, 'y')", (other, other))
        db.execute("DELETE FROM bag WHERE ctid = (SELECT min(ctid) FROM bag WHERE x = %s)", (key % 7,))
    elif action == "truncate":
        db.execute("TRUNCATE orders" if other % 2 else "TRUNCATE bag")
    else:
        db.execute("UPDATE bag SET y = 'z' WHERE x = %s", (other,))
