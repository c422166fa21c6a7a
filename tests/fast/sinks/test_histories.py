"""Random histories of changes through a sink: the target equals the stream table after each, however many at once."""

from __future__ import annotations

import itertools
import os
from collections import Counter

import psycopg
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from kit.citus_catalogs import like_a_coordinator
from kit.logical import LogicalServer
from kit.long_tests import LONG
from kit.sink_rows import Change, FakeStream, Row, deliver, new_sink, options

from headrace.algebra.schema import Column

COLUMNS = (Column("a", "int"), Column("b", "string"), Column("x", "double"))
_numbers = itertools.count(1)

rows = st.tuples(
    st.one_of(st.none(), st.integers(0, 2)),
    st.sampled_from([None, "", "t\t\\", "é"]),
    st.sampled_from([None, 0.0, -0.0, float("nan"), 1.5]),
)
steps = st.lists(st.tuples(st.lists(st.tuples(rows, st.integers(-2, 2)), max_size=6), st.booleans()), max_size=8)


def bag_changes(entries: list[tuple[Row, int]], now: dict[str, int]) -> Change:
    """What of some entries leaves no count below zero."""
    change = []
    for row, weight in entries:
        weight = max(weight, -now.get(repr(row), 0))
        if weight:
            now[repr(row)] = now.get(repr(row), 0) + weight
            change.append((row, weight))
    return change


def keyed_changes(entries: list[tuple[Row, int]], now: dict[object, Row], place: int) -> Change:
    """Entries as changes of rows with a key: the column at a place."""
    change: list[tuple[Row, int]] = []
    for row, weight in entries:
        old = now.pop(row[place], None)
        if old is not None:
            change.append((old, -1))
        if weight > 0:
            now[row[place]] = row
            change.append((row, 1))
    return change


def text_of(db: psycopg.Connection, table: str) -> Counter[tuple[object, ...]]:
    return Counter(db.execute(f"SELECT a, b, x::text FROM {table}").fetchall())


def expected(stream: FakeStream) -> Counter[tuple[object, ...]]:
    found: Counter[tuple[object, ...]] = Counter()
    for (a, b, x), count in stream.entries_at(stream.version):
        text = None if x is None else {"0.0": "0", "-0.0": "-0", "nan": "NaN"}.get(repr(x), repr(x))
        found[a, b, text] += count
    return found


@pytest.fixture(scope="module")
def base(server: LogicalServer) -> str:
    return server.fresh()


@pytest.fixture(scope="module")
def coordinator(server: LogicalServer) -> str:
    url = server.fresh()
    with psycopg.connect(url, autocommit=True) as db:
        like_a_coordinator(db)
    return url


@pytest.mark.parametrize("key", [[], ["a"], ["x"]], ids=["a bag", "with a key", "with a key of equal zeros"])
@pytest.mark.parametrize("placement", ["local", "reference", "distributed"])
def test_a_target_equals_its_stream_table(base: str, coordinator: str, placement: str, key: list[str]) -> None:
    """Also by the statements that a cluster takes; their rows are on a plain server here."""
    base, examples = (base, 14) if placement == "local" else (coordinator, 8)
    with psycopg.connect(base, autocommit=True) as db:

        @settings(
            max_examples=examples * int(os.environ.get("HEADRACE_EXAMPLES", "3" if LONG else "1")),
            deadline=None,
            suppress_health_check=list(HealthCheck),
        )
        @given(steps)
        @example([([((0, "", 0.0), 1)], True), ([((0, "", -0.0), 1)], True)])
        def play(history: list[tuple[list[tuple[Row, int]], bool]]) -> None:
            table, sink = f"t{next(_numbers)}", new_sink()
            of = options(base, table, key, placement=placement)
            stream = FakeStream(COLUMNS, [[]], batch=3)
            counts: dict[str, int] = {}
            by_key: dict[object, Row] = {}
            deliver(of, stream.delivery(sink))
            for entries, written in [*history, ([], True)]:
                stream.log.append(
                    keyed_changes(entries, by_key, "abx".index(key[0])) if key else bag_changes(entries, counts)
                )
                if written:
                    deliver(of, stream.delivery(sink))
                    assert text_of(db, table) == expected(stream)
            deliver(of, stream.delivery(sink, anew=True))
            assert text_of(db, table) == expected(stream)
            db.execute(f"DROP TABLE {table}")

        play()
