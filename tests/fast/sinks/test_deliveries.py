"""Rows and position in one transaction of a real PostgreSQL: loads, changes, differences."""

from __future__ import annotations

import datetime as dt
import itertools
import json
from collections import Counter
from decimal import Decimal

import psycopg
import pytest
from kit.sink_rows import FakeStream, deliver, new_sink, options

from headrace.algebra.schema import Column
from headrace.errors import HeadraceError

REVENUE = (Column("region", "string"), Column("total", "decimal(12,2)"))
NAN = float("nan")


def there(db: psycopg.Connection, table: str = "public.out") -> Counter[tuple[object, ...]]:
    return Counter(db.execute(f"SELECT * FROM {table}").fetchall())


def test_a_keyed_sink_follows_its_stream_table(url: str, db: psycopg.Connection) -> None:
    sink, stream = new_sink(), FakeStream(REVENUE)
    of = options(url, key=["region"])
    stream.log.append([(("EU", Decimal("80.00")), 1), (("US", Decimal("5.00")), 1), ((None, Decimal("1.00")), 1)])
    first = deliver(of, stream.delivery(sink))
    assert (first.how, first.inserted, first.rows) == ("load", 3, 3)
    oid = db.execute("SELECT 'public.out'::regclass::oid").fetchone()
    db.execute("LISTEN headrace_out")
    stream.log.append([(("EU", Decimal("80.00")), -1), (("EU", Decimal("110.00")), 1), (("US", Decimal("5.00")), -1)])
    stream.log.append([((None, Decimal("1.00")), -1), (("AS", Decimal("7.00")), 1), (("AS", Decimal("7.00")), -1)])
    change = deliver(of, stream.delivery(sink))
    assert (change.how, change.inserted, change.deleted, change.rows) == ("change", 1, 3, 1)
    assert there(db) == stream.rows_at(2) == {("EU", Decimal("110.00")): 1}
    told = next(db.notifies(timeout=5, stop_after=1))
    assert json.loads(told.payload) == {"sink": "out", "version": 2, "inserted": 1, "deleted": 3, "rows": 1}
    assert deliver(of, stream.delivery(sink)).how == "nothing"
    assert db.execute("SELECT 'public.out'::regclass::oid").fetchone() == oid
    assert db.execute("SELECT name, version, rows FROM headrace.sink_position").fetchall() == [("out", 2, 1)]


def test_a_bag_keeps_copies_nulls_nan_and_the_sign_of_zero(url: str, db: psycopg.Connection) -> None:
    sink, stream = new_sink(), FakeStream((Column("x", "double"), Column("s", "string")))
    rows = [(0.0, "a"), (-0.0, "a"), (NAN, None), (None, None), (1.5, "b")]
    stream.log.append([(row, 3) for row in rows])
    of = options(url)
    assert deliver(of, stream.delivery(sink)).rows == 15
    stream.log.append([((-0.0, "a"), -2), ((NAN, None), -3), ((None, None), -1), ((1.5, "b"), 2), ((7.0, ""), 1)])
    done = deliver(of, stream.delivery(sink))
    assert (done.inserted, done.deleted, done.rows) == (3, 6, 12)
    texts = Counter(db.execute("SELECT coalesce(x::text, '?'), coalesce(s, '?') FROM public.out").fetchall())
    assert texts == {("0", "a"): 3, ("-0", "a"): 1, ("?", "?"): 2, ("1.5", "b"): 5, ("7", ""): 1}


EVERY = {
    "boolean": [True, False],
    "int": [-(2**31), 0, 2**31 - 1],
    "bigint": [-(2**63), 2**63 - 1],
    "float": [0.1, -0.0, NAN, float("-inf")],
    "double": [0.1, 5e-324, 1.7976931348623157e308, NAN, float("inf")],
    "string": ["", "NULL", "\\N", "tab\there", "line\r\nbreak", 'a"b\\c', "ä🙂", "{x}"],
    "binary": [b"", b"\x00\xff\\"],
    "date": [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31)],
    "timestamp": [dt.datetime(2026, 3, 1, 6, 0, 0, 1, dt.UTC)],
    "timestamp_ntz": [dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999)],
    "decimal(12,2)": [Decimal("0.00"), Decimal("-9999999999.99")],
    "array<string>": [[], ["a", None, "", "NULL", 'q"\\,{}', "t\tn\n"], ["x"]],
    "array<int>": [[1, None, 3], []],
}


