"""Types of extensions: what the server writes of them comes whole, and goes when the extension is dropped."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from kit.logical import LogicalServer
from kit.mirrored import Follower, truth
from kit.pg_child import Way

from headrace.sources.postgres.connection import connected
from headrace.sources.postgres.server import tables
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.sources.postgres.wal.wal_capture import PostgresCapture

VALUES = {
    "vector": ("[1,2.5,-3e+10]", "[0]"),
    "hstore": ('"a"=>"1", "b"=>NULL', ""),
    "citext": ("Ab", ""),
    "ltree": ("top.science", ""),
    "cube": ("(1, 2),(3, 4)", "(0)"),
}
"""Extension, and its type: two values. The packaged PostgreSQL has the first one, others have those of contrib."""


OWN = {
    "moods.control": "default_version = '1'",
    "moods--1.sql": "CREATE TYPE mood AS ENUM ('glad', 'sad')",
    "moods--1--2.sql": "ALTER TYPE mood RENAME VALUE 'sad' TO 'sorry'; ALTER TYPE mood ADD VALUE 'calm'",
}
"""An extension whose update changes what is shown of its values."""

FINDS_OTHERS = 180000
"""PostgreSQL finds extensions in other folders than its own."""


@pytest.fixture
def updatable(server: LogicalServer, db: psycopg.Connection) -> tuple[str, str, str]:
    """A type of an extension that can be updated, a value of it, and the statement that updates it."""
    if db.info.server_version < FINDS_OTHERS:
        db.execute("CREATE EXTENSION hstore VERSION '1.4'")
        return "hstore", '"a"=>"1"', "ALTER EXTENSION hstore UPDATE"
    folder = server.folder.parent / "extension"
    folder.mkdir(exist_ok=True)
    for name, text in OWN.items():
        (folder / name).write_text(text)
    db.execute(f"SET extension_control_path = '{folder.parent}'; CREATE EXTENSION moods")
    return "mood", "sad", "ALTER EXTENSION moods UPDATE TO '2'"


@pytest.mark.parametrize("way", [PostgresCapture, TriggerCapture])
def test_an_extension_is_updated(
    url: str, db: psycopg.Connection, tmp_path: Path, way: Way, updatable: tuple[str, str, str]
) -> None:
    type_, value, update = updatable
    db.execute(f"CREATE TABLE t (id int PRIMARY KEY, v {type_}); INSERT INTO t VALUES (1, '{value}')")
    follower = Follower(url, tmp_path, "t", way=way)
    follower.begin()
    db.execute(f"INSERT INTO t VALUES (2, '{value}')")
    db.execute(update)
    db.execute("INSERT INTO t SELECT 3, v FROM t WHERE id = 1; UPDATE t SET id = 4 WHERE id = 2")
    follower.land()
    assert follower.rows("t") == truth(db, "(SELECT id, v::text FROM t) AS s")
    follower.capture().remove()


@pytest.mark.parametrize("way", [PostgresCapture, TriggerCapture])
def test_types_of_users_that_have_the_name_of_others(
    url: str, db: psycopg.Connection, tmp_path: Path, way: Way
) -> None:
    """They are text, as all types of users, and so are their arrays and domains."""
    db.execute("CREATE TYPE vector AS (x float8, y float8); CREATE TYPE bool AS ENUM ('soon', 'late')")
    db.execute("CREATE DOMAIN near AS vector; CREATE DOMAIN int4 AS public.bool")
    db.execute(
        "CREATE TABLE t (id pg_catalog.int4 PRIMARY KEY, v vector, n near, d public.bool, i public.int4,"
        " vs vector[], ds public.bool[], r pg_catalog.bool, b pg_catalog.bool[])"
    )
    insert = (
        "INSERT INTO t VALUES ({}, '(1,2.5)', '(0,-1)', 'soon', 'late', '{{\"(1,2)\",NULL}}', '{{late}}',"
        " true, '{{t,f}}')"
    )
    db.execute(insert.format(1))
    follower = Follower(url, tmp_path, "t", way=way)
    follower.begin()
    db.execute(insert.format(2))
    follower.land()
    (table,) = follower.mirrors.tables.values()
    types = [column.type for column, _ in table.typed]
    assert types == ["int", *["string"] * 4, *["array<string>"] * 2, "boolean", "array<boolean>"]
    rest = ("(1,2.5)", "(0,-1)", "soon", "late", ["(1,2)", None], ["late"], True, [True, False])
    assert follower.mirrors.listed("t") == [(1, *rest), (2, *rest)]
    follower.capture().remove()


def test_a_column_is_of_pgvector(url: str, db: psycopg.Connection) -> None:
    available = db.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchone()
    if available is None:
        pytest.skip("this server has no pgvector")
    db.execute("CREATE SCHEMA own; CREATE EXTENSION vector SCHEMA own; CREATE DOMAIN near AS own.vector(2)")
    db.execute("CREATE TYPE mood AS ENUM ('glad')")
    db.execute("CREATE TABLE t (v own.vector(2), n near, vs own.vector[], m mood)")
    with connected(url) as connection:
        (found,) = tables(connection, 0, names=[("public", "t")])
    types = [(c.base, c.kept.type) for c in found.table.columns]
    assert types == [
        ("vector", "array<float>"),
        ("vector", "array<float>"),
        ("_vector", "array<array<float>>"),
        ("mood", "string"),
    ]


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
