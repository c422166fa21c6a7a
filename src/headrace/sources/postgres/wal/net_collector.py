"""Collects the net changes of whole transactions, table by table.

Pure. What was landed before is left out here, by position: a slot may lag behind the catalog (a crash between
publishing and acknowledging), never the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.wal.bulk_messages import take_in
from headrace.sources.postgres.wal.followed_ddl import Places, brought, places, places_between
from headrace.sources.postgres.wal.net_changes import KeyedChanges, WeighedChanges, changes_for
from headrace.sources.postgres.wal.pgoutput import (
    UNCHANGED,
    Begin,
    Commit,
    Delete,
    Insert,
    Message,
    Relation,
    Truncate,
    Update,
    decode,
)
from headrace.sources.postgres.wal.pgoutput_columns import Bytes

Spill = Callable[[Mapping[int, KeyedChanges | WeighedChanges]], None]

MOST = 1_000_000
"""Changes that are held at most; those of 10 columns of 15 bytes take 400 MB of memory."""

MOST_BYTES, VALUE = 256 << 20, 56
"""And so many bytes of messages about them: rows may be large. A value that had to be taken out of its row is an object
of Python's, and takes so many bytes more."""

TOGETHER = 32
"""From so many messages about one table on, taking them in together is faster than one by one."""

_ROWS = tuple(b"IUD")
"""Messages about rows, by the first byte."""


