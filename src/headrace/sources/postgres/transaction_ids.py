"""Counts transactions by their ids in little memory: a landing may have millions of them.

Ids of transactions that end in one period lie close together. So they are kept by blocks of 65,536: those of a block
as numbers of two bytes each while they are few, as one bit for every id of the block when they are many. One takes two
bytes at most; and all 2³¹, more than PostgreSQL can have between two snapshots, would take 256 MiB.

Source: Lemire et al., Consistently faster and smaller compressed bitmaps with Roaring, 2016 (its containers).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

BLOCK = 1 << 16
FEW = BLOCK // 16
"""So many numbers of two bytes take as much as the bits."""


class TransactionIds:
    """A set of numbers that can be added to, and counted."""

    def __init__(self) -> None:
        self._few: dict[int, Array] = {}
        self._many: dict[int, Array] = {}

    def add(self, ids: Array) -> None:
        """Add some, in any order, also such as are there already."""
        ordered = np.unique(ids)
        blocks = ordered // BLOCK
        bounds = [0, *(np.flatnonzero(np.diff(blocks)) + 1), len(ordered)]
        for start, end in pairwise(bounds):
            if start < end:
                self._add(int(blocks[start]), (ordered[start:end] % BLOCK).astype(np.uint16))

    def __len__(self) -> int:
        return sum(map(len, self._few.values())) + sum(int(np.unpackbits(b).sum()) for b in self._many.values())

    def _add(self, block: int, ids: Array) -> None:
        if block not in self._many:
            ids = np.union1d(self._few.get(block, ids), ids)
            if len(ids) < FEW:
                self._few[block] = ids
                return
            self._few.pop(block, None)
            self._many[block] = np.zeros(BLOCK // 8, np.uint8)
        there = np.zeros(BLOCK, bool)
        there[ids] = True
        self._many[block] |= np.packbits(there)