@pytest.mark.parametrize("type_", EVERY)
def test_values_come_as_they_went(url: str, db: psycopg.Connection, type_: str) -> None:
    stream = FakeStream((Column("n", "int"), Column("v", type_)), batch=2)
    values = [*EVERY[type_], None]
    frozen = [((n, tuple(v) if isinstance(v, list) else v), 1) for n, v in enumerate(values)]
    stream.log.append(frozen)
    sink, of = new_sink(), options(url, key=["n"])
    deliver(of, stream.delivery(sink))
    db.execute("SET timezone = 'UTC'")
    found = [row[0] for row in db.execute("SELECT v FROM public.out ORDER BY n").fetchall()]
    expected = values
    if type_ == "float":
        expected = [None if v is None else __import__("numpy").float32(v) for v in values]
        found = [None if v is None else __import__("numpy").float32(v) for v in found]
    assert repr(found) == repr(expected)
    with deliver_nothing_differs(of) as compared:
        assert compared(stream) == (0, 0)


def deliver_nothing_differs(of):  # type: ignore[no-untyped-def]
    from contextlib import contextmanager

    from headrace.sinks.postgres.postgres_sink import POSTGRES_SINK

    @contextmanager
    def opened():  # type: ignore[no-untyped-def]
        with POSTGRES_SINK.writing(of, lambda _: None) as target:

            def compared(stream: FakeStream) -> tuple[int, int]:
                found = target.compare(of, stream.columns, stream.delivery("x").rows)
                assert found.rows == found.expected
                return found.missing, found.unexpected

            yield compared

    return opened()


def test_years_of_more_than_four_digits_and_before_christ(url: str, db: psycopg.Connection) -> None:
    import pyarrow as pa
    from kit.sink_rows import ARROW

    from headrace.sinks.postgres.copy_text import copy_text

    day, second = 86_400, 1_000_000
    dates = [-735_200, -719_529, -719_163, -719_162, 2_932_896, 2_932_897, 11_248_737, 11_248_738, 2_145_031_948, None]
    moments = [day * second * d for d in (-735_200, 2_932_897, 11_248_738, 24_847_349, 106_751_990)]
    moments += [-62_135_596_800_000_001, -62_135_596_800_000_000, 0, 1, None]
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(dates, pa.int32()).cast(pa.date32()),
            pa.array(moments).cast(ARROW["timestamp_ntz"]),
            pa.array(moments).cast(ARROW["timestamp"]),
        ],
        names=["d", "t", "z"],
    )
    db.execute("CREATE TABLE dates (d date, t timestamp, z timestamptz)")
    with db.cursor().copy("COPY dates FROM STDIN") as copy:
        for piece in copy_text(batch):
            copy.write(piece)
    micros = "(extract(epoch FROM {0}) * 1000000)::bigint"
    query = f"SELECT d - '1970-01-01'::date, {micros.format('t')}, {micros.format('z')} FROM dates"
    assert db.execute(query).fetchall() == list(zip(dates, moments, moments, strict=True))


def test_a_table_that_exists_keeps_what_it_has(url: str, db: psycopg.Connection) -> None:
    db.execute("CREATE ROLE reader_of_sinks")
    db.execute("CREATE TABLE out (total numeric(14,2) NOT NULL, region varchar(9) PRIMARY KEY)")
    db.execute("CREATE INDEX by_total ON out (total); GRANT SELECT ON out TO reader_of_sinks")
    db.execute("CREATE VIEW shown AS SELECT region FROM out")
    sink, stream, of = new_sink(), FakeStream(REVENUE), options(url, "out", ["region"])
    stream.log.append([(("EU", Decimal("80.00")), 1), (("US", Decimal("5.00")), 1)])
    assert deliver(of, stream.delivery(sink)).how == "load"
    stream.log.append([(("US", Decimal("5.00")), -1), (("AS", Decimal("6.00")), 1)])
    deliver(of, stream.delivery(sink))
    assert there(db) == {(Decimal("80.00"), "EU"): 1, (Decimal("6.00"), "AS"): 1}
    db.execute("UPDATE out SET total = 1 WHERE region = 'EU'; INSERT INTO out VALUES (3, 'XX')")
    assert deliver(of, stream.delivery(sink, anew=True)).how == "difference"
    assert there(db, "shown") == {("EU",): 1, ("AS",): 1}
    assert there(db) == {(Decimal("80.00"), "EU"): 1, (Decimal("6.00"), "AS"): 1}
    assert db.execute("SELECT count(*) FROM pg_indexes WHERE tablename = 'out'").fetchone() == (2,)
    assert db.execute("SELECT has_table_privilege('reader_of_sinks', 'out', 'SELECT')").fetchone() == (True,)
    db.execute("DROP OWNED BY reader_of_sinks; DROP ROLE reader_of_sinks")