@dataclass(slots=True)
class Collector:
    """One batch.

    Args:
        tables: The captured tables, by oid.
        landed: Transactions whose commit record begins before this position are landed already.
        until: Transactions whose commit record begins here or later belong to a later batch; None for no end.
        spill: Takes what is left so far, by oid, when it has become much; the batch goes on with nothing held.
        most: How many rows are held at most.
        most_bytes: How many bytes of messages about them, about.
        former: Tables that were altered, as they were before; rows of that shape are brought to the new one.
        between: Rows of shapes that they had in between are, too.
        changes: What is left, by oid.
        stale: Tables that no longer look as their mirror does; their changes are not collected.
        end: The position after the last transaction that was read.
        messages: How many messages were read.
        transactions: How many transactions were taken in.
        rows: How many changes of rows they had.
        last: Which was the last one.
    """

    tables: dict[int, RemoteTable]
    landed: int
    until: int | None = None
    spill: Spill | None = None
    most: int = MOST
    most_bytes: int = MOST_BYTES
    former: Mapping[int, RemoteTable] = field(default_factory=dict)
    between: bool = False
    changes: dict[int, KeyedChanges | WeighedChanges] = field(default_factory=dict)
    stale: set[int] = field(default_factory=set)
    end: int = 0
    messages: int = 0
    transactions: int = 0
    rows: int = 0
    last: Begin | None = None
    _misfits: set[int] = field(default_factory=set)
    _roots: dict[int, int] = field(default_factory=dict)
    _root: int | None = None
    _keys: dict[int, frozenset[str]] = field(default_factory=dict)
    _unfit: dict[int, set[int]] = field(default_factory=dict)
    _old: dict[int, Places] = field(default_factory=dict)
    _skip: bool = True
    _begun: Begin | None = None
    _held: int = 0
    _bytes: int = 0

    def __post_init__(self) -> None:
        self._roots = {part: table.oid for table in self.tables.values() for part in table.parts}

    def feed(self, blocks: Iterable[Bytes]) -> None:
        """Take in messages as they come from `pgoutput`."""
        for block in blocks:
            self.messages += len(block)
            kinds = block.values[block.starts]
            others = np.flatnonzero(~np.isin(kinds, _ROWS)).tolist()
            wanted, done = np.zeros(len(block), np.bool_), 0
            for place in others:
                wanted[done:place] = not self._skip
                message, done = decode(block[place]), place + 1
                if isinstance(message, (Relation, Truncate)):
                    self._rows(block, np.flatnonzero(wanted[:place]))
                    wanted[:place] = False
                self._other(message)
            wanted[done:] = not self._skip
            self._rows(block, np.flatnonzero(wanted))

    def _other(self, message: Message | None) -> None:
        """Take in a message that is not about a row."""
        if isinstance(message, Begin):
            self._skip = message.lsn < self.landed or (self.until is not None and message.lsn >= self.until)
            self._begun, self._root = message, None
        elif isinstance(message, Commit):
            self._commit(message)
        elif isinstance(message, Relation):
            self._relation(message)
            table = self.tables.get(message.oid)
            self._root = message.oid if table is not None and table.partitioned else None
        elif isinstance(message, Truncate) and not self._skip:
            self._root = None  # the table's shape came before this, and not before that of a partition
            for oid in message.oids:
                if (changes := self._of(oid)) is not None:
                    changes.truncate()
                    self.rows += 1

    def _rows(self, block: Bytes, places: NDArray[np.intp]) -> None:
        """Take in messages about rows; they keep their order within each table."""
        if not len(places):
            return
        oids = block.numbers(block.starts[places] + 1)
        for oid in dict.fromkeys(oids.tolist()):
            of, done = places[oids == oid], 0
            together = len(of) >= TOGETHER and oid not in self._old
            while done < len(of) and (changes := self._of(oid)) is not None:
                part = of[done : done + (max(self.most - self._held, 1) if together else 1)]
                self._taken(oid, changes, block.pick(part), together)
                done += len(part)

    def _taken(self, oid: int, changes: KeyedChanges | WeighedChanges, messages: Bytes, together: bool) -> None:
        if together:
            take_in(changes, messages, len(self.tables[oid].columns), partial(self._row, oid, changes))
        else:
            self._row(oid, changes, messages[0])
        self.rows, self._held = self.rows + len(messages), self._held + len(messages)
        self._bytes += messages.size
        if self.spill is not None and (self._held >= self.most or self._bytes >= self.most_bytes):
            self.spill(self.changes)
            self.changes, self._held, self._bytes = {}, 0, 0

    def _row(self, oid: int, changes: KeyedChanges | WeighedChanges, data: bytes) -> None:
        message = decode(data)
        assert isinstance(message, (Insert, Update, Delete)), "nothing else is about a row"
        self._bytes += VALUE * len(self.tables[oid].columns)
        if oid in self._old:
            message = brought(message, self._old[oid])
        if isinstance(message, Insert):
            if (
                self.tables[oid].filter is not None and UNCHANGED in message.new
            ):  # an UPDATE by which the row came to satisfy the condition
                self._outdated(oid)
                return
            changes.insert(message)
        elif isinstance(message, Update):
            changes.update(message)
        else:
            changes.delete(message)

    def _of(self, oid: int) -> KeyedChanges | WeighedChanges | None:
        """Return the changes of a table; None for tables not captured in this shape."""
        if oid in self._misfits or self._unfit.get(oid):
            self._outdated(oid)
            return None
        if oid in self.changes:
            return self.changes[oid]
        table = self.tables.get(oid)
        if table is None or oid in self.stale:
            return None
        return self.changes.setdefault(oid, changes_for(table.identity, table.key_places))

    def _outdated(self, oid: int) -> None:
        self.stale.add(oid)
        self.changes.pop(oid, None)

    def _relation(self, message: Relation) -> None:
        table = self.tables.get(message.oid)
        if table is None:
            self._partition(message)
            return
        self._keys[message.oid] = _key_of(message)
        former = self.former.get(message.oid)
        self._misfits.discard(message.oid)
        self._old.pop(message.oid, None)
        if table.fits(message):
            return
        if former is not None and former.fits(message):
            self._old[message.oid] = places(table, former)
        elif former is not None and self.between and (old := places_between(table, former, message)) is not None:
            self._old[message.oid] = old
        else:
            self._misfits.add(message.oid)

    def _partition(self, message: Relation) -> None:
        """Note a partition's shape, sent after its table's and before its first change.

        Its changes come as those of the table; but of old rows they have what the partition's own identity tells. Where
        the mirror was made without it, the stream lacks rows that came with it, and that others went with it again.
        """
        root = self._roots.get(message.oid)
        if root is None:
            if self._root is not None and not self._skip:
                self._outdated(self._root)
            return
        key, wanted = _key_of(message), self._keys.get(root, frozenset())
        unfit = self._unfit.setdefault(root, set())
        if key and not (wanted and wanted <= key):
            unfit.add(message.oid)
        else:  # whole old rows tell every key; and without an identity the server allows no UPDATE or DELETE
            unfit.discard(message.oid)

    def _commit(self, message: Commit) -> None:
        if not self._skip:
            self.transactions += 1
            self.last = self._begun
        if self.until is None or message.lsn < self.until:
            self.end = max(self.end, message.end)
        self._skip = True


def _key_of(message: Relation) -> frozenset[str]:
    """Return the columns that identify old rows; empty if rows are sent whole or not at all."""
    return frozenset(c.name for c in message.columns if c.key) if message.identity in "di" else frozenset()
