"""Every built-in type that a table can have, and arrays of it, by snapshot, log and triggers, as PostgreSQL writes it.

Which texts Spark makes typed values of is tried with Spark (`tests/pipeline/test_postgres_types.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import psycopg
import pytest
from kit.mirrored import Follower, truth
from kit.pg_child import Way

from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.sources.postgres.type_mapping import mapped
from headrace.sources.postgres.wal.wal_capture import PostgresCapture

WAYS = [PostgresCapture, TriggerCapture]

VALUES: Mapping[str, tuple[str, ...]] = {
    "aclitem": ("postgres=r/postgres",),
    "bit": ("1",),
    "bool": ("t", "f"),
    "box": ("(3,4),(1,2)", "(1,1),(0,0)"),
    "bpchar": ("ab  ", ""),
    "bytea": ("\\x00ff", "\\x"),
    "char": ("q", ""),
    "cid": ("7",),
    "cidr": ("10.0.0.0/8", "::/0"),
    "circle": ("<(1,2),3>",),
    "date": ("infinity", "-infinity", "5874897-12-31", "4713-01-01 BC"),
    "datemultirange": ("{[2026-01-01,2026-02-01),[2026-03-01,)}", "{}"),
    "daterange": ("[2026-01-01,infinity)", "empty", "(,)"),
    "float4": ("NaN", "-Infinity", "1e-45", "-0"),
    "float8": ("NaN", "Infinity", "5e-324", "1.7976931348623157e+308", "-0"),
    "inet": ("192.168.0.1/24", "::1"),
    "int2": ("-32768",),
    "int2vector": ("1 2 3", ""),
    "int4": ("-2147483648",),
    "int4multirange": ("{[1,3),[5,)}",),
    "int4range": ("[1,5)", "empty"),
    "int8": ("-9223372036854775808",),
    "int8multirange": ("{(,1),[5,7)}",),
    "int8range": ("[1,9223372036854775807)",),
    "interval": ("1 year 2 mons -3 days +04:05:06.789", "-1 days", "infinity"),
    "json": ('{"b": 1,  "b": [null, "\\u00e9\\n"]}', "null"),
    "jsonb": ('{"a": 1.50}', '"x"'),
    "jsonpath": ('$."a"[*]',),
    "line": ("{1,-1,0}",),
    "lseg": ("[(1,2),(3,4)]",),
    "macaddr": ("08:00:2b:01:02:03",),
    "macaddr8": ("08:00:2b:ff:fe:01:02:03",),
    "money": ("-$1,234.56",),
    "name": ("odd \"name\", 'x'",),
    "numeric": ("NaN", "Infinity", "0." + "1" * 300, "9" * 1000, "-0.00", "1e-5"),
    "nummultirange": ("{[1.5,2.50]}",),
    "numrange": ("(-Infinity,1.10]",),
    "oid": ("4294967295",),
    "oidvector": ("1 4294967295",),
    "path": ("[(1,2),(3,4)]", "((1,2),(3,4))"),
    "pg_lsn": ("16/B374D848", "FFFFFFFF/FFFFFFFF"),
    "pg_snapshot": ("10:20:10,14,15",),
    "point": ("(1.5,-2)", "(Infinity,NaN)"),
    "polygon": ("((1,2),(3,4),(5,6))",),
    "refcursor": ("a cursor",),
    "regclass": ("pg_class",),
    "regcollation": ('"C"',),
    "regconfig": ("english",),
    "regdatabase": ("postgres",),
    "regdictionary": ("simple",),
    "regnamespace": ("pg_catalog",),
    "regoper": ("|/",),
    "regoperator": ("+(integer,integer)",),
    "regproc": ("pg_backend_pid",),
    "regprocedure": ("abs(integer)",),
    "regrole": ("postgres",),
    "regtype": ("character varying",),
    "text": ("", "NULL", '\\N\t"a"\r\n,\\', "\U0001f600"),
    "tid": ("(4294967295,65535)",),
    "time": ("24:00:00", "23:59:59.999999"),
    "timestamp": ("infinity", "294276-12-31 23:59:59.999999", "4714-11-24 00:00:00 BC"),
    "timestamptz": ("-infinity", "2026-03-29 02:30:00.5+02"),
    "timetz": ("23:59:59.999999-15:59", "24:00:00+05:45"),
    "tsmultirange": ('{["2026-01-01 00:00:00",infinity]}',),
    "tsquery": ("'a' & !'b':*A <2> 'c'",),
    "tsrange": ('["2026-01-01 00:00:00","2026-01-02 00:00:00")',),
    "tstzmultirange": ('{["2026-01-01 00:00:00+02",)}',),
    "tstzrange": ('["2026-01-01 00:00:00+02",)',),
    "tsvector": ("'a b':1A 'c''d':2,3B", ""),
    "txid_snapshot": ("10:20:10,14",),
    "uuid": ("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",),
    "varbit": ("10110", ""),
    "varchar": ("it's", ""),
    "xid": ("4294967295",),
    "xid8": ("18446744073709551615",),
    "xml": ('<a b="c">d &amp; e</a>',),
}
"""By name in `pg_type`: texts of values."""

TYPES = """
SELECT typname, typarray::regtype::text FROM pg_type
WHERE typnamespace = 'pg_catalog'::regnamespace AND typtype IN ('b', 'r', 'm')
    AND (typcategory NOT IN ('A', 'Z') OR typname IN ('char', 'int2vector', 'oidvector')) AND typname <> 'gtsvector'
