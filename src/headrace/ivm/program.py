"""The program of a refresh: steps and changes, as data."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import count

from headrace.algebra.relations import Relation
from headrace.algebra.scalar import Scalar
from headrace.names import TableName

Key = tuple[TableName, tuple[str, ...]]
"""A source, and columns of it by which some of its rows are told."""

STATE = "state"
"""Name of the `Stored` leaf that is the stream table as last published."""

COMPANION = "companion"
"""Name of the `Stored` leaf that is its companion: as last published in a change, as just written in a full load."""


@dataclass(frozen=True, slots=True)
class DeltaCoverage:
    """Relations by which to test that a source's change has all the rows that a semi-join wants.

    That is so if `semijoin` has as many rows as `times` sums up to in `added`; it has never fewer.

    Args:
        semijoin: The rows of the source that have the keys, as they are now, one by one.
        added: Those that changed.
        times: The column of `added` that tells how often each was added on balance.
        instead: What the step may then be instead, with the same columns; computed from the change alone.
    """

    semijoin: Relation
    added: Relation
    times: str
    instead: Relation


@dataclass(frozen=True, slots=True)
class Step:
    """A relation computed once and kept as a temporary result.

    Args:
        name: Later relations read it as `Stored(name, …)`.
        relation: What is computed; reads sources, `state`, `companion` and earlier steps.
        only_if: A cheap relation over earlier steps; while it has no rows, the step has none that matter either, and
            whoever runs the program may put no rows in its place instead of computing it. None: always needed.
        semijoin: Of a step that reads a source's rows of some keys: the source and its columns that have the keys.
        follows: Of such a step that other stream tables have as well: the sources whose changes have the values.
        integer_key: Of such a step: a column of these that is a whole number, and a relation of one column with all of
            its values. None where there is no such column.
        coverage: Of such a step of a source that changed: how to do without reading the source. None: of others.
    """

    name: str
    relation: Relation
    only_if: Relation | None = None
    semijoin: Key | None = None
    follows: frozenset[TableName] = frozenset()
    integer_key: tuple[str, Relation] | None = None
    coverage: DeltaCoverage | None = None

    @property
    def aside(self) -> tuple[Relation, ...]:
        """Return the relations that are asked beside the step's own.

        Whether it is needed, and how it may read less.
        """
        coverage = self.coverage
        covering = (coverage.semijoin, coverage.added, coverage.instead) if coverage else ()
        asked = (self.only_if, self.integer_key[1] if self.integer_key else None)
        return (*(each for each in asked if each is not None), *covering)

    @property
    def relations(self) -> tuple[Relation, ...]:
        """Return all relations that belong to the step."""
        return (self.relation, *self.aside)

    def rewritten(self, rule: Callable[[Relation], Relation]) -> Step:
        """Return the step with its relation and its condition rewritten."""
        only_if = None if self.only_if is None else rule(self.only_if)
        return replace(self, relation=rule(self.relation), only_if=only_if)


@dataclass(frozen=True, slots=True)
class Need:
    """Rows that a program reads of a source by values of some of its columns.

    Args:
        follows: Sources whose changes have these values, each with the columns that do.
        fields: Columns of the source that are read, with their types, as far as known.
    """

    follows: frozenset[Key]
    fields: Mapping[str, str]

    def serves(self, other: Need) -> bool:
        """Return whether the rows read for this need serve another one too."""
        return other.follows <= self.follows and other.fields.keys() <= self.fields.keys()


def free_name(stem: str, steps: Iterable[Step]) -> str:
    """Return a name that no step has: the stem, with a number when it is taken."""
    taken = {step.name for step in steps}
    return next(name for i in count(1) if (name := stem if i == 1 else f"{stem}_{i}") not in taken)


@dataclass(frozen=True, slots=True)
class Counts:
    """Size of a table's change, as a function of the rows of a step.

    Args:
        step: The step.
        inserted: Condition on its rows; as many rows as satisfy it are inserted.
        deleted: The same for rows that are deleted.
    """

    step: str
    inserted: Scalar
    deleted: Scalar


@dataclass(frozen=True, slots=True)
class TableChange:
    """The change of one stored table.

    Args:
        change: Its columns and WEIGHT, a nonzero integer; no row occurs twice, unless it is `insert_only`. A cheap
            function of steps.
        key: Columns that identify a row of the table, of those that do not change too, NULL being a value like any
            other: then a key has at most one old row (weight −1) and one new (+1). Empty: the table never has more
            than one row. None: a bag.
        counts: How large it is, where that can be told without computing it: the sum of these; empty: it cannot.
        insert_only: Whether rows are only added: every weight is 1, and equal rows may be listed one by one.
        contents: All rows that the table has afterwards, if some step has them in hand and there is a change. A cheap
            function of that step.
    """

    change: Relation
    key: tuple[str, ...] | None
    counts: tuple[Counts, ...] = ()
    insert_only: bool = False
    contents: Relation | None = None

    @property
    def relations(self) -> tuple[Relation, ...]:
        """Return all relations that belong to the change."""
        return (self.change,) if self.contents is None else (self.change, self.contents)

    def rewritten(self, rule: Callable[[Relation], Relation]) -> TableChange:
        """Return the change with each of its relations rewritten."""
        contents = None if self.contents is None else rule(self.contents)
        return replace(self, change=rule(self.change), contents=contents)


@dataclass(frozen=True, slots=True)
class DeltaProgram:
    """Steps and changes by which a stream table follows its sources.

    Args:
        steps: To be computed in this order.
        state: The change of the stream table.
        companion: The change of its companion, if it has one.
        needs: The semi-joins of sources with changes that it reads; other programs may read the same.
    """

    steps: tuple[Step, ...]
    state: TableChange
    companion: TableChange | None = None
    needs: Mapping[Key, Need] = field(default_factory=dict)

    @property
    def tables(self) -> tuple[TableChange, ...]:
        """Return the changes of the stored tables."""
        return (self.state,) if self.companion is None else (self.state, self.companion)


@dataclass(frozen=True, slots=True)
class FullProgram:
    """Relations by which a stream table is computed from nothing.

    Args:
        companion: Computed first, then read as `Stored(COMPANION, …)`.
        state: Computed from the companion. None: the state is the user's own text.
        companion_key: Columns that identify a row of the companion; None: a bag.
    """

    companion: Relation | None = None
    state: Relation | None = None
    companion_key: tuple[str, ...] | None = None
