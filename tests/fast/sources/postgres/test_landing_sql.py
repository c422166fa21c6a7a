"""What a batch makes of a mirror."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fast.sources.postgres import messages as m
from kit.mirrored import translated

from headrace.names import WEIGHT
from headrace.sources.postgres.spool.landing_sql import FEW, KNOWN, LIVE, WEIGHED, Spooled, change_sql


def test_a_bag_that_is_emptied_lists_no_row_twice() -> None:
    bag = m.table(identity="f", key=())
    columns = ", ".join(f'"{c.name}"' for c, _ in bag.typed)
    rows = ", ".join("(1, 'x', 'y')" for _ in range(3))
    change = translated(change_sql(bag, Spooled(None, 0, truncated=True), "`before`"))
    found = duckdb.sql(f'WITH "before" ({columns}) AS (VALUES {rows}) SELECT * FROM ({change})').fetchall()
    assert found == [(1, "x", "y", -3)]


def spooled(folder: Path, rows: list[tuple[str, str | None, str | None, bool, bool]]) -> Spooled:
    columns = dict(zip(("c0", "c1", "c2", "live", "known"), zip(*rows, strict=True), strict=True))
    types = (pa.string(), pa.string(), pa.string(), pa.bool_(), pa.bool_())
    table = pa.table({n: pa.array(v, t) for (n, v), t in zip(columns.items(), types, strict=True)})
    pq.write_table(table, folder / "0.parquet")
    return Spooled(str(folder), len(rows), keyed=True, known=True)


def test_many_rows_change_what_few_do(tmp_path: Path) -> None:
    chance, table = random.Random(7), m.table()
    names = ", ".join(f'"{c.name}"' for c, _ in table.typed)
    for turn in range(20):
        ids = chance.sample(range(40), 30)
        texts = ("x", "y", None)
        before = [(i, chance.choice(texts), chance.choice(texts)) for i in ids[:20]]
        batch = [
            (str(i), chance.choice(texts), chance.choice(texts), chance.random() < 0.8, i in ids[:20])
            for i in sorted(ids[10:])
        ]
        (tmp_path / str(turn)).mkdir()
        of = spooled(tmp_path / str(turn), batch)
        rows = ", ".join(f"('{i}', {_literal(a)}, {_literal(b)})" for i, a, b in before)
        found = []
        for most in (0, FEW):
            change = translated(change_sql(table, of, "`before`", most_few=most))
            found.append(duckdb.sql(f'WITH "before" ({names}) AS (VALUES {rows}) SELECT * FROM ({change})').fetchall())
        many, few = found
        assert len(many) == len(set(many))
        assert sorted(many, key=repr) == sorted(few, key=repr)


@pytest.mark.parametrize("key", [("id",), ()])
@pytest.mark.parametrize("most", [0, FEW])
def test_a_zero_that_gets_a_sign_is_a_change(tmp_path: Path, key: tuple[str, ...], most: int) -> None:
    whole = m.table(key=key)
    table = replace(whole, columns=(*whole.columns[:2], replace(whole.columns[2], type=701, base="float8")))
    rows = {"c0": ["1", "1"], "c1": ["x", "x"], "c2": ["0", "-0"], WEIGHED: [-1, 1]}
    if key:
        rows = {name: values[1:] for name, values in rows.items()} | {LIVE: [True], KNOWN: [True]}
    pq.write_table(pa.table(rows), tmp_path / "0.parquet")
    of = Spooled(str(tmp_path), 2, keyed=bool(key), known=bool(key))
    change = translated(change_sql(table, of, "`before`", most_few=most))
    before = "SELECT '1' AS id, 'x' AS a, 0::double AS b"
    found = duckdb.sql(f'WITH "before" AS ({before}) SELECT b, {WEIGHT} FROM ({change})').fetchall()
    assert sorted((weight, str(b)) for b, weight in found) == [(-1, "0.0"), (1, "-0.0")]


def _literal(text: str | None) -> str:
    return "NULL" if text is None else f"'{text}'"
