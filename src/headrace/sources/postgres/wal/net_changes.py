"""Net changes of one table over a batch of whole transactions.

Two ways, by what the stream says of old rows:

- **by key** (REPLICA IDENTITY DEFAULT or USING INDEX): the last image of every key that was touched. An UPDATE that
  moves a row to another key takes the row along. Values that were not sent (`UNCHANGED`) come from the image before,
  or, where the batch has none, from the mirror's row of the key that the row had when the batch began (its *origin*).
- **by weight** (FULL, which sends whole old rows; NOTHING, under which the server allows INSERT and TRUNCATE only):
  every row that came and every row that went. This needs no key, keeps equal rows apart, and stays right where a
  deferrable key is violated for a moment inside a transaction.

Pure: no connection. Messages that come many at once are held together (`bulk_changes.py`), those that come alone one by
one; from the first one on of a table that has a key, its rows are looked up by key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from headrace.errors import InternalError
from headrace.sources.postgres.wal.bulk_changes import KeyedBulk, PlacedRows, keys_in
from headrace.sources.postgres.wal.pgoutput import (
    UNCHANGED,
    Delete,
    Insert,
    Packed,
    Update,
    Value,
    Values,
    unpacked,
)

Key = tuple[Value, ...]


@dataclass(slots=True)
class KeyedChanges:
    """Changes of a table whose old rows are known by their key.

    Args:
        key: Places of the key's columns.
        truncated: The table was emptied: whatever the mirror holds is gone.
        rows: The last image per touched key, packed as long as nothing is asked of it; None for a deleted row.
        fresh: Keys under which the mirror has no row, because the batch began with their INSERT.
        origins: For images that hold UNCHANGED: the key of the mirror's row that has the values.
        bulk: Messages that came together, as long as none came alone; nothing is in `rows` then.
    """

    key: tuple[int, ...]
    truncated: bool = False
    rows: dict[Key, Values | Packed | None] = field(default_factory=dict)
    fresh: set[Key] = field(default_factory=set)
    origins: dict[Key, Key] = field(default_factory=dict)
    bulk: list[KeyedBulk] = field(default_factory=list)

    def insert(self, message: Insert) -> None:
        """Take in an INSERT."""
        self.one_by_one()
        self._put(self._key(message.new), message.new, None)

    def update(self, message: Update) -> None:
        """Take in an UPDATE, also one that moves the row to another key."""
        self.one_by_one()
        new, old = message.new, message.old
        if old is not None:
            for place in self.key:  # a large key value that stayed the same is in the old key only
                if new[place] is UNCHANGED:
                    new[place] = old[place]
        key = self._key(new)
        before = key if old is None else self._key(old)
        origin = self._fill(new, before) if UNCHANGED in new else None
        if before != key:
            self._remove(before)
            self._put(key, new, origin)
            return
        self.rows[key] = new
        if origin is not None:
            self.origins[key] = origin
        elif self.origins:
            self.origins.pop(key, None)

    def delete(self, message: Delete) -> None:
        """Take in a DELETE."""
        self.one_by_one()
        self._remove(self._key(message.old))

    def many(self, changes: Iterable[tuple[bool, Key, Packed | None]]) -> None:
        """Take in changes that move no row to another key.

        Args:
            changes: For each, in order: whether it is an INSERT, the key, and the new row; no row for a DELETE.
        """
        self.one_by_one()
        rows, fresh, origins = self.rows, self.fresh, self.origins
        for inserted, key, row in changes:
            if row is None:
                self._remove(key)
                continue
            if inserted and key not in rows:
                fresh.add(key)
            rows[key] = row
            if origins:
                origins.pop(key, None)

    def truncate(self) -> None:
        """Take in a TRUNCATE: nothing before counts."""
        self.truncated = True
        for held in (self.rows, self.fresh, self.origins, self.bulk):
            held.clear()

    def one_by_one(self) -> None:
        """Look up by key what was held together."""
        bulks, self.bulk = self.bulk, []
        for bulk in bulks:
            rows = (None if gone else row for gone, row in zip(bulk.deleted, bulk.rows.packed(), strict=True))
            self.many(zip(bulk.inserted.tolist(), keys_in(bulk), rows, strict=True))

    @property
    def known(self) -> bool:
        """Return whether the mirror may have a row of some key."""
        return len(self.fresh) < len(self.rows) or any(not bulk.inserted.all() for bulk in self.bulk)

    def touched(self) -> set[Key]:
        """Return the keys that were touched."""
        return {*self.rows, *(key for bulk in self.bulk for key in keys_in(bulk))}

    def __len__(self) -> int:
        """Return how many keys were touched; where messages are held together, at most."""
        return len(self.rows) + sum(map(len, self.bulk))

    def _key(self, values: Values) -> Key:
        return tuple(values[place] for place in self.key)

    def _put(self, key: Key, values: Values, origin: Key | None) -> None:
        if key not in self.rows:
            self.fresh.add(key)
        self.rows[key] = values
        if origin is not None:
            self.origins[key] = origin

    def _remove(self, key: Key) -> None:
        if key in self.fresh:
            self.fresh.discard(key)
            del self.rows[key]
        else:
            self.rows[key] = None
        if self.origins:
            self.origins.pop(key, None)

    def _fill(self, new: Values, before: Key) -> Key | None:
        """Fill unsent values from the row's former key, or note the mirror's row as origin."""
        if before not in self.rows and not self.truncated:
            return before
        image = self.rows.get(before)
        if image is None:
            raise lost_row()
        known = unpacked(image)
        for place, value in enumerate(new):
            if value is UNCHANGED:
                new[place] = known[place]
        return self.origins.get(before) if UNCHANGED in new else None


@dataclass(slots=True)
class WeighedChanges:
    """Changes of a table whose old rows are sent whole, or that has none.

    Args:
        truncated: The table was emptied.
        added: Rows that came, packed or not.
        removed: Rows that went.
        came: Rows that came, many at once.
        went: Rows that went, many at once.
    """

    truncated: bool = False
    added: list[Values | Packed] = field(default_factory=list)
    removed: list[Values | Packed] = field(default_factory=list)
    came: list[PlacedRows] = field(default_factory=list)
    went: list[PlacedRows] = field(default_factory=list)

    def insert(self, message: Insert) -> None:
        """Take in an INSERT."""
        self.added.append(message.new)

    def update(self, message: Update) -> None:
        """Take in an UPDATE; what it did not send is in the old row.

        Raises:
            InternalError: `CAPTURE_DIVERGED`: the message has no old row.
        """
        new, old = message.new, message.old
        if old is None:
            raise lost_row()
        if UNCHANGED in new:
            new = [before if value is UNCHANGED else value for value, before in zip(new, old, strict=True)]
        self.removed.append(old)
        self.added.append(new)

    def delete(self, message: Delete) -> None:
        """Take in a DELETE."""
        self.removed.append(message.old)

    def truncate(self) -> None:
        """Take in a TRUNCATE: nothing before counts."""
        self.truncated = True
        for held in (self.added, self.removed, self.came, self.went):
            held.clear()

    def __len__(self) -> int:
        return len(self.added) + len(self.removed) + sum(map(len, (*self.came, *self.went)))


def changes_for(identity: str, key: Sequence[int]) -> KeyedChanges | WeighedChanges:
    """Return the way that fits a table.

    Args:
        identity: Its replica identity: `d`, `i`, `f` or `n`.
        key: Places of the identity's columns; none under FULL and NOTHING.
    """
    return KeyedChanges(tuple(key)) if identity in "di" and key else WeighedChanges()


def lost_row() -> InternalError:
    """Return the error for a change of a row that was never seen."""
    return InternalError(
        "CAPTURE_DIVERGED",
        "PostgreSQL changed a row that was never captured; nothing was landed.",
        hint="Take a new snapshot with `headrace source resnapshot`, and please report this.",
    )
