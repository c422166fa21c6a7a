"""A companion of several parts: one table with the accumulators of several aggregates.

A stream table has one companion. Where several aggregates are kept, among them perhaps the root's, each is a part of
it: its rows have the part's number and, in the columns of other parts, NULL.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from headrace.algebra.relations import Filter, Project, Relation, Stored
from headrace.algebra.scalar import NULL, Scalar, cast, column, compose, literal
from headrace.ivm.aggregates import root_aggregate
from headrace.ivm.program import COMPANION, FullProgram
from headrace.ivm.query_root import Root
from headrace.names import WEIGHT

PART = "__hr_part"
"""The column of a companion of several parts that says whose a row is."""

Types = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Part:
    """Columns of the companion that belong to one aggregate, or to the root.

    Args:
        place: Name of the `Stored` leaf that programs read it by.
        names: Its columns under that name.
        stored: These columns in the table.
        number: Marks its rows; None where it has the table for itself.
        key: Columns of the table that identify a row of the part; None: a bag.
    """

    place: str
    names: tuple[str, ...]
    stored: tuple[str, ...]
    number: int | None
    key: tuple[str, ...] | None

    def read(self, columns: tuple[str, ...]) -> Relation:
        """Return the rows of this part.

        Args:
            columns: All columns of the table.
        """
        if self.number is None:
            return Stored(COMPANION, self.names)
        rows = Filter(Stored(COMPANION, columns), compose(f"{{p}} = {self.number}", p=column(PART)))
        return Project(rows, tuple((n, column(s)) for n, s in zip(self.names, self.stored, strict=True)))

    def written(self, rows: Relation, columns: tuple[str, ...], types: Types) -> Relation:
        """Return rows of this part, or their change, as rows of the companion.

        Args:
            rows: With its columns.
            columns: All columns of the table.
            types: Their types by name.
        """
        if self.number is None:
            return rows
        values: dict[str, Scalar] = {s: column(n) for n, s in zip(self.names, self.stored, strict=True)}
        values[PART] = literal(self.number)
        nothing = {name: cast(NULL, types[name]) for name in columns if name not in values}
        weight = ((WEIGHT, column(WEIGHT)),) if rows.weighted else ()
        return Project(rows, (*((name, (values | nothing)[name]) for name in columns), *weight))


def parts_of(own: FullProgram, below: tuple[Root, ...]) -> tuple[Part, ...]:
    """Return the parts of a companion.

    Args:
        own: What the root keeps, computed from nothing.
        below: The aggregates that are kept.
    """
    if own.companion is None and len(below) == 1:
        (root,) = below
        return (Part(root.place, root.companion, root.companion, None, _key(root)),)
    parts = [] if own.companion is None else [_part(1, COMPANION, own.companion.columns, own.companion_key)]
    for root in below:
        parts.append(_part(len(parts) + 1, root.place, root.companion, _key(root)))
    return tuple(parts)


def _part(number: int, place: str, names: tuple[str, ...], key: tuple[str, ...] | None) -> Part:
    stored = {name: f"part{number}_{name}" for name in names}
    return Part(place, names, tuple(stored.values()), number, None if key is None else tuple(stored[n] for n in key))


def _key(root: Root) -> tuple[str, ...]:
    return tuple(name for _, name in root.keys)


def part_types(own: FullProgram, below: tuple[Root, ...], types_of: Callable[[Relation], Types]) -> dict[str, str]:
    """Return the types of the companion's columns, where it has several parts.

    Args:
        own: What the root keeps, computed from nothing.
        below: The aggregates that are kept.
        types_of: Types of a relation's columns by name.
    """
    rows = [*([own.companion] if own.companion is not None else []), *map(companion_of, below)]
    parts = parts_of(own, below)
    if len(parts) == 1:
        return {}
    found = {PART: "int"}
    for part, relation in zip(parts, rows, strict=True):
        known = types_of(relation)
        found |= {s: known[n] for n, s in zip(part.names, part.stored, strict=True)}
    return found


def columns_of(parts: tuple[Part, ...]) -> tuple[str, ...]:
    """Return the columns of the companion."""
    if parts[0].number is None:
        return parts[0].stored
    return (PART, *(name for part in parts for name in part.stored))


def companion_of(root: Root) -> Relation:
    """Return the groups of an aggregate with their accumulators, computed from nothing."""
    companion = root_aggregate.full(root).companion
    assert companion is not None
    return companion
