"""What a landing by triggers counts: every transaction once, and millions of them in little memory."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa

from headrace.sources.postgres.triggers.trigger_capture import Tally


def changes(xids: list[int], ops: list[int]) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(xids, pa.int64()), pa.array(ops, pa.int16())], names=["xid", "op"])


def taken(batches: Iterator[pa.RecordBatch]) -> Tally:
    tally = Tally()
    for batch in tally.weighed(batches):
        assert batch.num_columns == 1
    return tally


def test_every_transaction_counts_once() -> None:
    chance, known, batches = random.Random(1), set[int](), []
    for first in (5, 5, 1 << 40, (1 << 40) + 7):
        xids = [first + chance.randrange(900) for _ in range(2_000)]
        known.update(xids)
        batches.append(changes(xids, [chance.choice((1, -1)) for _ in xids]))
    assert len(taken(iter(batches)).transactions) == len(known)


def test_rows_of_updates_count_once() -> None:
    tally = taken(iter([changes([1, 1, 1, 1, 2], [-2, 2, -2, 2, 1]), changes([3], [-1])]))
    assert (tally.rows, tally.images, tally.deleted, len(tally.transactions)) == (4, 6, 3, 3)


def test_millions_of_transactions_take_a_bit_each() -> None:
    size, ones = 50_000, [1] * 50_000
    tally = taken(changes(list(range(n * size, (n + 1) * size)), ones) for n in range(20))
    assert len(tally.transactions) == 20 * size
    assert len(tally.transactions.serialize()) < 20 * size / 8 * 1.1
