"""A few rows as SQL."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from kit.mirrored import translated

from headrace.sources.postgres.spool.literal_rows import MOST_BYTES, take_literals, value_sql

ODD = [
    "plain text, 1.5",
    "it's",
    'quo"ted',
    "back\\slash \\n",
    "${env:HOME} $x",
    "zwölf",
    "two\nlines",
    "",
    "%s {}",
    None,
]


def batch(**columns: list[object]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({name: pa.array(values) for name, values in columns.items()})


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (None, "NULL"),
        (True, "true"),
        (-1, "-1"),
        ("2026-01-01 00:00:00+00", "'2026-01-01 00:00:00+00'"),
        ("it's", "CAST(X'69742773' AS STRING)"),
        ("$x", "CAST(X'2478' AS STRING)"),
    ],
)
def test_text_means_itself(value: object, literal: str) -> None:
    assert value_sql(value) == literal  # type: ignore[arg-type]


def test_rows_come_back_as_they_were() -> None:
    taken, text = take_literals(iter([batch(c0=ODD[:4], live=[True] * 4), batch(c0=ODD[4:], live=[True, False] * 3)]))
    assert len(taken) == 2
    rows = duckdb.sql(translated(f"SELECT * FROM {text}")).fetchall()
    assert [row[0] for row in rows] == ODD
    assert [row[1] for row in rows] == [True] * 4 + [True, False] * 3


def test_what_is_nothing_much_or_nested_goes_into_files() -> None:
    one, lists = batch(c0=["a"]), batch(c0=[["a"]])
    rest = iter([one] * 5)
    taken, text = take_literals(rest, 3)
    assert (len(taken), text, len(list(rest))) == (4, None, 1)
    assert take_literals(iter([lists]))[1] is None
    assert take_literals(iter([batch(c0=["x" * MOST_BYTES])]))[1] is None
    assert take_literals(iter([]))[1] is None
    assert take_literals(iter([one, batch(c1=["b"])]))[1] is None
