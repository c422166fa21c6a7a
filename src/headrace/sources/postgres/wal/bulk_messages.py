"""Takes in many messages about one table at once.

Pure. All of them are taken apart together (`pgoutput_columns.py`), and stay together: they are put down as they came,
and what is left of each key is found when the batch ends (`bulk_changes.py`). Messages that need more than that are
few, and are left to `pgoutput.decode`: an UPDATE that moves a row to another key, or that left large values out. From
the first one on, the keys of its table are looked up one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from headrace.sources.postgres.wal.bulk_changes import KeyedBulk, PlacedRows, keys_in
from headrace.sources.postgres.wal.net_changes import KeyedChanges, WeighedChanges
from headrace.sources.postgres.wal.pgoutput_columns import Bytes, Placed

_INSERT, _UPDATE, _DELETE = b"IUD"
_NEW, _OLD = b"NO"
_HEAD, _ROW = 5, 6
"""Offsets in a message: where it says which row follows, and where that row begins."""

Mask = NDArray[np.bool_]
Alone = Callable[[bytes], None]
"""Takes in a message that cannot be taken in with others."""


def take_in(changes: KeyedChanges | WeighedChanges, messages: Bytes, width: int, alone: Alone) -> None:
    """Take in messages about rows of one table, in order.

    Args:
        changes: What is collected of the table.
        messages: INSERT, UPDATE and DELETE.
        width: How many columns the table has.
        alone: Takes in a message that needs more.
    """
    kinds, heads = messages.values[messages.starts], messages.values[messages.starts + _HEAD]
    if isinstance(changes, KeyedChanges):
        _by_key(changes, messages, kinds, heads, width, alone)
    else:
        _by_weight(changes, messages, kinds, heads, width, alone)


def _by_key(
    changes: KeyedChanges,
    messages: Bytes,
    kinds: NDArray[np.uint8],
    heads: NDArray[np.uint8],
    width: int,
    alone: Alone,
) -> None:
    columns, _ = messages.rows(messages.starts + _ROW, width)
    simple = (kinds == _DELETE) | ((heads == _NEW) & ~_unsent(columns))
    rows = PlacedRows(messages, messages.starts + _ROW)
    bulk = KeyedBulk(rows, kinds == _INSERT, kinds == _DELETE, [columns[place] for place in changes.key])
    if not changes.rows and simple.all():
        changes.bulk.append(bulk)
        return
    keys, inserted, deleted = keys_in(bulk), bulk.inserted.tolist(), bulk.deleted.tolist()
    sent = [None if gone else row for gone, row in zip(deleted, rows.packed(), strict=True)]
    for start, end in pairwise((-1, *np.flatnonzero(~simple).tolist(), len(messages))):
        if start >= 0:
            alone(messages[start])
        part = slice(start + 1, end)
        changes.many(zip(inserted[part], keys[part], sent[part], strict=True))


def _by_weight(
    changes: WeighedChanges,
    messages: Bytes,
    kinds: NDArray[np.uint8],
    heads: NDArray[np.uint8],
    width: int,
    alone: Alone,
) -> None:
    begins = messages.starts + _ROW
    columns, ends = messages.rows(begins, width)
    updated = np.flatnonzero((kinds == _UPDATE) & (heads == _OLD))
    news, _ = messages.rows(ends[updated] + 1, width)
    simple = (kinds != _UPDATE) & ~_unsent(columns)
    simple[updated] = ~_unsent(news)
    came = np.flatnonzero(simple & (kinds == _INSERT))
    went = np.flatnonzero(simple & (kinds != _INSERT))
    both = np.flatnonzero(simple & (kinds == _UPDATE))
    for bulk, at, until in (
        (changes.came, begins[came], messages.ends[came]),
        (changes.came, ends[both] + 1, messages.ends[both]),
        (changes.went, begins[went], ends[went]),
    ):
        if len(at):
            bulk.append(PlacedRows(Bytes(messages.data, at, until, messages.values), at))
    for place in np.flatnonzero(~simple).tolist():
        alone(messages[place])


def _unsent(columns: Sequence[Placed]) -> Mask:
    """Return which rows lack values."""
    found: Mask = np.any([column.unsent for column in columns], axis=0)
    return found