@pytest.mark.parametrize(
    ("type_", "values"),
    [
        ("numeric", ("1.0", "1.00", "1.000")),
        ("interval", ("1 day", "24:00:00", "1 day")),
        ("jsonb", ('{"a": 1}', '{"a": 1.0}', '{"a": 1.00}')),
    ],
)
def test_a_key_that_stays_equal_but_is_stored_otherwise_is_written(
    url: str, db: psycopg.Connection, type_: str, values: tuple[str, ...]
) -> None:
    db.execute(f"CREATE TABLE out (k {type_} PRIMARY KEY, n int)")
    sink, of = new_sink(), options(url, "out", ["k"])
    stream = FakeStream((Column("k", "string"), Column("n", "int")), [[((values[0], 1), 1)]])
    deliver(of, stream.delivery(sink))
    for before, now in itertools.pairwise(values):
        stream.log.append([((before, 1), -1), ((now, 1), 1)])
        assert deliver(of, stream.delivery(sink)).rows == 1
        assert db.execute("SELECT k::text, n FROM out").fetchall() == [(now, 1)]
    db.execute("UPDATE out SET k = %s", (values[1],))
    deliver(of, stream.delivery(sink, anew=True))
    assert db.execute("SELECT k::text, n FROM out").fetchall() == [(values[-1], 1)]


@pytest.mark.parametrize("key", [["region"], []])
@pytest.mark.parametrize(
    "meddling",
    [
        "UPDATE out SET total = 1 WHERE region = 'EU'",
        "DELETE FROM out WHERE region = 'EU'",
        "INSERT INTO out VALUES ('AS', 1)",
        "DROP TABLE out; CREATE TABLE out (region text UNIQUE, total numeric(12,2))",
        "DROP TABLE out",
    ],
)
def test_changes_of_others_are_noticed_and_never_overwritten(
    url: str, db: psycopg.Connection, key: list[str], meddling: str
) -> None:
    sink, stream, of = new_sink(), FakeStream(REVENUE), options(url, "out", key)
    stream.log.append([(("EU", Decimal("80.00")), 1), (("US", Decimal("5.00")), 1)])
    deliver(of, stream.delivery(sink))
    db.execute(meddling)
    before = there(db) if meddling != "DROP TABLE out" else None
    stream.log.append([(("EU", Decimal("80.00")), -1), (("EU", Decimal("9.00")), 1), (("AS", Decimal("2.00")), 1)])
    if not key and meddling.startswith("INSERT"):
        deliver(of, stream.delivery(sink))  # in a bag one more row is nobody's; verify tells of it
        return
    with pytest.raises(HeadraceError, match="SINK_TARGET_CHANGED"):
        deliver(of, stream.delivery(sink))
    assert before is None or there(db) == before
    assert db.execute("SELECT version FROM headrace.sink_position").fetchall() == [(0,)]
    deliver(of, stream.delivery(sink, anew=True))
    assert there(db) == stream.rows_at(1)
    stream.log.append([(("US", Decimal("5.00")), -1)])
    deliver(of, stream.delivery(sink))
    assert there(db) == stream.rows_at(2)


def test_who_overwrites_does_not_ask(url: str, db: psycopg.Connection) -> None:
    db.execute(
        "CREATE TABLE out (region text PRIMARY KEY, total numeric(12,2)); INSERT INTO out VALUES ('XX', 1), ('EU', 2)"
    )
    stream = FakeStream(REVENUE, [[(("EU", Decimal("80.00")), 1)]])
    with pytest.raises(HeadraceError, match="SINK_TARGET_NOT_EMPTY"):
        deliver(options(url, key=["region"]), stream.delivery(new_sink()))
    assert len(there(db)) == 2
    sink, of = new_sink(), options(url, key=["region"], on_conflict="overwrite")
    assert deliver(of, stream.delivery(sink)).how == "difference"
    assert there(db) == stream.rows_at(0)
    db.execute("UPDATE out SET total = 3")
    stream.log.append([(("EU", Decimal("80.00")), -1), (("EU", Decimal("9.00")), 1)])
    deliver(of, stream.delivery(sink))
    assert there(db) == stream.rows_at(1)


