"""Every built-in type through a real capture: what PostgreSQL shows is what the mirror holds.

In `make test-long` by triggers, too; that both ways give the same texts is tried without Spark.
"""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from kit.logical import LogicalServer
from kit.long_tests import LONG

from headrace.api.facade import Headrace
from headrace.errors import HeadraceError

VALUES: tuple[tuple[str, str, tuple[str | None, ...]], ...] = (
    ("bool", "boolean", ("t", "f")),
    ("smallint", "int", ("-32768", "32767")),
    ("int", "int", ("-2147483648", "2147483647")),
    ("bigint", "bigint", ("-9223372036854775808", "9223372036854775807")),
    ("oid", "bigint", ("4294967295",)),
    ("real", "float", ("NaN", "Infinity", "-Infinity", "1e-30", "-0")),
    ("double precision", "double", ("NaN", "-Infinity", "1.7976931348623157e308", "0.1", "5e-324")),
    ("numeric(38,10)", "decimal(38,10)", ("1234567890123456789012345678.0123456789", "-1")),
    ("numeric(3,-2)", "decimal(5,0)", ("12300",)),
    ("numeric", "string", ("NaN", "Infinity", "0." + "1" * 200, "9" * 300)),
    ("text", "string", ("", "NULL", 'a "quoted"\nline, \\N and \t', "\U0001f600")),
    ("char(4)", "string", ("abcd",)),
    ("bytea", "binary", ("\\x", "\\x00ff0a")),
    ("date", "date", ("2024-02-29", "0001-01-01 BC", "4713-01-01 BC", "44-03-15 BC", "5874897-12-31")),
    ("timestamp", "timestamp_ntz", ("2024-02-29 23:59:59.999999", "44-03-15 10:00 BC", "294246-12-31 23:59:59")),
    ("timestamptz", "timestamp", ("2024-03-31 03:30:00.5+02", "1-01-01 00:00+00 BC", "12345-06-07 00:00+00")),
    ("time", "string", ("23:59:59.999999", "24:00:00")),
    ("interval", "string", ("1 year 2 mons -3 days 04:05:06.7",)),
    ("uuid", "string", ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",)),
    ("jsonb", "string", ('{"a": [1, null]}', "null")),
    ("inet", "string", ("::1/64",)),
    ("cidr", "string", ("10.0.0.0/8",)),
    ("macaddr", "string", ("08:00:2b:01:02:03",)),
    ("money", "string", ("-$1,234.50",)),
    ("pg_lsn", "string", ("16/B374D848",)),
    ("box", "string", ("(3,4),(1,2)",)),
    ("int4range", "string", ("[1,5)", "empty")),
    ("datemultirange", "string", ("{[2026-01-01,2026-02-01),[2026-03-01,)}",)),
    ("bit varying(5)", "string", ("101",)),
    ("tsvector", "string", ("'a':1 'b':2",)),
    ("mood", "string", ("so 'so'",)),
    ("price", "decimal(8,2)", ("12.50",)),
    ("pair", "string", ('(1,"a b")',)),
    ("int[]", "array<int>", ("{}", "{1,NULL,3}")),
    ("text[]", "array<string>", ('{"a,b","c\\"d","NULL",NULL,""}',)),
    ("numeric(6,2)[]", "array<decimal(6,2)>", ("{1.5,-2}",)),
    ("timestamptz[]", "array<timestamp>", ('{"2024-01-01 00:00+00"}',)),
    ("mood[]", "array<string>", ("{\"so 'so'\"}",)),
    ("box[]", "string", ("{(1,1),(0,0);(3,4),(1,2)}",)),
)
"""PostgreSQL's type, the mirror's, and values as PostgreSQL reads them."""


WAYS = ("wal", "trigger") if LONG else ("wal",)


@pytest.fixture
def source(hr: Headrace, ns: str) -> Iterator[str]:
    yield f"{ns}_types"
    hr.sources.drop(f"{ns}_types", if_exists=True)


@pytest.mark.parametrize("way", WAYS)
def test_every_type_comes_whole_by_snapshot_and_by_stream(
    hr: Headrace, source: str, server: LogicalServer, way: str
) -> None:
    url = server.fresh()
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE TYPE mood AS ENUM ('so ''so'''); CREATE DOMAIN price AS numeric(8,2)")
        db.execute("CREATE TYPE pair AS (a int, b text); SET datestyle = ISO, YMD; SET timezone = UTC")
        columns = ", ".join(f"c{i} {type_}" for i, (type_, *_) in enumerate(VALUES))
        db.execute(f"CREATE TABLE every (id int PRIMARY KEY, {columns})")
        insert(db, 0)
        hr.sources.create(source, url, ["every"], text_columns=(), capture=way)
        insert(db, 100)
        hr.sources.land(source)
        shown = ", ".join(f"c{i}::text" for i in range(len(VALUES)))
        expected = {r[0]: r[1:] for r in db.execute(f"SELECT id, {shown} FROM every ORDER BY id").fetchall()}
        types = {f.name: f.dataType.simpleString() for f in hr.spark.table(f"lake.{source}.every").schema}
        assert [types[f"c{i}"] for i in range(len(VALUES))] == [mirror for _, mirror, _ in VALUES]
        texts = ", ".join(f"{as_text(types[f'c{i}'], f'c{i}')}" for i in range(len(VALUES)))
        found = {r[0]: tuple(r[1:]) for r in hr.sql(f"SELECT id, {texts} FROM lake.{source}.every").collect()}
        assert found.keys() == expected.keys()
        wrong = [
            (VALUES[i][0], expected[key][i], found[key][i])
            for key in expected
            for i in range(len(VALUES))
            if not same(types[f"c{i}"], expected[key][i], found[key][i])
        ]
        assert not wrong
        for number, (type_, value) in enumerate((("date", "infinity"), ("numeric(6,2)", "NaN"), ("int[]", "{{1}}"))):
            db.execute(f"CREATE TABLE odd_{number} (id int PRIMARY KEY, a {type_})")
            db.execute(f"INSERT INTO odd_{number} VALUES (1, '{value}')")
            with pytest.raises(HeadraceError, match="VALUE_NOT_REPRESENTABLE"):
                hr.sources.create(f"{source}_odd", url, [f"odd_{number}"], capture=way)
        hr.sources.create(f"{source}_odd", url, ["odd_0"], text_columns=["public.odd_0.a"], capture=way)
        assert [r.a for r in hr.sql(f"SELECT a FROM lake.{source}_odd.odd_0").collect()] == ["infinity"]
        hr.sources.drop(f"{source}_odd")
        installed = (
            "SELECT (SELECT count(*) FROM pg_replication_slots WHERE database = current_database()), "
            "(SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'headrace%')"
        )
        assert db.execute(installed).fetchone() == ((1, 0) if way == "wal" else (0, 1))


def insert(db: psycopg.Connection, start: int) -> None:
    """Rows with every value, and one of nothing but NULLs."""
    most = max(len(values) for *_, values in VALUES)
    for place in range(most + 1):
        row = [values[place] if place < len(values) else None for *_, values in VALUES]
        marks = ", ".join(f"%s::{type_}" for type_, *_ in VALUES)
        db.execute(f"INSERT INTO every VALUES (%s, {marks})", [start + place, *row])


def as_text(type_: str, column: str) -> str:
    if type_ == "binary":
        return f"concat('\\\\x', lower(hex({column})))"
    if type_.startswith("array"):
        return f"to_json({column})"
    return f"CAST({column} AS STRING)"


def same(type_: str, expected: str | None, found: str | None) -> bool:
    """Whether two texts are the same value; dates are written differently on both sides."""
    if expected is None or found is None:
        return expected is found
    if type_ == "boolean":
        return {"true": "true", "false": "false"}[expected] == found
    if type_ in ("float", "double"):
        return repr(float(expected)) == repr(float(found))
    if type_ in ("date", "timestamp", "timestamp_ntz"):
        return spark_moment(expected) == found.lstrip("+")
    if type_.startswith("array"):
        import json

        numbers = {"{}": [], "{1,NULL,3}": [1, None, 3], "{1.50,-2.00}": [1.5, -2.0]}
        texts = {
            '{"a,b","c\\"d","NULL",NULL,""}': ["a,b", 'c"d', "NULL", None, ""],
            '{"2024-01-01 00:00:00+00"}': ["2024-01-01T00:00:00.000Z"],
            "{\"so 'so'\"}": ["so 'so'"],
        }
        return json.loads(found) == {**numbers, **texts}[expected]
    return expected == found


def spark_moment(text: str) -> str:
    """A date or time of PostgreSQL as Spark writes it."""
    before = text.endswith(" BC")
    text = text.removesuffix(" BC").removesuffix("+00")
    year, dash, rest = text.partition("-")
    if before:
        number = 1 - int(year)
        year = f"-{-number:04}" if number else "0000"
    return f"{year}{dash}{rest}"