ORDER BY typname
"""
"""Those that columns can have; category Z is PostgreSQL's own, and nobody writes a `gtsvector`."""


def fits(db: psycopg.Connection, type_: str, value: str) -> bool:
    """Whether this server knows a value: an interval may be infinite from PostgreSQL 17 on, XML not be compiled in."""
    try:
        db.execute(f"SELECT %s::{type_}", (value,))
    except (psycopg.errors.DataError, psycopg.errors.FeatureNotSupported):
        return False
    return True


@pytest.mark.parametrize("way", WAYS)
def test_every_built_in_type(url: str, db: psycopg.Connection, tmp_path: Path, way: Way) -> None:
    db.execute("SET timezone = 'UTC'")
    types = dict(db.execute(TYPES).fetchall())
    assert types.keys() <= VALUES.keys(), "a type that was not known"
    quoted = {t: f'pg_catalog."{t}"' for t in types}
    values = {t: [v for v in VALUES[t] if fits(db, quoted[t], v)] for t in types}
    columns = {f"of_{t}": (quoted[t], values[t]) for t in types}
    for t, array in types.items():
        whole = db.execute(f"SELECT (%s::text[]::{array})::text", ([*values[t], None],)).fetchone()
        columns[f"arrays_{t}"] = (array, ["{}", *(whole or ())])
    listed = ", ".join(f'"{name}" {type_}' for name, (type_, _) in columns.items())
    db.execute(f"CREATE TABLE every (id int PRIMARY KEY, {listed})")
    insert(db, columns, 0)
    # Casts are Spark's, and lists of text are compared elsewhere: here it is about what goes in and comes out.
    as_text = [f"public.every.{n}" for n in columns if n.startswith("arrays_") or mapped(n[3:]).expression]
    written = "CASE WHEN {0} IS NOT NULL THEN format('%s', {0}) END"  # a cast to text writes some otherwise
    texts = ", ".join(written.format(f'"{name}"') for name in columns)
    every = f"(SELECT id, {texts} FROM every) AS s"
    follower = Follower(url, tmp_path, "every", way=way, as_text=tuple(as_text))
    follower.begin()
    assert wrong(follower, db, every) == {}
    insert(db, columns, 100)
    db.execute("UPDATE every SET of_text = 'x' WHERE id % 3 = 0; UPDATE every SET id = -id WHERE id % 5 = 0")
    follower.land()
    assert wrong(follower, db, every) == {}
    db.execute("DELETE FROM every WHERE id > 50")
    follower.land()
    assert wrong(follower, db, every) == {}
    follower.capture().remove()


def wrong(follower: Follower, db: psycopg.Connection, every: str) -> dict[str, tuple[object, object]]:
    """Columns in which the mirror and the table differ, with what each has."""
    names = list(next(iter(follower.mirrors.tables.values())).typed)
    here, there = (sorted(rows, key=lambda r: r[0]) for rows in (follower.rows("every"), truth(db, every)))
    assert [r[0] for r in here] == [r[0] for r in there]
    columns = zip(names, zip(*here, strict=True), zip(*there, strict=True), strict=True)
    return {column.name: (ours, theirs) for (column, _), ours, theirs in columns if ours != theirs}


def insert(db: psycopg.Connection, columns: Mapping[str, tuple[str, list[str]]], start: int) -> None:
    """Rows with every value, and one of nothing but NULLs."""
    for place in range(max(len(values) for _, values in columns.values()) + 1):
        row = [values[place] if place < len(values) else None for _, values in columns.values()]
        marks = ", ".join(f"%s::{type_}" for type_, _ in columns.values())
        db.execute(f"INSERT INTO every VALUES (%s, {marks})", [start + place, *row])


@pytest.mark.parametrize("way", WAYS)
def test_arrays_are_lists_of_texts(url: str, db: psycopg.Connection, tmp_path: Path, way: Way) -> None:
    db.execute("CREATE TYPE mood AS ENUM ('so, so', 'NULL'); CREATE TYPE pair AS (a int, b text)")
    db.execute("CREATE TABLE t (id int PRIMARY KEY, m mood[], p pair[], r int4range[], u uuid[], b box[])")
    boxes = "{(1,1),(0,0);(3,3),(2,2)}"
    rows = (
        f"""'{{"so, so","NULL",NULL}}', '{{"(1,\\"a b\\")"}}', '{{"[1,5)",empty}}', NULL, '{boxes}'""",
        "'{}', '{NULL}', '{}', '{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}', '{}'",
    )
    db.execute(f"INSERT INTO t VALUES (1, {rows[0]}), (2, {rows[1]})")
    follower = Follower(url, tmp_path, "t", way=way)
    follower.begin()
    db.execute(f"INSERT INTO t VALUES (3, {rows[0]}), (4, {rows[1]})")
    follower.land()
    types = {c.name: c.type for c, _ in next(iter(follower.mirrors.tables.values())).typed}
    assert (types["m"], types["b"]) == ("array<string>", "string"), "boxes are separated by something else"
    found = {row[0]: row[1:] for row in follower.mirrors._duck.execute("SELECT * FROM t").fetchall()}
    first = (["so, so", "NULL", None], ['(1,"a b")'], ["[1,5)", "empty"], None, boxes)
    second = ([], [None], [], ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"], "{}")
    assert found == {1: first, 2: second, 3: first, 4: second}
    follower.capture().remove()
