"""Whether rows with weights need adding up is known when they are written."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from fast.sources.postgres import messages as m

from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.spool.spool import Spool

Row = tuple[str, str | None, str | None, int]

KEYED = m.table(identity="f")
OLD: list[Row] = [("1", "a", "x", -1), ("2", "b", None, -1)]


def distinct(folder: Path, rows: list[Row], table: RemoteTable = KEYED) -> bool:
    columns = zip(*rows, strict=True)
    types = (pa.string(), pa.string(), pa.string(), pa.int32())
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    batch = pa.RecordBatch.from_arrays(arrays, names=["c0", "c1", "c2", "weight"])
    pieces = iter([batch.slice(at, 2) for at in range(0, len(rows), 2)])
    return Spool(str(folder), few=0).write_weighed(table, pieces).distinct


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (OLD, True),
        ([*OLD, ("1", "c", "x", 1), ("2", "b", "y", 1)], True),
        ([*OLD, ("3", "a", "x", 1)], True),
        ([*OLD, ("1", "a", None, 1), ("2", "b", "", 1)], True),
        ([*OLD, ("1", "a", "x", 1)], False),
        ([*OLD, ("1", "c", "x", 1), ("2", "b", None, 1)], False),
        ([*OLD, ("2", "b", "y", -1)], False),
        ([("1", "a", "x", 1), ("1", "b", "x", 1)], False),
    ],
)
def test_rows_that_add_up_are_found(tmp_path: Path, rows: list[Row], expected: bool) -> None:
    assert distinct(tmp_path, rows) is expected


def test_without_a_key_nobody_can_tell(tmp_path: Path) -> None:
    assert not distinct(tmp_path, OLD, m.table(identity="f", key=()))


def test_keys_that_only_look_the_same_are_no_harm(tmp_path: Path) -> None:
    table = m.table(identity="f", key=("id", "a"))
    assert distinct(tmp_path, [("1\x1fx", "y", "q", -1), ("1", "x\x1fy", "r", 1)], table)
    assert not distinct(tmp_path, [("1\x1fx", "y", "q", -1), ("1", "x\x1fy", "q", 1)], table)
    assert not distinct(tmp_path, [("1\x1fx", "y", "q", -1), ("1", "x\x1fy", "q", -1)], table)


def test_what_is_said_to_need_no_adding_up_needs_none(tmp_path: Path) -> None:
    chance, told = random.Random(3), Counter[bool]()
    for _ in range(300):
        keys, texts = ("1", "2", "3", "4"), ("a", "b", None)
        rows = [
            (chance.choice(keys), chance.choice(texts), "x", chance.choice((1, -1)))
            for _ in range(chance.randint(1, 5))
        ]
        total = Counter[tuple[str | None, ...]]()
        for *row, weight in rows:
            total[tuple(row)] += weight
        plain = len(total) == len(rows) and 0 not in total.values()
        said = distinct(tmp_path, rows)
        told[said] += 1
        assert plain or not said
    assert min(told.values()) > 50
