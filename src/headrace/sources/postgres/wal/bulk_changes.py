"""Holds messages that came together, and finds in the end what is left of each key.

A row that came alone is held as an object of Python's, under its key in a dictionary. Of many at once only their bytes
are kept, and where each begins. What is left of a key is its last message, unless that is a DELETE and the first one
was its INSERT. NumPy and Arrow find both for all keys together, without Python's interpreter and its lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headrace.sources.postgres.wal.pgoutput_columns import Bytes, Placed, Places

if TYPE_CHECKING:
    import pyarrow as pa

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class PlacedRows:
    """Rows as they were sent.

    Args:
        messages: Pieces that end where the rows end.
        at: Where the rows begin.
    """

    messages: Bytes
    at: Places

    def __len__(self) -> int:
        return len(self.at)

    def packed(self) -> list[bytes]:
        """Return each row as a piece of its own."""
        data, ends = self.messages.data, self.messages.ends.tolist()
        return [data[start:end] for start, end in zip(self.at.tolist(), ends, strict=True)]


@dataclass(frozen=True, slots=True)
class KeyedBulk:
    """Messages about one table, none of which moves a row to another key or lacks a value.

    Args:
        rows: The new rows, or, of a DELETE, the key with NULL for everything else.
        inserted: Which are INSERTs.
        deleted: Which are DELETEs.
        keys: Where the values of the key are, column by column.
    """

    rows: PlacedRows
    inserted: Mask
    deleted: Mask
    keys: Sequence[Placed]

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class Left:
    """The rows of a bulk that are left of their keys.

    Args:
        live: Places of last images.
        gone: Places of keys that are deleted.
        fresh: Of every message of the bulk, whether the mirror has no row of its key.
    """

    live: NDArray[np.intp]
    gone: NDArray[np.intp]
    fresh: Mask


def keys_in(bulk: KeyedBulk) -> list[tuple[bytes, ...]]:
    """Return the key of each message."""
    return list(zip(*(bulk.rows.messages.pieces(column) for column in bulk.keys), strict=True))


def left_of(bulks: Sequence[KeyedBulk]) -> list[Left]:
    """Return what is left of messages in order, bulk by bulk."""
    inserted = np.concatenate([bulk.inserted for bulk in bulks])
    deleted = np.concatenate([bulk.deleted for bulk in bulks])
    count, (codes, keys) = len(inserted), _codes(bulks)
    if keys == count:
        fresh, wanted = inserted, ~(inserted & deleted)
    else:
        places = np.arange(count)
        first, last = np.empty(keys, np.intp), np.empty(keys, np.intp)
        first[codes[::-1]] = places[::-1]
        last[codes] = places  # of several the last one is kept
        fresh, wanted = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
        fresh[last] = inserted[first]
        wanted[last] = ~(inserted[first] & deleted[last])
    found, start = [], 0
    for bulk in bulks:
        of = slice(start, start + len(bulk))
        live, gone = wanted[of] & ~bulk.deleted, wanted[of] & bulk.deleted
        found.append(Left(np.flatnonzero(live), np.flatnonzero(gone), fresh[of]))
        start += len(bulk)
    return found


def _codes(bulks: Sequence[KeyedBulk]) -> tuple[NDArray[np.int64], int]:
    """Return a number for the key of each message, and how many different ones there are."""
    import pyarrow as pa

    codes, count = np.zeros(sum(map(len, bulks)), np.int64), 1
    for number in range(len(bulks[0].keys)):
        values: list[pa.Array] = [bulk.rows.messages.binary(bulk.keys[number]) for bulk in bulks]
        coded = pa.chunked_array(values).combine_chunks().dictionary_encode()
        codes = codes * len(coded.dictionary) + coded.indices.to_numpy(zero_copy_only=False)
        if number:
            unique, codes = np.unique(codes, return_inverse=True)
            count = len(unique)
        else:
            count = len(coded.dictionary)
    return codes, count
