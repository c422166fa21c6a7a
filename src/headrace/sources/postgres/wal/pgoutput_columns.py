"""Parses many `pgoutput` rows at once by finding each column's values in all of them.

Pure. A row travels as one piece of bytes (`TupleData`: how many columns; for each what it is, how long, and its text)
until it is written to a file, since most that happens to it needs nothing but its key. NumPy finds places, and Arrow
gets the values of a column as they lie one after the other, so that no value ever is an object of Python's own.

Source: PostgreSQL documentation, "Logical Replication Message Formats".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from headrace.sources.postgres.wal.pgoutput import unreadable

if TYPE_CHECKING:
    import pyarrow as pa

Places = NDArray[np.int64]

_TEXT, _NULL, _UNSENT = b"tnu"
_PADDING = bytes(8)
"""Padding, so that a length can be read where a row has ended, and be left out."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Offsets and lengths of the values of one column.

    Args:
        starts: The first byte of each.
        lengths: How many bytes; 0 where there is no text.
        kinds: What each is: text, NULL, or not sent.
    """

    starts: Places
    lengths: Places
    kinds: NDArray[np.uint8]

    @property
    def unsent(self) -> NDArray[np.bool_]:
        """Return which values an UPDATE did not touch and did not send."""
        found: NDArray[np.bool_] = self.kinds == _UNSENT
        return found


@dataclass(frozen=True, slots=True)
class Bytes:
    """Pieces of bytes, one after the other.

    Args:
        data: All of them.
        starts: Where each begins.
        ends: Where each ends.
        values: The same as numbers.
    """

    data: bytes
    starts: Places
    ends: Places
    values: NDArray[np.uint8]

    @classmethod
    def of(cls, pieces: Sequence[bytes | memoryview], *, leading: int = 0) -> Bytes:
        """Put pieces together.

        Args:
            pieces: The pieces.
            leading: So many bytes at the beginning of each are none of it.
        """
        data = b"".join((*pieces, _PADDING))
        sizes = np.fromiter(map(len, pieces), np.int64, len(pieces))
        ends = np.cumsum(sizes)
        return cls(data, ends - sizes + leading, ends, np.frombuffer(data, np.uint8))

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, number: int) -> bytes:
        """Return a piece."""
        return self.data[self.starts[number] : self.ends[number]]

    @property
    def size(self) -> int:
        """Return how many bytes the pieces have."""
        return int((self.ends - self.starts).sum())

    def pick(self, places: NDArray[np.intp]) -> Bytes:
        """Return some of the pieces, without the bytes of the others where these are most."""
        if len(places) == len(self):
            return self
        picked = Bytes(self.data, self.starts[places], self.ends[places], self.values)
        return Bytes.of([*picked]) if 2 * picked.size < len(self.data) else picked

    def numbers(self, at: Places) -> NDArray[np.uint32]:
        """Return the numbers of four bytes that begin at places."""
        return self._numbers(">u4")[at].astype(np.uint32)

    def __iter__(self) -> Iterator[bytes]:
        data = self.data
        return (data[start:end] for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True))

    def rows(self, at: Places, width: int) -> tuple[list[Placed], Places]:
        """Return where the values of rows lie, column by column, and where each row ends.

        Args:
            at: Where the rows begin.
            width: How many columns they have.

        Raises:
            InternalError: `PGOUTPUT_UNREADABLE`.
        """
        columns = []
        self._expect(at, (self._numbers(">u2")[at] == width).all())
        at = at + 2
        lengths = self._numbers(">u4")
        for _ in range(width):
            kinds = self.values[at]
            text = kinds == _TEXT
            if text.all():
                size, starts = lengths[at + 1].astype(np.int64), at + 5
                at = starts + size
            else:
                self._expect(at, (text | (kinds == _NULL) | (kinds == _UNSENT)).all())
                size, starts = np.where(text, lengths[at + 1], 0).astype(np.int64), at + 5
                at = np.where(text, starts + size, at + 1)
            columns.append(Placed(starts, size, kinds))
        return columns, at

    def _numbers(self, kind: str) -> NDArray[np.uint32]:
        """Return the numbers that begin at every byte."""
        size = np.dtype(kind).itemsize
        return np.ndarray((len(self.data) - size + 1,), kind, self.data, strides=(1,))

    def _expect(self, at: Places, fine: np.bool_) -> None:
        if not fine:
            first = int(at[0])
            raise unreadable(self.data[first : first + 16])

    def pieces(self, column: Placed) -> list[bytes]:
        """Return the values of a column that has texts only."""
        data, starts = self.data, column.starts
        ends = (starts + column.lengths).tolist()
        return [data[start:end] for start, end in zip(starts.tolist(), ends, strict=True)]

    def binary(self, column: Placed) -> pa.Array:
        """Return the values of a column for Arrow, as bytes; what is no text is NULL."""
        import pyarrow as pa

        count = len(column.starts)
        offsets = np.zeros(count + 1, np.int32)
        np.cumsum(column.lengths, out=offsets[1:])
        small = np.int32 if len(self.data) <= np.iinfo(np.int32).max else np.int64
        places = np.repeat((column.starts - offsets[:-1]).astype(small), column.lengths)
        places += np.arange(offsets[-1], dtype=small)
        text = column.kinds == _TEXT
        valid = None if text.all() else pa.py_buffer(np.packbits(text, bitorder="little"))
        buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(self.values[places])]
        return pa.Array.from_buffers(pa.binary(), count, buffers)
