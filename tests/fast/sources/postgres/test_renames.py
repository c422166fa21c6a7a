"""Renamed tables: followed and told in both ways of capture, and which name counts when one is created again."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psycopg
import pytest
from kit.mirrored import Follower, truth
from kit.pg_child import Way

from headrace.sources.postgres.postgres_kind import POSTGRES
from headrace.sources.postgres.remote_tables import to_json
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.sources.postgres.wal.wal_capture import PostgresCapture


@pytest.fixture(params=[PostgresCapture, TriggerCapture], ids=["wal", "trigger"])
def way(request: pytest.FixtureRequest) -> Way:
    found: Way = request.param
    return found


@pytest.fixture
def goods(url: str, db: psycopg.Connection, tmp_path: Path, way: Way) -> Follower:
    db.execute("CREATE TABLE goods (id int PRIMARY KEY); CREATE TABLE beside (id int PRIMARY KEY)")
    db.execute("INSERT INTO goods VALUES (1)")
    follower = Follower(url, tmp_path / "spool", "goods", "beside", way=way)
    follower.begin()
    return follower


def notices(follower: Follower) -> list[str]:
    return [notice for landing in follower.land() for notice in landing.notices]


def follows(follower: Follower) -> dict[str, str]:
    """As `source list` has it."""
    mirrors = [
        SimpleNamespace(name=n, details=to_json(t), gone=n in follower.gone) for n, t in follower.mirrors.tables.items()
    ]
    options = {"tables": {n.table: list(of) for n, of in follower.names.items()}}
    source: Any = SimpleNamespace(mirrors=mirrors, options=options, position=follower.position)
    return POSTGRES.followed(source)


def test_another_table_in_the_place_of_a_renamed_one_is_told(goods: Follower, db: psycopg.Connection) -> None:
    assert (notices(goods), follows(goods)) == ([], {})
    db.execute(
        "ALTER TABLE goods RENAME TO goods_old; CREATE TABLE goods (id int PRIMARY KEY); INSERT INTO goods VALUES (7)"
    )
    (told,) = notices(goods)
    assert "public.goods is called public.goods_old now" in told
    assert "DROP TABLES (goods), then ADD TABLES (public.goods AS goods)" in told
    assert (notices(goods), follows(goods)) == ([], {"s.goods": "public.goods_old"})
    assert goods.rows("goods") == truth(db, "goods_old")
    db.execute("DROP TABLE goods; ALTER TABLE goods_old RENAME TO goods")
    (told,) = notices(goods)
    assert "Another" not in told
    assert follows(goods) == {}


def test_the_name_that_the_source_was_created_with_counts(goods: Follower, db: psycopg.Connection) -> None:
    db.execute(
        "ALTER TABLE goods RENAME TO wares; ALTER TABLE wares ADD note text; ALTER TABLE beside RENAME TO others"
    )
    assert len(notices(goods)) == 2
    db.execute("DROP TABLE wares; CREATE TABLE wares (id int PRIMARY KEY); ALTER TABLE others RENAME TO goods")
    notices(goods)
    assert {n.table for n in goods.gone} == {"goods"}, "the table of that name is the other mirror's"
    assert goods.rows("goods") == {(1, None): 1}
    db.execute(
        "ALTER TABLE goods RENAME TO beside; CREATE TABLE goods (id int PRIMARY KEY); INSERT INTO goods VALUES (5)"
    )
    notices(goods)
    goods.renew("goods")
    assert goods.rows("goods") == truth(db, "goods")
    db.execute("ALTER TABLE goods RENAME TO wares_2")
    assert len(notices(goods)) == 1
    db.execute("DROP TABLE wares_2; CREATE TABLE goods (id int PRIMARY KEY); INSERT INTO goods VALUES (6)")
    notices(goods)
    assert (goods.rows("goods"), goods.gone) == (truth(db, "goods"), set())
