"""GROUPING SETS, ROLLUP and CUBE, as one GROUP BY over a copy of the rows for each set.

Each row is joined with the numbers of the sets; in a copy the columns that its set leaves out are NULL. The number's
bits say which: a bit is set for a column that is left out, the first column having the highest, which is what
`grouping_id()` returns. Sets that are written twice count twice. As the number is a column that is grouped by, there is
no row for the empty set where there are no rows, as in Spark.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product

from headrace.algebra.relations import Join, Project, Relation, Values
from headrace.algebra.scalar import Scalar, cast, column, compose, literal
from headrace.sql.reader.names.column_names import Names
from headrace.sql.reader.scalars.lexemes import (
    Lexemes,
    Role,
    cells,
    closing_bracket,
    keys,
    split_arguments,
    unbracketed,
)
from headrace.sql.reader.syntax.cursor import Cursor
from headrace.sql.reader.syntax.query_shape import Group

Sets = tuple[tuple[Lexemes, ...], ...]
"""Grouping sets, each a row of expressions."""


@dataclass(frozen=True, slots=True)
class GroupingSets:
    """Expressions and sets of a GROUP BY with grouping sets.

    Args:
        expressions: All grouping expressions, each once, in order.
        sets: Indices into them, set by set.
    """

    expressions: tuple[Lexemes, ...]
    sets: tuple[frozenset[int], ...]

    def number(self, members: frozenset[int]) -> int:
        """Return the value of `grouping_id()` for a set."""
        last = len(self.expressions) - 1
        return sum(1 << (last - i) for i in range(len(self.expressions)) if i not in members)


def grouping_sets(elements: Sequence[Sets], first: Sequence[Lexemes] = ()) -> GroupingSets | None:
    """Combine the grouping sets of all GROUP BY elements, each with each.

    Args:
        elements: The sets of each element.
        first: Expressions that come first in order, whether in a set or not.

    Returns:
        None when one set names an expression twice.
    """
    rows = [tuple(each for part in parts for each in part) for parts in product(*elements)]
    expressions = {keys(each): each for each in first}
    for element in elements:
        for row in element:
            for each in row:
                expressions.setdefault(keys(each), each)
    places = {key: i for i, key in enumerate(expressions)}
    if any(len({keys(each) for each in row}) < len(row) for row in rows):
        return None
    sets = tuple(frozenset(places[keys(each)] for each in row) for row in rows)
    return GroupingSets(tuple(expressions.values()), sets)


def sets_of(lexemes: Lexemes) -> Sets:
    """Return the sets that one element of GROUP BY stands for."""
    word = lexemes[0].parts[0].lower() if lexemes and lexemes[0].parts else ""
    if lexemes and lexemes[0].role is Role.CALL and word in ("rollup", "cube"):
        parts = [_row(each) for each in _arguments(lexemes, 0)]
        return _rollup(parts) if word == "rollup" else _cube(parts)
    if word == "grouping" and len(lexemes) > 1 and lexemes[1].role is Role.CALL and lexemes[1].parts[0] == "sets":
        return tuple(row for each in _arguments(lexemes, 1) for row in sets_of(each))
    return (_row(lexemes),)


def hive_sets(construct: str, items: Sequence[Lexemes], lexemes: Lexemes) -> Sets:
    """Return the sets of `GROUP BY a, b WITH ROLLUP`, `… WITH CUBE`, `… GROUPING SETS (…)`."""
    if construct == "GROUPING SETS":
        return sets_of(lexemes)
    parts = [(each,) for each in items]
    return _rollup(parts) if construct == "WITH ROLLUP" else _cube(parts)


def trails(cursor: Cursor, group: Group) -> bool:
    """Return whether the sets follow the expressions, as in Hive's syntax."""
    if len(group.extras) != 1:
        return False
    extra = group.extras[0]
    return extra.construct.startswith("WITH ") or (
        bool(group.items) and cursor.tokens[extra.at - 1].text != "," and cursor.tokens[extra.at - 1].word != "BY"
    )


def _arguments(lexemes: Lexemes, at: int) -> tuple[Lexemes, ...]:
    return split_arguments(lexemes[at + 2 : closing_bracket(lexemes, at + 1)])


def _row(lexemes: Lexemes) -> tuple[Lexemes, ...]:
    return tuple(unbracketed(each) for each in cells(lexemes) if each)


def _rollup(parts: Sequence[tuple[Lexemes, ...]]) -> Sets:
    return tuple(_joined(parts[:n]) for n in range(len(parts), -1, -1))


def _cube(parts: Sequence[tuple[Lexemes, ...]]) -> Sets:
    sizes = range(len(parts), -1, -1)
    return tuple(_joined(some) for size in sizes for some in combinations(parts, size))


def _joined(parts: Sequence[tuple[Lexemes, ...]]) -> tuple[Lexemes, ...]:
    return tuple(each for part in parts for each in part)


@dataclass(frozen=True, slots=True)
class Copies:
    """The copies of the rows.

    Args:
        sets: The sets.
        number: Column that holds the number of a copy's set.
        place: Column that tells equal sets apart; None where there are none.
    """

    sets: GroupingSets
    number: str
    place: str | None

    @classmethod
    def named(cls, sets: GroupingSets, names: Names) -> Copies:
        """Hand out names for the columns."""
        place = names.take("set_place") if len(set(sets.sets)) < len(sets.sets) else None
        return cls(sets, names.take("set_number"), place)

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns to group by besides the expressions."""
        return (self.number,) if self.place is None else (self.number, self.place)

    def of(self, rows: Relation, key_names: Sequence[str]) -> Project:
        """Return the copies.

        Args:
            rows: Rows with the grouping expressions in columns.
            key_names: Those columns, in order.
        """
        numbers = [self.sets.number(members) for members in self.sets.sets]
        values = [(cast(literal(n), "bigint"), *([literal(i)] if self.place else [])) for i, n in enumerate(numbers)]
        joined = Join(rows, Values(self.columns, tuple(tuple(row) for row in values)))
        shown = [(name, column(name)) for name in joined.columns if name not in key_names]
        nulled = [(name, self._key(i, name)) for i, name in enumerate(key_names)]
        return Project(joined, (*nulled, *shown))

    def _key(self, at: int, name: str) -> Scalar:
        return compose("CASE WHEN {left_out} = 0 THEN {k} END", left_out=self.bit(at), k=column(name))

    def bit(self, at: int) -> Scalar:
        """Return whether an expression is left out: 1 or 0."""
        power = 1 << (len(self.sets.expressions) - 1 - at)
        return compose("({n} DIV {p}) % 2", n=column(self.number), p=literal(power))
