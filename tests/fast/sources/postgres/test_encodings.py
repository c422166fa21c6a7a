"""Texts and names come whole from databases of every encoding; bytes that are no text in theirs are told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from kit.logical import LogicalServer
from kit.mirrored import Follower, truth
from kit.pg_child import Way

from headrace.errors import EnvironmentFault
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.sources.postgres.wal.wal_capture import PostgresCapture

WORDS = {
    "LATIN1": ("größe", "façade", "ÿ"),
    "WIN1251": ("размер", "Ж", "ё"),
    "EUC_JP": ("大きさ", "日本", "ひらがな"),
    "SQL_ASCII": ("größe", "日本", "\U0001f600"),
}
"""Encoding: a name, and values that it has."""


@pytest.fixture
def encoded(server: LogicalServer, request: pytest.FixtureRequest) -> Iterator[str]:
    name = f"enc_{request.param.lower()}"
    with server.connect("postgres") as db:
        db.execute(f"CREATE DATABASE {name} ENCODING '{request.param}' LOCALE 'C' TEMPLATE template0")
        yield server.url(name)
        db.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.parametrize("way", [PostgresCapture, TriggerCapture])
@pytest.mark.parametrize("encoded", WORDS, indirect=True)
def test_texts_and_names(encoded: str, tmp_path: Path, way: Way, request: pytest.FixtureRequest) -> None:
    word, *values = WORDS[request.node.callspec.params["encoded"]]
    with psycopg.connect(encoded, autocommit=True, client_encoding="utf8") as db:
        db.execute(f'CREATE TABLE "{word}" (id int PRIMARY KEY, "{word}" text)')
        insert = f'INSERT INTO "{word}" VALUES (%s, %s)'
        db.execute(insert, (1, values[0]))
        follower = Follower(encoded, tmp_path, word, way=way)
        follower.begin()
        for number, value in enumerate((*values, word * 2_000)):
            db.execute(insert, (number + 2, value))
        db.execute(f'UPDATE "{word}" SET "{word}" = %s WHERE id = 1', (word,))
        follower.land()
        assert follower.rows(word) == truth(db, f'"{word}"')
    follower.capture().remove()


@pytest.mark.parametrize("way", [PostgresCapture, TriggerCapture])
@pytest.mark.parametrize("encoded", ["SQL_ASCII"], indirect=True)
def test_bytes_that_are_no_text(encoded: str, tmp_path: Path, way: Way) -> None:
    """A database without an encoding takes any; the lake's texts are UTF-8."""
    with psycopg.connect(encoded, autocommit=True, client_encoding="utf8") as db:
        db.execute("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, E'\\xff')")
        follower = Follower(encoded, tmp_path, "t", way=way)
        refused(follower.begin)
        db.execute("UPDATE t SET v = 'a'")
        follower.begin()
        db.execute("INSERT INTO t VALUES (2, E'\\xff')")
        refused(follower.land)
        db.execute("DELETE FROM t WHERE id = 2")
        follower.renew("t")  # what was captured of it is not read
        db.execute("INSERT INTO t VALUES (3, 'b')")
        follower.land()
        assert follower.rows("t") == truth(db, "t")
    follower.capture().remove()


def refused(attempt: Callable[[], object]) -> None:
    with pytest.raises(EnvironmentFault, match="VALUE_NOT_REPRESENTABLE") as caught:
        attempt()
    assert not caught.value.retryable
    assert "0xff" in (caught.value.detail or "")