def test_a_target_that_was_set_back_behind_the_change_log_is_compared(url: str, db: psycopg.Connection) -> None:
    """As by failing over to a replica that lacks a transaction whose changes have been trimmed since."""
    stream = FakeStream(REVENUE, [[((region, Decimal(1)), 1)] for region in ("EU", "US", "AS", "AF")])
    sink, of = new_sink(), options(url, key=["region"])
    for version, how in ((0, "load"), (1, "change")):
        assert deliver(of, stream.delivery(sink, version=version)).how == how
    stream.log_after = 2
    assert deliver(of, stream.delivery(sink)).how == "difference"
    assert there(db) == stream.rows_at(3)


@pytest.mark.parametrize("later", [1, 2, 3], ids=["behind", "at the same version", "beyond"])
@pytest.mark.parametrize("key", [["region"], []], ids=["keyed", "a bag"])
def test_a_catalog_that_was_set_back_is_noticed(url: str, db: psycopg.Connection, key: list[str], later: int) -> None:
    """As by failing over to a replica that lacks publications: versions of the same numbers are other ones."""
    stream = FakeStream(REVENUE, [[((region, Decimal(1)), 1)] for region in ("EU", "US", "AS")])
    sink, of = new_sink(), options(url, key=key)
    deliver(of, stream.delivery(sink))
    stream = stream.set_back_to(0)
    stream.log += [[((region, Decimal(2)), 1)] for region in ("AF", "SA", "AN")[:later]]
    with pytest.raises(HeadraceError, match="SINK_CATALOG_SET_BACK"):
        deliver(of, stream.delivery(sink))
    assert len(there(db)) == 3
    assert deliver({**of, "on_conflict": "overwrite"}, stream.delivery(sink)).how == "difference"
    assert there(db) == stream.rows_at(later)
    assert deliver(of, stream.delivery(sink)).how == "nothing"
    stream.log.append([(("AF", Decimal(2)), -1)])
    assert deliver(of, stream.delivery(sink)).how == "change"
    assert there(db) == stream.rows_at(later + 1)


def test_a_catalog_that_was_set_back_and_went_on_alike_is_the_same(url: str, db: psycopg.Connection) -> None:
    stream = FakeStream(REVENUE, [[((region, Decimal(1)), 1)] for region in ("EU", "US")])
    sink, of = new_sink(), options(url, key=["region"])
    deliver(of, stream.delivery(sink))
    with pytest.raises(HeadraceError, match="SINK_CATALOG_SET_BACK"):
        deliver(of, stream.set_back_to(0).delivery(sink))
    assert deliver(of, stream.delivery(sink)).how == "nothing"


def test_a_position_of_a_former_version_goes_on(url: str, db: psycopg.Connection) -> None:
    """It tells no snapshot."""
    stream = FakeStream(REVENUE, [[((region, Decimal(1)), 1)] for region in ("EU", "US", "AS")])
    sink, of = new_sink(), options(url, key=["region"])
    deliver(of, stream.delivery(sink, version=1))
    db.execute("UPDATE headrace.sink_position SET log = 'log'")
    assert deliver(of, stream.delivery(sink)).how == "change"
    db.execute("UPDATE headrace.sink_position SET log = 'log'")
    with pytest.raises(HeadraceError, match="SINK_CATALOG_SET_BACK"):
        deliver(of, stream.set_back_to(1).delivery(sink))


@pytest.mark.parametrize("at", ["load", "load into one that exists", "change", "difference"])
def test_a_key_of_two_rows_is_refused(url: str, db: psycopg.Connection, at: str) -> None:
    sink, stream, of = new_sink(), FakeStream(REVENUE), options(url, key=["region"])
    twice = [(("EU", Decimal("1.00")), 1), (("EU", Decimal("2.00")), 1)]
    if at == "load into one that exists":
        db.execute("CREATE TABLE out (region text PRIMARY KEY, total numeric(12,2))")
    if at in ("change", "difference"):
        stream.log.append([])
        deliver(of, stream.delivery(sink))
    stream.log.append(twice)
    with pytest.raises(HeadraceError, match="SINK_KEY_NOT_UNIQUE") as caught:
        deliver(of, stream.delivery(sink, anew=at == "difference"))
    assert "EU" in (caught.value.detail or "")


