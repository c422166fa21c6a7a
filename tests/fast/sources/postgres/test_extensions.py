"""Types of extensions: what the server writes of them comes whole, and goes when the extension is dropped."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from kit.mirrored import Follower, truth
from kit.pg_child import Way

from headrace.sources.postgres.capture import PostgresCapture
from headrace.sources.postgres.trigger_capture import TriggerCapture

VALUES = {
    "vector": ("[1,2.5,-3e+10]", "[0]"),
    "hstore": ('"a"=>"1", "b"=>NULL', ""),
    "citext": ("Ab", ""),
    "ltree": ("top.science", ""),
    "cube": ("(1, 2),(3, 4)", "(0)"),
}
"""Extension, and its type: two values. The packaged PostgreSQL has the first one, others have those of contrib."""


@pytest.mark.parametrize("way", [PostgresCapture, TriggerCapture])
def test_types_of_extensions(url: str, db: psycopg.Connection, tmp_path: Path, way: Way) -> None:
    available = {name for (name,) in db.execute("SELECT name FROM pg_available_extensions").fetchall()}
    types = [name for name in VALUES if name in available]
    assert types
    for name in types:
        db.execute(f"CREATE EXTENSION {name}")
    db.execute(f"CREATE TABLE t (id int PRIMARY KEY, {', '.join(f'of_{name} {name}' for name in types)})")
    places = ", ".join(["%s"] * (len(types) + 1))

    def insert(number: int) -> None:
        db.execute(f"INSERT INTO t VALUES ({places})", (number, *(VALUES[name][number] for name in types)))

    insert(0)
    follower = Follower(url, tmp_path, "t", way=way, as_text=("public.t.of_vector",) if "vector" in types else ())
    follower.begin()
    insert(1)
    db.execute("INSERT INTO t (id) VALUES (2)")
    follower.land()
    assert follower.rows("t") == truth(
        db, f"(SELECT id, {', '.join(f'of_{name}::text' for name in types)} FROM t) AS s"
    )
    for name in types:
        db.execute(f"DROP EXTENSION {name} CASCADE")
    db.execute("DELETE FROM t WHERE id = 2")
    follower.land()
    assert follower.rows("t") == truth(db, "t")
    follower.capture().remove()
