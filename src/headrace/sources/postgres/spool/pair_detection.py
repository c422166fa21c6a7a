"""Detects, while rows with weights are written, whether any may cancel or repeat.

Spark would have to bring equal rows together, all columns of them. Where the table has a key, its values mostly tell
as much: of each one row went and one came, at most, and the two differ. Then nothing is left to add up. Texts are
compared, so that what is equal in Spark only (0.0 and -0.0) counts as different, which no mirror that has a key minds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.spool.landing_sql import WEIGHED
from headrace.sources.postgres.type_mapping import place_of

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS, MOST_BYTES = 4_000_000, 512 << 20
"""Of more rows, or larger ones, Spark finds out: their keys and a column are held here."""

SEPARATOR = b"\x1f"
"""Between the values of a key. Two keys that have it themselves may look the same; rows are then added up in vain."""

Read = Callable[[str], "pa.ChunkedArray"]
"""Reads a column of what was written, in the order in which it passed by."""


@dataclass(slots=True)
class Pairing:
    """The rows of one table.

    Args:
        table: The table.
    """

    table: RemoteTable
    _gone: list[pa.Array] = field(default_factory=list)
    _come: list[pa.Array] = field(default_factory=list)
    _rows: int = 0
    _bytes: int = 0

    def passing(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Let batches pass."""
        import pyarrow.compute as pc

        for batch in batches:
            self._rows, self._bytes = self._rows + batch.num_rows, self._bytes + batch.nbytes
            if self._held:
                keys, weights = self._keys(batch), batch.column(WEIGHED)
                self._gone.append(keys.filter(pc.less(weights, 0)))
                self._come.append(keys.filter(pc.greater(weights, 0)))
            else:
                self._gone, self._come = [], []
            yield batch

    @property
    def _held(self) -> bool:
        return bool(self.table.key) and self._rows <= MOST_ROWS and self._bytes <= MOST_BYTES

    def _keys(self, batch: pa.RecordBatch) -> pa.Array:
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = [batch.column(place_of(place)) for place in self._places]
        if not all(pa.types.is_string(column.type) for column in columns):
            return pa.nulls(batch.num_rows, pa.binary())
        binary = [column.cast(pa.binary()) for column in columns]
        return binary[0] if len(binary) == 1 else pc.binary_join_element_wise(*binary, SEPARATOR)

    @property
    def _places(self) -> tuple[int, ...]:
        places = {c.name: i for i, c in enumerate(self.table.columns)}
        return tuple(places[name] for name in self.table.key)

    def settled(self, read: Read | None) -> bool:
        """Return whether no row came twice, and none undoes another.

        Args:
            read: Reads what was written; None where it is so little that adding up takes no time.
        """
        import pyarrow as pa
        import pyarrow.compute as pc

        if not self._held:
            return False
        gone, come = pa.chunked_array(self._gone, pa.binary()), pa.chunked_array(self._come, pa.binary())
        for keys in (gone, come):
            if keys.null_count or pc.count_distinct(keys).as_py() < len(keys):
                return False
        found = pc.index_in(come, value_set=gone).combine_chunks()
        here, there = pc.indices_nonzero(found.is_valid()), found.drop_null()
        return not len(here) or (read is not None and self._differ(read, here, there))

    def _differ(self, read: Read, come: pa.Array, gone: pa.Array) -> bool:
        """Return whether all new rows differ from the old ones, pair by pair."""
        import pyarrow.compute as pc

        weights = read(WEIGHED)
        went, came = pc.less(weights, 0), pc.greater(weights, 0)
        arrays = [i for i, c in enumerate(self.table.columns) if c.kept.array]
        for number in (i for i in range(len(self.table.columns)) if i not in arrays and i not in self._places):
            values = read(place_of(number))
            old = values.filter(went).combine_chunks().take(gone)
            new = values.filter(came).combine_chunks().take(come)
            differ = pc.or_(pc.fill_null(pc.not_equal(old, new), False), pc.xor(old.is_null(), new.is_null()))
            same = pc.invert(differ)
            come, gone = come.filter(same), gone.filter(same)
            if not len(come):
                return True
        return False