def test_columns_that_changed_stop_a_sink_until_resync(url: str, db: psycopg.Connection) -> None:
    sink, stream, of = new_sink(), FakeStream(REVENUE), options(url, key=["region"])
    stream.log.append([(("EU", Decimal("80.00")), 1)])
    deliver(of, stream.delivery(sink))
    wider = FakeStream((*REVENUE, Column("n", "bigint")), [[], [(("EU", Decimal("80.00"), 4), 1)]])
    with pytest.raises(HeadraceError, match="SINK_COLUMNS_CHANGED") as caught:
        deliver(of, wider.delivery(sink))
    assert ": n." in caught.value.message
    assert deliver(of, wider.delivery(sink, anew=True)).rows == 1
    assert there(db) == {("EU", Decimal("80.00"), 4): 1}


@pytest.mark.parametrize(
    ("before", "after", "how", "kept"),
    [("int", "bigint", "difference", True), ("bigint", "int", "load", False), ("int", "string", "load", False)],
)
def test_a_key_of_another_type_is_unique_after_a_resync(
    url: str, db: psycopg.Connection, before: str, after: str, how: str, kept: bool
) -> None:
    """A column that is made anew loses the index; one whose values can be cast keeps it, and others of it."""

    def row(number: int, type_: str) -> tuple[object, ...]:
        return (str(number) if type_ == "string" else number, "v")

    def streamed(type_: str, versions: int) -> FakeStream:
        whole = [(row(number, type_), 1) for number in (1, 2)]
        return FakeStream((Column("Id", type_), Column("v", "string")), [*[[] for _ in range(versions)], whole])

    sink, of = new_sink(), options(url, key=["id"])
    deliver(of, streamed(before, 0).delivery(sink))
    db.execute('CREATE INDEX theirs ON public.out (v, "Id")')
    stream = streamed(after, 1)
    with pytest.raises(HeadraceError, match="SINK_COLUMNS_CHANGED"):
        deliver(of, stream.delivery(sink))
    done = deliver(of, stream.delivery(sink, anew=True))
    assert (done.how, done.rows) == (how, 2)
    found = db.execute(
        "SELECT count(*) FILTER (WHERE indexdef ~ 'UNIQUE'), bool_or(indexname = 'theirs') FROM pg_indexes"
        " WHERE tablename = 'out'"
    )
    assert found.fetchone() == (1, kept)
    stream.log.append([(row(2, after), -1), (row(3, after), 1), (row(4, after), 1)])
    assert deliver(of, stream.delivery(sink)).rows == 3
    names = [c.name for c in db.execute("SELECT * FROM public.out LIMIT 0").description or ()]
    wanted = Counter(db.execute('SELECT "Id", v FROM public.out').fetchall())
    assert (sorted(names), wanted) == (["Id", "v"], stream.rows_at(2))


def test_a_key_whose_column_is_gone_says_so(url: str, db: psycopg.Connection) -> None:
    sink, stream, of = new_sink(), FakeStream(REVENUE), options(url, key=["region"])
    stream.log.append([(("EU", Decimal("80.00")), 1)])
    deliver(of, stream.delivery(sink))
    without = FakeStream((REVENUE[1], Column("n", "bigint")), [[], [((Decimal("80.00"), 4), 1)]])
    for anew in (False, True):
        with pytest.raises(HeadraceError, match="SINK_KEY_UNKNOWN") as caught:
            deliver(of, without.delivery(sink, anew=anew))
        assert "drop sink out and the table public.out" in (caught.value.hint or "")
    assert there(db) == stream.rows_at(0)
    db.execute("DROP TABLE public.out")
    assert deliver(options(url, key=["n"]), without.delivery(new_sink())).rows == 1


def test_a_stream_table_of_the_same_name_is_another_one(url: str) -> None:
    sink, stream, of = new_sink(), FakeStream(REVENUE, [[(("EU", Decimal("80.00")), 1)]]), options(url)
    deliver(of, stream.delivery(sink))
    again = FakeStream(REVENUE, [[], []], relation=2)
    with pytest.raises(HeadraceError, match="SINK_STREAM_RECREATED"):
        deliver(of, again.delivery(sink))
