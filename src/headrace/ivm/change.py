"""Inputs of delta rules: changes, contents before and after, results computed once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from typing import Any

from headrace.algebra.relations import (
    Aggregate,
    AggregateCall,
    Empty,
    Filter,
    Generate,
    Moment,
    Project,
    Relation,
    Scan,
    Stored,
    Union,
    Values,
)
from headrace.algebra.scalar import column, literal
from headrace.algebra.tree import at, identity, sources, unweighted
from headrace.ivm.program import Step, free_name
from headrace.names import WEIGHT, TableName

Partners = tuple[tuple[str, Relation], ...]
"""Keys of an aggregate, each with a relation of one column that has all the values by which groups are asked for."""


Rule = Callable[[Any, "Change"], Relation]
"""Derives the change of an operator of one kind."""


@dataclass(slots=True)
class Change:
    """One derivation: which sources changed, and the steps collected on the way.

    Args:
        rules: The rule of each kind of operator.
        changed: The sources that changed.
        appended: Those among them that only gained rows, each listed with weight 1.
        sizes: Rows in each source, as far as known; the order of joins follows them.
        companion_rows: Rows in the companion, as far as known.
        whole: Whether all rows of the companion may be held: they are few, and equal values in them are the same.
        ansi: Whether arithmetic fails on overflow (Spark's ANSI mode) or yields NULL.
        types: Types of the query's columns by name, as far as known.
        exact: Those of its columns, by name, whose equal values are known to be the same.
        partners: Aggregates of which only some groups matter.
        steps: What was asked to be computed once, in order.
        found: The changes of relations that were asked for.
        repeated: Those among them that were asked for again.
        looked_at: Those among the changes found of which it was only asked whether there are any.
        as_they_were: Relations that were asked for before the change, by id: of parts of them it is the same object.
        as_they_are: Likewise after the change.
    """

    rules: Mapping[type[Relation], Rule]
    changed: frozenset[TableName]
    appended: frozenset[TableName] = frozenset()
    sizes: Mapping[TableName, int] = field(default_factory=dict)
    companion_rows: int = 0
    whole: bool = False
    ansi: bool = True
    types: Mapping[str, str] = field(default_factory=dict)
    exact: Set[str] = frozenset()
    partners: Mapping[Aggregate, Partners] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    found: dict[Relation, Relation] = field(default_factory=dict)
    repeated: set[Relation] = field(default_factory=set)
    looked_at: set[Relation] = field(default_factory=set)
    as_they_were: dict[int, tuple[Relation, Relation]] = field(default_factory=dict)
    as_they_are: dict[int, tuple[Relation, Relation]] = field(default_factory=dict)

    def of(self, relation: Relation) -> Relation:
        """Return the change of a relation: its columns, then WEIGHT.

        `Empty` when nothing below it changed.

        Of an aggregate in `partners` it is that of the groups that matter to the operator above, which alone asks.
        """
        if not self.touches(relation):
            return empty(relation)
        known = self.found.get(relation)
        if known is None:
            known = self.rules[type(relation)](relation, self)
        elif relation in self.looked_at:
            self.looked_at.remove(relation)
        elif not cheap(known):
            # asked for again: left inline, it would be doubled by every outer join above
            self.repeated.add(known)
            known = self.keep(SHARED, known)
        self.found[relation] = known
        return known

    def moves(self, relation: Relation) -> bool:
        """Return whether a relation may change; that is not to ask for its change."""
        if relation not in self.found and not isinstance(self.of(relation), Empty):
            self.looked_at.add(relation)
        return not isinstance(self.found.get(relation, empty(relation)), Empty)

    def before(self, relation: Relation) -> Relation:
        """Return the relation before the change."""
        return at(relation, Moment.BEFORE, self.changed, self.as_they_were)

    def after(self, relation: Relation) -> Relation:
        """Return the relation after the change."""
        return at(relation, Moment.AFTER, self.changed, self.as_they_are)

    def touches(self, relation: Relation) -> bool:
        """Return whether a changed source is read below a relation."""
        return not self.changed.isdisjoint(sources(relation))

    def size(self, relation: Relation) -> int:
        """Return rows in the largest source below a relation, as far as known."""
        return max((self.sizes.get(source, 0) for source in sources(relation)), default=0)

    def keep(self, name: str, relation: Relation, only_if: Relation | None = None) -> Stored:
        """Add a step that computes a relation once, or find an equal one.

        Args:
            name: Its name; it gets a number where another step has that.
            relation: What it computes.
            only_if: Its condition, as of `Step.only_if`.

        Returns:
            A leaf that reads its rows.
        """
        for step in self.steps:
            if step.relation == relation and step.only_if == only_if:
                return Stored(step.name, relation.columns)
        unique = free_name(name, self.steps)
        self.steps.append(Step(unique, relation, only_if))
        return Stored(unique, relation.columns)


SHARED = "shared"
"""Name of a step that several places need."""


def cheap(relation: Relation) -> bool:
    """Return whether computing a relation again is as cheap as reading a kept result."""
    if isinstance(relation, (Project, Filter, Union, Generate)):
        return all(cheap(each) for each in relation.inputs)
    return isinstance(relation, (Scan, Stored, Values, Empty))


def empty(relation: Relation) -> Empty:
    """Return the change of a relation that did not change."""
    return Empty((*unweighted(relation.columns), WEIGHT))


def weigh(relation: Relation, weight: int) -> Project:
    """Give each row of an unweighted relation the same weight, in an added column WEIGHT."""
    return Project(relation, (*identity(relation.columns), (WEIGHT, literal(weight))))


def total(name: str) -> AggregateCall:
    """Return the sum of a column of whole numbers, under its own name."""
    return AggregateCall(name, "sum", column(name), argument_type="bigint", type="bigint")


def arrange(relation: Relation, columns: tuple[str, ...]) -> Relation:
    """Return a weighted relation with its columns in the given order, WEIGHT last."""
    wanted = (*columns, WEIGHT)
    return relation if relation.columns == wanted else Project(relation, identity(wanted))


def union_all(*terms: Relation) -> Relation:
    """Return the sum of changes; those that are known to be empty vanish."""
    live = tuple(term for term in terms if not isinstance(term, Empty))
    if not live:
        return terms[0]
    return live[0] if len(live) == 1 else Union(live)
