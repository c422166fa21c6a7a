"""Rows taken apart together are what they are one by one."""

from __future__ import annotations

import random

import pytest
from fast.sources.postgres import messages as m

from headrace.errors import InternalError
from headrace.sources.postgres.spool.text_columns import keyed, weighed
from headrace.sources.postgres.wal import net_collector
from headrace.sources.postgres.wal.net_changes import KeyedChanges, WeighedChanges
from headrace.sources.postgres.wal.net_collector import Collector
from headrace.sources.postgres.wal.pgoutput import UNCHANGED, Insert, Value, unpacked
from headrace.sources.postgres.wal.pgoutput_columns import Bytes

T = m.table()


def _value(chance: random.Random) -> Value:
    long = chance.choice((0, 1, 3, 255, 256, 70_000))
    return chance.choice((None, UNCHANGED, b"", chance.randbytes(long).replace(b"\0", b"t"), b"tnu"))


@pytest.mark.parametrize("seed", range(40))
def test_values_lie_where_decoding_finds_them(seed: int) -> None:
    chance = random.Random(seed)
    width = chance.randint(1, 5)
    rows = [[_value(chance) for _ in range(width)] for _ in range(chance.randint(1, 30))]
    packed = [m.row(row) for row in rows]
    assert [unpacked(row) for row in packed] == rows
    found = Bytes.of(packed)
    columns, ends = found.rows(found.starts, width)
    assert (ends - found.starts).tolist() == [len(row) for row in packed]
    for number, column in enumerate(columns):
        values = [row[number] for row in rows]
        assert found.binary(column).to_pylist() == [None if v is UNCHANGED else v for v in values]
        assert column.unsent.tolist() == [v is UNCHANGED for v in values]
        assert found.pieces(column) == [v if isinstance(v, bytes) else b"" for v in values]


def test_no_rows_have_no_values() -> None:
    found = Bytes.of([])
    columns, _ = found.rows(found.starts, 2)
    assert [found.binary(column).to_pylist() for column in columns] == [[], []]


@pytest.mark.parametrize("bad", [m.row(["1"]), m.row(["1", "2"]).replace(b"t", b"?", 1)])
def test_what_is_no_row_is_refused(bad: bytes) -> None:
    found = Bytes.of([m.row(["1", "2"]), bad])
    with pytest.raises(InternalError, match="PGOUTPUT_UNREADABLE"):
        found.rows(found.starts, 2)


@pytest.mark.parametrize("seed", range(30))
def test_messages_held_together_leave_what_they_leave_one_by_one(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of two columns that come, change, go and come again, over several blocks."""
    monkeypatch.setattr(net_collector, "TOGETHER", 1)
    chance, key = random.Random(seed), ("id", "a")
    table = m.table(key=key)
    mirror = {(str(chance.randint(0, 3)), "x") for _ in range(3)}
    stream, there = list[bytes](), set(mirror)
    for _ in range(chance.randint(40, 90)):
        row = (str(chance.randint(0, 3)), chance.choice("xy"))
        if row not in there:
            stream.append(m.insert(table.oid, *row, str(chance.random())))
            there.add(row)
        elif chance.random() < 0.4:
            stream.append(m.delete(table.oid, *row, None))
            there.remove(row)
        else:
            stream.append(m.update(table.oid, [*row, chance.choice((None, str(chance.random())))]))
    collector = Collector({table.oid: table}, 0)
    collector.feed(m.blocks([m.relation(table), m.begin(1), *stream, m.commit(1, 2)], 36))
    changes = collector.changes[table.oid]
    assert isinstance(changes, KeyedChanges)
    assert (len(changes.bulk) > 0, changes.rows) == (True, {})
    together = [row for batch in keyed(table, changes) for row in batch.to_pylist()]
    changes.one_by_one()
    alone = [row for batch in keyed(table, changes) for row in batch.to_pylist()]
    assert sorted(map(str, together)) == sorted(map(str, alone))
    assert {(r["c0"], r["c1"]) for r in together if not r["known"]}.isdisjoint(mirror)


def test_rows_in_whatever_form_are_written_alike() -> None:
    changes = KeyedChanges((0,))
    changes.many([(True, (b"1",), m.row(["1", "x", None])), (False, (b"2",), None)])
    changes.insert(Insert(T.oid, [b"3", None, b"y"]))
    rows = [row for batch in keyed(T, changes) for row in batch.to_pylist()]
    assert sorted((r["c0"], r["c1"], r["c2"], r["live"], r["known"]) for r in rows) == [
        ("1", "x", None, True, False),
        ("2", None, None, False, True),
        ("3", None, "y", True, False),
    ]
    bag = WeighedChanges(added=[m.row(["1", "x", None]), [b"2", None, b"y"]], removed=[m.row(["3", "z", ""])])
    rows = [row for batch in weighed(T, bag) for row in batch.to_pylist()]
    assert [tuple(r.values()) for r in rows] == [("1", "x", None, 1), ("2", None, "y", 1), ("3", "z", "", -1)]
