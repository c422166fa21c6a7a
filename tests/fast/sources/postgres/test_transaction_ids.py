"""Millions of transactions are counted in a megabyte or two, and rightly."""

from __future__ import annotations

import random
import tracemalloc

import numpy as np
import pytest

from headrace.sources.postgres.transaction_ids import BLOCK, FEW, TransactionIds

MIB = 1 << 20


@pytest.mark.parametrize("seed", range(20))
def test_as_many_as_there_are(seed: int) -> None:
    chance, ids, known = random.Random(seed), TransactionIds(), set[int]()
    assert len(ids) == 0
    for _ in range(chance.randint(1, 12)):
        first, width = chance.randrange(1 << 40), chance.choice((1, 50, FEW, 2 * BLOCK))
        first = chance.choice((first, min(known, default=first)))
        added = [first + chance.randrange(width) for _ in range(chance.choice((0, 1, FEW - 1, 3 * FEW)))]
        ids.add(np.array(added, np.int64))
        known.update(added)
        assert len(ids) == len(known)


def test_millions_take_a_bit_each() -> None:
    batch, batches = 50_000, 40
    ids = TransactionIds()
    tracemalloc.start()
    try:
        for number in range(batches):
            ids.add(np.arange(number * batch, (number + 1) * batch, dtype=np.int64))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(ids) == batches * batch
    assert peak < 2 * MIB, peak
