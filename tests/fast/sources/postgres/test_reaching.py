"""Servers that cannot be reached as they are told to, roles with no more than they need, and servers that vanish."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import psycopg
import pytest
from kit.logical import LogicalServer, logical_server
from kit.mirrored import Follower
from kit.mirrored import truth as rows

from headrace.errors import EnvironmentFault, UserError
from headrace.sinks.postgres.target_connection import connected as to_a_sink
from headrace.sinks.postgres.target_connection import faults as sink_faults
from headrace.sources.postgres.connection import Connection, connected
from headrace.sources.postgres.connection import faults as source_faults
from headrace.sources.postgres.connection_faults import connection_error
from headrace.sources.postgres.health.server_health import health


@pytest.fixture
def db(url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text); INSERT INTO t VALUES (1, 'a'), (2, 'b')")
        yield connection


# ---- the least a role needs


def test_a_member_of_the_owner_with_no_more_does_everything(
    server: LogicalServer, url: str, db: psycopg.Connection, tmp_path: Path
) -> None:
    name = db.info.dbname
    role, owner = f"headrace_{name}", f"owner_{name}"
    for statement in (
        f"CREATE ROLE {role} LOGIN REPLICATION",
        f"CREATE ROLE {owner}",
        "REVOKE ALL ON SCHEMA public FROM PUBLIC",
        f"GRANT USAGE ON SCHEMA public TO {role}",
        f"GRANT CREATE ON DATABASE {name} TO {role}",
        "CREATE TABLE later (id int PRIMARY KEY)",
        f"ALTER TABLE t OWNER TO {owner}; ALTER TABLE later OWNER TO {owner}",
        f"GRANT {owner} TO {role}",
    ):
        db.execute(statement)
    follower = Follower(url.replace("postgres@", f"{role}@"), tmp_path / "spool", "t")
    follower.begin()
    db.execute("UPDATE t SET v = 'c' WHERE id = 1; INSERT INTO later VALUES (7)")
    follower.land()
    follower.renew("later")
    db.execute("ALTER TABLE t ADD w int; DELETE FROM t WHERE id = 2; ALTER TABLE later ADD x int DEFAULT 4")
    follower.land()
    for table in ("t", "later"):
        assert follower.rows(table) == rows(db, table)
    health({"url": follower.url, "slot": follower.slot}, follower.position)
    follower.capture().remove()
    left = "SELECT (SELECT count(*) FROM pg_publication), count(*) FROM pg_replication_slots WHERE database = %s"
    assert db.execute(left, (name,)).fetchone() == (0, 0)


def test_a_privilege_that_was_taken_away_is_told(url: str, db: psycopg.Connection, tmp_path: Path) -> None:
    role = f"reader_{db.info.dbname}"
    db.execute(f"CREATE ROLE {role} LOGIN REPLICATION; GRANT CREATE ON DATABASE {db.info.dbname} TO {role}")
    db.execute(f"ALTER TABLE t OWNER TO {role}")
    follower = Follower(url.replace("postgres@", f"{role}@"), tmp_path / "spool", "t")
    follower.begin()
    db.execute(f"ALTER ROLE {role} NOREPLICATION; UPDATE t SET v = 'x'")
    with pytest.raises(EnvironmentFault, match="SOURCE_REFUSED") as caught:
        follower.land()
    assert "headrace source check" in (caught.value.hint or "")
    with pytest.raises(UserError, match=f'ALTER ROLE "{role}" REPLICATION'):
        follower.renew("t")
    db.execute(f"ALTER ROLE {role} REPLICATION")
    follower.land()
    assert follower.rows("t") == rows(db, "t")
    follower.capture().remove()


# ---- reaching it


def told(url: str, folder: Path, code: str) -> str:
    with pytest.raises(EnvironmentFault, match=code) as caught:
        Follower(url, folder, "t").begin()
    assert caught.value.retryable is (code == "SOURCE_UNREACHABLE")
    return caught.value.detail or ""


def test_a_host_that_is_not_known(tmp_path: Path) -> None:
    assert "no-such-host.invalid" in told(
        "postgresql://reader@no-such-host.invalid/shop", tmp_path, "SOURCE_UNREACHABLE"
    )


def test_a_wrong_password_is_told_and_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with logical_server() as server:
        url = server.fresh()
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("CREATE ROLE teller LOGIN REPLICATION PASSWORD 'right'; CREATE TABLE t (id int PRIMARY KEY)")
            file = Path(str(db.execute("SHOW hba_file").fetchall()[0][0]))
            file.write_text(f"local all teller scram-sha-256\n{file.read_text()}")
            db.execute("SELECT pg_reload_conf()")
        theirs = url.replace("postgres@", "teller@")
        for password in ("wrong-one", None):
            monkeypatch.delenv("PGPASSWORD", raising=False)
            if password:
                monkeypatch.setenv("PGPASSWORD", password)
            detail = told(theirs, tmp_path, "SOURCE_LOGIN_REFUSED")
            assert "password" in detail
            assert "wrong-one" not in detail
        monkeypatch.setenv("PGPASSWORD", "right")
        with pytest.raises(UserError, match="SOURCE_NOT_READY"):  # it got in
            Follower(theirs, tmp_path, "t").begin()
        monkeypatch.delenv("PGPASSWORD")
        monkeypatch.setenv("TELLER_URL", theirs.replace("teller@", "teller:right@"))
        with pytest.raises(UserError, match="SOURCE_NOT_READY"):
            Follower("env:TELLER_URL", tmp_path, "t").begin()


def test_a_server_that_vanishes_for_a_while_loses_nothing_and_another_one_is_told(
    tmp_path: Path, url: str, db: psycopg.Connection
) -> None:
    here, elsewhere = url, Follower(url, tmp_path / "elsewhere", "t")
    elsewhere.begin()
    with logical_server() as server:
        url = server.fresh()
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("CREATE TABLE t (id int PRIMARY KEY); INSERT INTO t VALUES (1)")
            follower = Follower(url, tmp_path / "spool", "t")
            follower.begin()
            db.execute("INSERT INTO t VALUES (2)")
        server.vanish()
        for attempt in (follower.land, lambda: follower.renew("t"), follower.begin):
            with pytest.raises(EnvironmentFault, match="SOURCE_UNREACHABLE") as caught:
                attempt()
            assert caught.value.retryable
        server.come_back()
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("INSERT INTO t VALUES (3)")
            assert not any(t.replaced for landing in follower.land() for t in landing.tables)
            assert follower.rows("t") == rows(db, "t")
        elsewhere.url = follower.url
        with pytest.raises(UserError, match="another cluster") as other:
            elsewhere.land()
        assert other.value.code == "SOURCE_CHANGED"
        follower.capture().remove()
    elsewhere.url = here
    elsewhere.capture().remove()


def test_a_database_that_is_not_there(url: str, tmp_path: Path) -> None:
    elsewhere = url.replace(url.split("/")[3].split("?")[0], "nowhere")
    assert 'database "nowhere" does not exist' in told(elsewhere, tmp_path, "SOURCE_LOGIN_REFUSED")


class Asked:
    """What the driver keeps of a connection for which it was asked for a password."""

    needs_password, used_password = False, True


@pytest.mark.parametrize(
    ("text", "asked", "code"),
    [
        ('FATAL:  password authentication failed for user "a"', True, "SOURCE_LOGIN_REFUSED"),
        ("FATAL:  Passwort-Authentifizierung für Benutzer »a« fehlgeschlagen", True, "SOURCE_LOGIN_REFUSED"),
        ("FATAL:  sorry, too many clients already", True, "SOURCE_UNREACHABLE"),
        ("FATAL:  the database system is starting up", False, "SOURCE_UNREACHABLE"),
        ("could not receive data from server: Connection reset by peer", True, "SOURCE_UNREACHABLE"),
        ('no pg_hba.conf entry for host "10.0.0.1"', False, "SOURCE_LOGIN_REFUSED"),
        ('"a": Connection refused\n- "b": password authentication failed', True, "SOURCE_UNREACHABLE"),
        ("something new", False, "SOURCE_UNREACHABLE"),
    ],
)
def test_what_may_pass_is_tried_again_and_a_refusal_is_not(text: str, asked: bool, code: str) -> None:
    error = psycopg.OperationalError(text, pgconn=Asked() if asked else None)  # type: ignore[arg-type]
    assert connection_error(error).code == code


def test_no_free_slot_is_told_before_anything_is_done_and_keeps_no_status_back(
    url: str, db: psycopg.Connection, tmp_path: Path
) -> None:
    follower, second = (Follower(url, tmp_path / name, "t", slot=f"headrace_{name}") for name in ("first", "second"))
    follower.begin()
    free = "SELECT current_setting('max_replication_slots')::int - count(*) FROM pg_replication_slots"
    db.execute(f"SELECT pg_create_physical_replication_slot('full_' || g) FROM generate_series(1, ({free})::int) g")
    try:
        with pytest.raises(UserError, match="SOURCE_NOT_READY") as caught:
            second.begin()
        assert "0 replication slots are free" in (caught.value.detail or "")
        (there,) = db.execute("SHOW max_replication_slots").fetchone() or ("",)
        assert f"max_replication_slots = {int(there) + 10};" in (caught.value.hint or "")
        db.execute("INSERT INTO t VALUES (3, 'c')")
        found = health({"url": url, "slot": follower.slot}, follower.position)
        assert (found.backlog, found.lag is not None) == (None, True)
        follower.land()
        assert follower.rows("t") == rows(db, "t")
    finally:
        db.execute("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name LIKE 'full%'")
        follower.capture().remove()


def test_queries_of_the_catalogs_are_not_compiled(url: str) -> None:
    with connected(url) as connection:  # where the server can, it takes seconds for what is done in a millisecond
        assert connection.execute("SHOW jit").fetchone() == ("off",)


ENDS_LONG_SESSIONS = {
    "statement_timeout": "SELECT pg_sleep(0.5)",
    "transaction_timeout": "SELECT pg_sleep(0.5)",
    "idle_in_transaction_session_timeout": "",
    "idle_session_timeout": "",
}
BEGAN = {"idle_session_timeout": 140000, "transaction_timeout": 170000}


@pytest.mark.parametrize("setting", ENDS_LONG_SESSIONS)
@pytest.mark.parametrize("opened", [connected, partial(connected, replication=True), to_a_sink])
def test_sessions_last_whatever_ends_others(
    url: str, db: psycopg.Connection, setting: str, opened: Callable[[str], AbstractContextManager[Connection]]
) -> None:
    if db.execute("SELECT FROM pg_settings WHERE name = %s", (setting,)).fetchone() is None:
        assert db.info.server_version < BEGAN[setting]  # to name it would be refused
    else:
        db.execute(f"ALTER DATABASE {db.info.dbname} SET {setting} = '200ms'")
    with opened(url) as connection:
        connection.execute("BEGIN" if "transaction" in setting else "SELECT 1")
        if busy := ENDS_LONG_SESSIONS[setting]:
            connection.execute(busy)
        else:
            time.sleep(0.5)
        connection.execute("SELECT 1")


@pytest.mark.parametrize(("faults", "side"), [(source_faults, "SOURCE"), (sink_faults, "SINK")])
@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (psycopg.errors.DiskFull, "EXHAUSTED", "disk space"),
        (psycopg.errors.TooManyConnections, "EXHAUSTED", "connections"),
        (psycopg.errors.ConfigurationLimitExceeded, "EXHAUSTED", "max_replication_slots"),
        (psycopg.errors.InsufficientResources, "EXHAUSTED", "resources"),
        (psycopg.errors.QueryCanceled, "CANCELLED", "pg_cancel_backend"),
        (psycopg.errors.AdminShutdown, "LOST", "connection"),
    ],
)
def test_what_a_server_gave_up_is_not_told_as_a_lost_connection(
    faults: Callable[[], AbstractContextManager[None]], side: str, error: type[psycopg.Error], code: str, words: str
) -> None:
    with pytest.raises(EnvironmentFault, match=f"{side}_{code}") as told, faults():
        raise error("the server's words")
    assert words in f"{told.value.message} {told.value.hint}"
    assert told.value.detail == "the server's words"
    assert told.value.retryable
