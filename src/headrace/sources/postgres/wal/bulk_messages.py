"""Takes in many messages about one table at once.

Pure. All of them are taken apart together (`columns.py`); what is left to do one by one is to look up keys. Messages
that need more than that are few, and are left to `pgoutput.decode`: an UPDATE that moves a row to another key, or that
left large values out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from headrace.sources.postgres.wal.net_changes import Key, KeyedChanges, WeighedChanges
from headrace.sources.postgres.wal.pgoutput_columns import Bytes, Placed, Places

_INSERT, _UPDATE, _DELETE = b"IUD"
_NEW, _OLD = b"NO"
_HEAD, _ROW = 5, 6
"""Where a message says what row follows, and where that row begins."""

Mask = NDArray[np.bool_]
Alone = Callable[[bytes], None]
"""Takes in a message that cannot be taken in with others."""


def take_in(changes: KeyedChanges | WeighedChanges, messages: Sequence[bytes], width: int, alone: Alone) -> None:
    """Take in messages about rows of one table, in order.

    Args:
        changes: What is collected of the table.
        messages: INSERT, UPDATE and DELETE.
        width: How many columns the table has.
        alone: Takes in a message that needs more.
    """
    found = Bytes.of(messages)
    kinds, heads = found.values[found.starts], found.values[found.starts + _HEAD]
    if isinstance(changes, KeyedChanges):
        _by_key(changes, messages, found, kinds, heads, width, alone)
    else:
        _by_weight(changes, messages, found, kinds, heads, width, alone)


def _by_key(
    changes: KeyedChanges,
    messages: Sequence[bytes],
    found: Bytes,
    kinds: NDArray[np.uint8],
    heads: NDArray[np.uint8],
    width: int,
    alone: Alone,
) -> None:
    columns, _ = found.rows(found.starts + _ROW, width)
    simple = (kinds == _DELETE) | ((heads == _NEW) & ~_unsent(columns))
    keys = _keys(found, [columns[place] for place in changes.key])
    inserted = (kinds == _INSERT).tolist()
    rows = [m[_ROW:] if m[0] != _DELETE else None for m in messages]
    for start, end in pairwise((-1, *np.flatnonzero(~simple).tolist(), len(messages))):
        if start >= 0:
            alone(messages[start])
        part = slice(start + 1, end)
        changes.many(zip(inserted[part], keys[part], rows[part], strict=True))


def _keys(found: Bytes, columns: Sequence[Placed]) -> list[Key]:
    return list(zip(*map(found.pieces, columns), strict=True))


def _by_weight(
    changes: WeighedChanges,
    messages: Sequence[bytes],
    found: Bytes,
    kinds: NDArray[np.uint8],
    heads: NDArray[np.uint8],
    width: int,
    alone: Alone,
) -> None:
    columns, ends = found.rows(found.starts + _ROW, width)
    updated = np.flatnonzero((kinds == _UPDATE) & (heads == _OLD))
    news, _ = found.rows(ends[updated] + 1, width)
    simple = (kinds != _UPDATE) & ~_unsent(columns)
    simple[updated] = ~_unsent(news)
    cuts = _relative(ends, found.starts)
    for message, kind, cut, fine in zip(messages, kinds.tolist(), cuts, simple.tolist(), strict=True):
        if not fine:
            alone(message)
        elif kind == _INSERT:
            changes.added.append(message[_ROW:])
        else:
            changes.removed.append(message[_ROW:cut])
            if kind == _UPDATE:
                changes.added.append(message[cut + 1 :])


def _relative(places: Places, starts: Places) -> list[int]:
    found: list[int] = (places - starts).tolist()
    return found


def _unsent(columns: Sequence[Placed]) -> Mask:
    """Return which rows lack values."""
    found: Mask = np.any([column.unsent for column in columns], axis=0)
    return found
