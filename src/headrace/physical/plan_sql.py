"""Writes the SQL of stages, last of all, when a stage runs or `explain` prints it.

A view whose stage is inlined is no view in Spark: its query stands as a subquery in each statement that reads it. As a
temporary view it would have Spark analyse it once more and then look through all that is kept when it is dropped: 45
ms, of the 860 that a small aggregate takes to follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.algebra.relations import Moment, Relation, Scan, Stored
from headrace.algebra.schema import Column, as_typed
from headrace.algebra.types import mentions
from headrace.errors import InternalError
from headrace.ivm.program import COMPANION, STATE, DeltaCoverage
from headrace.names import TableName, quote
from headrace.physical.facts import Facts
from headrace.physical.key_ranges import gaps_sql
from headrace.physical.leaves import Leaves, View, key_of
from headrace.physical.stages import Compute
from headrace.physical.view_names import change_views, view_name
from headrace.sql.lower import Bind, lower

UNKNOWN_RANGES = "true /* within the ranges of the keys */"
"""Stands in what `explain` prints: the ranges are found while a refresh runs."""


def as_computed(table: str, columns: Sequence[Column]) -> str:
    """Write a stored table with the types that its columns have in the query.

    Iceberg keeps the small integers as larger ones, which calculate and divide otherwise.

    Args:
        table: Table expression of the stored rows.
        columns: Its columns, as the query has them.
    """
    if not any(mentions(c.type, *_NARROW) for c in columns):
        return table
    shown = (as_typed(c) if mentions(c.type, *_NARROW) else quote(c.name) for c in columns)
    return f"(SELECT {', '.join(shown)} FROM {table})"


_NARROW = ("tinyint", "smallint")


class PlanSql:
    """Writes the statements of one refresh; thread-safe while threads inline different views.

    Args:
        facts: The refresh.
    """

    def __init__(self, facts: Facts) -> None:
        self._facts = facts
        self._changes = change_views(facts)
        self._inlined: dict[str, str] = {}

    # ---- views

    def inline(self, view: str, query: str) -> None:
        """Make later statements read a view as a subquery.

        Args:
            view: Its temporary name.
            query: The query that stands for it.
        """
        self._inlined[view] = query

    def inlined(self, view: str) -> str | None:
        """Return the query of a view that is no view in Spark; None of others."""
        return self._inlined.get(view)

    def table(self, view: str) -> str:
        """Return the table expression of a view."""
        query = self._inlined.get(view)
        return quote(view) if query is None else f"({query})"

    def locate(self, leaf: Scan | Stored, leaves: Leaves) -> str | View:
        """Return where a leaf is read from.

        Args:
            leaf: The leaf.
            leaves: Those that are read from elsewhere than the refresh's own.
        """
        found = leaves.get(key_of(leaf))
        return self._own(leaf) if found is None else found

    def _own(self, leaf: Scan | Stored) -> str | View:
        facts = self._facts
        if isinstance(leaf, Stored):
            details = facts.details
            stored = {STATE: (facts.state_at, details.output), COMPANION: (facts.companion_at, details.companion or ())}
            table, columns = stored.get(leaf.name, (None, ()))
            return View(view_name(facts, leaf.name)) if table is None else as_computed(table, columns)
        if leaf.moment is Moment.CHANGE:
            return View(self._changes[leaf.source])
        source = facts.by_name[leaf.source]
        return source.after if leaf.moment is Moment.AFTER or source.before is None else source.before

    # ---- statements

    def query(self, stage: Compute, *, ranges: str | None = None, empty: bool = False) -> str:
        """Write the query of a stage.

        Args:
            stage: The stage.
            ranges: The condition that rows of its source satisfy, where only these are read; None: not known yet.
            empty: Write a query of the same columns and no rows, of which Spark computes nothing.
        """
        sql = self._lower(stage, stage.relation, self._within(stage, ranges))
        return f"SELECT * FROM ({sql}) WHERE false" if empty else sql

    def condition(self, stage: Compute, only_if: Relation) -> str:
        """Write a query that has a row if a conditional stage must be computed.

        Args:
            stage: The stage.
            only_if: Its condition.
        """
        return f"SELECT 1 FROM ({self._lower(stage, only_if)}) LIMIT 1"

    def gaps(self, stage: Compute, keys: Relation) -> str:
        """Write the query that finds the ranges of keys, for `key_ranges.ranges_of`.

        Args:
            stage: The stage that is to read its source within these ranges.
            keys: A relation of one column with all keys.
        """
        return gaps_sql(lower(keys, self._bind(stage.leaves)))

    def is_covered(self, stage: Compute, coverage: DeltaCoverage, *, ranges: str | None = None) -> str:
        """Write a query of one value: whether the change of the source has all rows of a semi-join.

        Args:
            stage: The stage that computes the semi-join.
            coverage: The relations to compare.
            ranges: Condition on the source's key that holds for all keys; None: not known.

        Raises:
            InternalError: `PLAN_INVALID`: the stage reads ranges of keys, but of no source.
        """
        within = self._within(stage, ranges)
        found = f"SELECT count(*) FROM ({self._lower(stage, coverage.semijoin, within)})"
        added = self._lower(stage, coverage.added, within)
        return f"SELECT ({found}) = (SELECT coalesce(sum({quote(coverage.times)}), 0) FROM ({added}))"

    def covered(self, stage: Compute, coverage: DeltaCoverage) -> str:
        """Write what a semi-join stage computes where `is_covered` is true, without its source."""
        return self._lower(stage, coverage.instead)

    def _lower(self, stage: Compute, relation: Relation, within: Mapping[TableName, str] | None = None) -> str:
        return lower(relation, self._bind(stage.leaves, within), hints=stage.hints)

    @staticmethod
    def _within(stage: Compute, ranges: str | None) -> Mapping[TableName, str] | None:
        if stage.reduction.keys is None:
            return None
        if stage.semijoin is None:
            raise InternalError("PLAN_INVALID", f"Stage '{stage.title}' reads ranges of no source.")
        return {stage.semijoin[0]: ranges or UNKNOWN_RANGES}

    def _bind(self, leaves: Leaves, within: Mapping[TableName, str] | None = None) -> Bind:
        def bind(leaf: Scan | Stored) -> str:
            found = self.locate(leaf, leaves)
            if isinstance(found, View):
                return self.table(found.name)
            restricted = within.get(leaf.source) if within and isinstance(leaf, Scan) else None
            return found if restricted is None else f"(SELECT * FROM {found} WHERE {restricted})"

        return bind
