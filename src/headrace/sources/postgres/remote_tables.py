"""Tables of PostgreSQL as capture depends on them; the catalog keeps one per mirror.

Pure. A table is followed by its oid, so that renaming it changes nothing. Whatever else differs from what the mirror
was made of (its *shape*) means that the mirror must be taken anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.algebra.schema import Column
from headrace.names import METADATA_COLUMNS
from headrace.sources.postgres.type_mapping import TEXT, Mapped, mapped
from headrace.sources.postgres.wal.pgoutput import Relation


def is_kept_back(column: str) -> bool:
    """Return whether a column's name is reserved by Iceberg or Headrace."""
    return column.lower() in METADATA_COLUMNS or column.startswith("__hr_")


@dataclass(frozen=True, slots=True)
class RemoteColumn:
    """A captured column.

    Args:
        number: Its number in the table (`attnum`), which a rename keeps.
        name: Its name.
        type: Oid of its type, as the stream gives it.
        modifier: Modifier of its type, as the stream gives it.
        base: Name of the type that its domain is over, or of the type itself.
        base_modifier: The modifier that counts for `base`.
        element: For arrays, the name of the elements' type.
        as_text: The user wants it as text, whatever its type.
    """

    number: int
    name: str
    type: int
    modifier: int
    base: str
    base_modifier: int = -1
    element: str | None = None
    as_text: bool = False

    @property
    def kept(self) -> Mapped:
        """Return how its values are stored."""
        return TEXT if self.as_text else mapped(self.base, self.base_modifier, element=self.element)

    @property
    def column(self) -> Column:
        """Return the mirror's column."""
        return Column(self.name, self.kept.type)


@dataclass(frozen=True, slots=True)
class RemoteTable:
    """A captured table.

    Args:
        oid: Its identity; a table that was dropped and created again has another one.
        schema: Its schema.
        name: Its name.
        identity: How old rows are known: `d` (primary key), `i` (an index), `f` (whole rows), `n` (not at all).
        key: Columns that tell its rows apart at the end of every transaction; none for a bag.
        columns: The captured columns, in order.
        marks: A text that changes with what can change rows without a message: columns rewritten by ALTER TABLE,
            partitions attached, detached (even if they are back) or emptied, labels of enums.
        partitioned: Its rows are in partitions.
        filenode: The file of its rows, which another one follows whenever they are rewritten; None where not known.
        listed: Its columns are those of a column list, which columns that are added later do not join.
        filter: Condition on the rows that are captured, as PostgreSQL reads it; None for all of them.
    """

    oid: int
    schema: str
    name: str
    identity: str
    key: tuple[str, ...]
    columns: tuple[RemoteColumn, ...]
    marks: str = ""
    partitioned: bool = False
    filenode: int | None = None
    listed: bool = False
    filter: str | None = None

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"

    @property
    def typed(self) -> tuple[tuple[Column, Mapped], ...]:
        """Return the mirror's columns and how their values are kept."""
        return tuple((c.column, c.kept) for c in self.columns)

    @property
    def parts(self) -> frozenset[int]:
        """Oids of its partitions, and theirs."""
        marks = self.marks.partition(" ")[2].partition(" ")[0] if self.partitioned else ""
        return frozenset(int(mark.partition(":")[0]) for mark in marks.split(",") if ":" in mark)

    @property
    def key_places(self) -> tuple[int, ...]:
        """Return places of the key's columns; none where old rows are not known by it."""
        if self.identity not in "di":
            return ()
        places = {c.name: i for i, c in enumerate(self.columns)}
        return tuple(places[name] for name in self.key)

    def same_shape(self, other: RemoteTable) -> bool:
        """Return whether a mirror of one is still right for the other; names do not count."""
        return (self.oid, self.identity, self.key, self.columns, self.marks) == (
            other.oid,
            other.identity,
            other.key,
            other.columns,
            other.marks,
        )

    def fits(self, relation: Relation) -> bool:
        """Return whether the stream describes the table that the mirror was made of."""
        columns = [(c.name, c.type, c.modifier) for c in relation.columns]
        keys = {c.name for c in relation.columns if c.key}
        return (
            relation.identity == self.identity
            and columns == [(c.name, c.type, c.modifier) for c in self.columns]
            and (self.identity not in "di" or keys == set(self.key))
        )


def to_json(table: RemoteTable) -> dict[str, Any]:
    """Return a table as the catalog keeps it."""
    return {
        "oid": table.oid,
        "schema": table.schema,
        "name": table.name,
        "identity": table.identity,
        "key": list(table.key),
        "marks": table.marks,
        "partitioned": table.partitioned,
        "filenode": table.filenode,
        "listed": table.listed,
        "filter": table.filter,
        "columns": [
            [c.number, c.name, c.type, c.modifier, c.base, c.base_modifier, c.element, c.as_text] for c in table.columns
        ],
    }


def from_json(value: Mapping[str, Any]) -> RemoteTable:
    """Convert back what `to_json` returned."""
    return RemoteTable(
        oid=value["oid"],
        schema=value["schema"],
        name=value["name"],
        identity=value["identity"],
        key=tuple(value["key"]),
        columns=tuple(RemoteColumn(*column) for column in value["columns"]),
        marks=value["marks"],
        partitioned=value["partitioned"],
        filenode=value.get("filenode"),
        listed=value.get("listed", False),
        filter=value.get("filter"),
    )
