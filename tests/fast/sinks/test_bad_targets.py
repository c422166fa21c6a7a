"""Targets that no sink writes to, told before anything is made, each by its code and with a remedy."""

from __future__ import annotations

import psycopg
import pytest
from kit.logical import LogicalServer
from kit.sink_rows import FakeStream, deliver, new_sink, options

from headrace.algebra.schema import Column
from headrace.errors import HeadraceError
from headrace.sinks.postgres.postgres_sink import POSTGRES_SINK
from headrace.sinks.sink_kind import Captured, SinkRequest

COLUMNS = (Column("id", "int"), Column("v", "string"))

BAD = {
    "a view": ("CREATE VIEW out AS SELECT 1 AS id, 'x' AS v", "SINK_TARGET_UNFIT", "is a view"),
    "a partitioned table": (
        "CREATE TABLE out (id int, v text) PARTITION BY LIST (id)",
        "SINK_TARGET_UNFIT",
        "is a partitioned table",
    ),
    "a partition": (
        "CREATE TABLE whole (id int, v text) PARTITION BY LIST (id); CREATE TABLE out PARTITION OF whole DEFAULT",
        "SINK_TARGET_UNFIT",
        "a partition of another table",
    ),
    "a foreign table": (
        "CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w;"
        "CREATE FOREIGN TABLE out (id int, v text) SERVER s",
        "SINK_TARGET_UNFIT",
        "is a foreign table",
    ),
    "a column is missing": ("CREATE TABLE out (id int PRIMARY KEY)", "SINK_TARGET_DIFFERS", "has no column v"),
    "another type": (
        "CREATE TABLE out (id int PRIMARY KEY, v bytea)",
        "SINK_TARGET_DIFFERS",
        "column v is bytea, where text",
    ),
    "one too many": (
        "CREATE TABLE out (id int PRIMARY KEY, v text, w int)",
        "SINK_TARGET_DIFFERS",
        "a column w, which the stream table has not",
    ),
    "a generated column": (
        "CREATE TABLE out (id int PRIMARY KEY, v text GENERATED ALWAYS AS ('x') STORED)",
        "SINK_TARGET_DIFFERS",
        "column v is generated",
    ),
    "no unique index": ("CREATE TABLE out (id int, v text)", "SINK_KEY_MISSING", "no unique index"),
    "a wider index": (
        "CREATE TABLE out (id int, v text, PRIMARY KEY (id, v))",
        "SINK_KEY_MISSING",
        "no unique index",
    ),
    "a partial index": (
        "CREATE TABLE out (id int, v text); CREATE UNIQUE INDEX ON out (id) WHERE id > 0",
        "SINK_KEY_MISSING",
        "no unique index",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_target_that_does_not_fit_is_refused(url: str, db: psycopg.Connection, case: str) -> None:
    statements, code, words = BAD[case]
    db.execute(statements)
    with pytest.raises(HeadraceError, match=code) as caught:
        POSTGRES_SINK.check(options(url, "out", ["id"]), COLUMNS, ())
    assert words in f"{caught.value.message} {caught.value.detail}"
    assert caught.value.hint
    assert db.execute("SELECT to_regnamespace('headrace')").fetchone() == (None,), "nothing was made"


@pytest.mark.parametrize(
    ("columns", "key", "code"),
    [
        ((*COLUMNS, Column("m", "map<string,int>")), [], "SINK_TYPE_UNSUPPORTED"),
        ((*COLUMNS, Column("m", "array<array<int>>")), [], "SINK_TYPE_UNSUPPORTED"),
        ((*COLUMNS, Column("m", "struct<a:int>")), [], "SINK_TYPE_UNSUPPORTED"),
        (COLUMNS, ["nobody"], "SINK_KEY_UNKNOWN"),
    ],
)
def test_what_has_no_counterpart_is_refused_by_name(
    url: str, columns: tuple[Column, ...], key: list[str], code: str
) -> None:
    with pytest.raises(HeadraceError, match=code) as caught:
        POSTGRES_SINK.check(options(url, "out", key), columns, ())
    assert columns[-1].name in caught.value.message or "nobody" in caught.value.message


def test_a_loop_is_refused_whatever_leads_to_the_database(
    server: LogicalServer, url: str, db: psycopg.Connection
) -> None:
    db.execute('CREATE TABLE "Odd" (id int PRIMARY KEY, v text)')
    captured = [Captured("shop", url + "&application_name=x", ('"public"."Odd"', "public.other"))]
    with pytest.raises(HeadraceError, match="SINK_LOOP") as caught:
        POSTGRES_SINK.check(options(url, '"Odd"', ["id"]), COLUMNS, captured)
    assert "source shop" in caught.value.message
    POSTGRES_SINK.check(options(url, "odd", ["id"]), COLUMNS, captured)
    elsewhere = [Captured("shop", server.url("postgres"), ('"public"."Odd"',))]
    POSTGRES_SINK.check(options(url, '"Odd"', ["id"]), COLUMNS, elsewhere)


def test_missing_privileges_are_named_with_the_statement_that_gives_them(url: str, db: psycopg.Connection) -> None:
    role, database = "writer_of_sinks", db.info.dbname
    db.execute(f"CREATE ROLE {role} LOGIN; REVOKE CREATE ON DATABASE {database} FROM PUBLIC")
    db.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC; CREATE TABLE out (id int PRIMARY KEY, v text)")
    own = url.replace("postgresql://postgres@", f"postgresql://{role}@")
    asked = []
    try:
        for _ in range(4):
            try:
                POSTGRES_SINK.check(options(own, "out", ["id"]), COLUMNS, ())
                break
            except HeadraceError as error:
                asked.append((error.code, (error.hint or "").partition("server: ")[2]))
            db.execute(asked[-1][1])
        assert [code for code, _ in asked] == ["SINK_REFUSED"] * 2, asked
        stream = FakeStream(COLUMNS, [[((1, "x"), 1)]])
        deliver(options(own, "out", ["id"]), stream.delivery(new_sink()))
        with pytest.raises(HeadraceError, match="SINK_REFUSED"):
            POSTGRES_SINK.check(options(own, "made", ["id"]), COLUMNS, ())
        with pytest.raises(HeadraceError, match="SINK_TARGET_UNFIT"):
            POSTGRES_SINK.check(options(own, "nowhere.made", ["id"]), COLUMNS, ())
    finally:
        db.execute(f"DROP OWNED BY {role} CASCADE; DROP ROLE {role}")


@pytest.mark.parametrize(
    ("address", "code"),
    [
        ("postgresql://me:secret@db/x", "SINK_URL_INVALID"),
        ("host=db password=secret", "SINK_URL_INVALID"),
        ("postgresql://[", "SINK_URL_INVALID"),
        ("env:NOT_SET_HERE_AT_ALL", "SINK_URL_INVALID"),
    ],
)
def test_secrets_are_kept_nowhere(address: str, code: str) -> None:
    with pytest.raises(HeadraceError, match=code) as caught:
        options(address)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "address",
    ["postgresql://127.0.0.1:99999/x", "postgresql://127.0.0.1/x?sslmode=bogus", "service=not_set_here_at_all"],
)
def test_an_address_that_means_nothing_is_no_outage(address: str) -> None:
    with pytest.raises(HeadraceError, match="SINK_URL_INVALID") as caught:
        POSTGRES_SINK.check(options(address), COLUMNS, ())
    assert not caught.value.retryable


def test_a_server_that_is_not_there_can_come_back() -> None:
    with pytest.raises(HeadraceError, match="SINK_UNREACHABLE") as caught:
        POSTGRES_SINK.check(options("postgresql://127.0.0.1:1/x"), COLUMNS, ())
    assert caught.value.retryable


def test_two_sinks_never_share_a_table(url: str) -> None:
    stream, of = FakeStream(COLUMNS, [[((1, "x"), 1)]]), options(url, "out", ["id"], on_conflict="overwrite")
    deliver(of, stream.delivery(new_sink(), "first"))
    with pytest.raises(HeadraceError, match="SINK_TARGET_TAKEN") as caught:
        deliver(of, stream.delivery(new_sink(), "second"))
    assert "first" in caught.value.message


def test_a_sink_keeps_its_table_where_oids_are_others(url: str, db: psycopg.Connection) -> None:
    """As in a database that was restored: the oid that one sink has recorded is that of the table of another one."""
    stream, sink = FakeStream(COLUMNS, [[((1, "x"), 1)]]), new_sink()
    of = options(url, "a", ["id"])
    deliver(of, stream.delivery(sink, "first"))
    deliver(options(url, "b", ["id"]), stream.delivery(new_sink(), "second"))
    db.execute(
        "UPDATE headrace.sink_position p SET target = CASE name WHEN 'first' THEN 1 ELSE"
        " (SELECT target FROM headrace.sink_position WHERE name = 'first') END"
    )
    stream.log.append([((2, "y"), 1)])
    with pytest.raises(HeadraceError, match="SINK_TARGET_CHANGED"):
        deliver(of, stream.delivery(sink, "first"))
    assert deliver(of, stream.delivery(sink, "first", anew=True)).rows == 2


@pytest.mark.parametrize(
    "table", ['public."Order items"', 'public."a.b"', "a.b", '"Schema"."with ""quotes"""', 'public."1"']
)
def test_a_target_is_shown_as_it_is_written(table: str) -> None:
    of = options("postgresql://user@host/web", table, ["id"])
    assert POSTGRES_SINK.table(of) == table
    again = SinkRequest(POSTGRES_SINK.address(of), POSTGRES_SINK.table(of), ("id",), {"on_conflict": "overwrite"})
    assert POSTGRES_SINK.options(again) == {**of, "on_conflict": "overwrite"}


def test_a_value_that_is_refused_changes_nothing(url: str, db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE out (id int PRIMARY KEY, v varchar(3))")
    sink, stream, of = new_sink(), FakeStream(COLUMNS, [[((1, "x"), 1)]]), options(url, "out", ["id"])
    deliver(of, stream.delivery(sink))
    for value in ("too long", "a\0"):
        stream.log = [*stream.log[:1], [((1, "x"), -1), ((1, value), 1)]]
        with pytest.raises(HeadraceError, match="SINK_VALUE_REFUSED"):
            deliver(of, stream.delivery(sink))
        assert db.execute("SELECT * FROM out").fetchall() == [(1, "x")]


def test_a_key_of_null_needs_an_index_that_takes_it(url: str, db: psycopg.Connection) -> None:
    db.execute("CREATE TABLE out (id int UNIQUE, v text)")
    sink, stream, of = new_sink(), FakeStream(COLUMNS, [[], [((None, "x"), 1)]]), options(url, "out", ["id"])
    deliver(of, stream.delivery(sink, version=0))
    with pytest.raises(HeadraceError, match="SINK_KEY_NULL"):
        deliver(of, stream.delivery(sink))
    db.execute("ALTER TABLE out DROP CONSTRAINT out_id_key")
    db.execute("CREATE UNIQUE INDEX ON out (id) NULLS NOT DISTINCT")
    assert deliver(of, stream.delivery(sink)).rows == 1
