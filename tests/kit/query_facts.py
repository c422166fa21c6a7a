"""What a query says, in words that Spark's plans and Headrace's algebra have in common.

Everything is told by the columns of tables that it is made of: a condition is the set of columns it reads, traced
through derived tables, groups and subqueries to the tables. So it does not matter where a condition is evaluated, in
ON or in WHERE, nor how a subquery is joined; it does matter to which column a name was resolved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

Lineage = frozenset[str]
"""Columns of tables, as `table#2.column`: the second reading of the table in the query."""

NOTHING: Lineage = frozenset()


@dataclass
class Facts:
    """What a query says.

    Args:
        columns: What each output column is made of.
        scans: The tables, in the order they are read.
        facts: How often each thing is said, by aspect.
    """

    columns: tuple[Lineage, ...] = ()
    scans: list[str] = field(default_factory=list)
    facts: dict[str, Counter[Hashable]] = field(default_factory=dict)

    def add(self, aspect: str, fact: Hashable, times: int = 1) -> None:
        """Take down a fact."""
        self.facts.setdefault(aspect, Counter())[fact] += times

    def condition(self, lineage: Lineage) -> None:
        """Take down a condition; one of constants says nothing about the tables."""
        if lineage:
            self.add("conditions", lineage)

    def scan(self, table: str) -> int:
        """Take down that a table is read, and number the reading."""
        self.scans.append(table)
        return self.scans.count(table)

    def of(self, aspect: str) -> Counter[Hashable]:
        """The facts of an aspect."""
        return self.facts.get(aspect, Counter())


def union(lineages: Iterable[Lineage]) -> Lineage:
    """All columns of some lineages."""
    return frozenset().union(*lineages)


def keys(lineages: Iterable[Lineage]) -> frozenset[Lineage]:
    """What rows are grouped by; constants do not divide them."""
    return frozenset(lineage for lineage in lineages if lineage)


def unnumbered(fact: Hashable) -> Hashable:
    """A fact about tables instead of their readings."""
    if isinstance(fact, str):
        table, number, rest = fact.partition("#")
        return table + rest[rest.find(".") :] if number else fact
    if isinstance(fact, frozenset):
        return frozenset(map(unnumbered, fact))
    return tuple(map(unnumbered, fact)) if isinstance(fact, tuple) else fact
