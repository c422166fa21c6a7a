"""What only one of two sides says of a query; see `kit.query_facts`."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

from headrace.algebra.schema import Column
from kit.query_facts import Facts, unnumbered

Said = dict[str, Counter[Any]]
"""How often each fact is said, by aspect."""


class Dispute:
    """What only Spark says of a query, and what only the reader says.

    Args:
        text: The query.
        spark: What Spark says.
        ours: What the reader says.
        columns: The output columns as Spark types them, and as it types the reader's algebra; none to leave types out.
    """

    def __init__(
        self,
        text: str,
        spark: Facts,
        ours: Facts,
        columns: tuple[tuple[Column, ...], tuple[Column, ...]] = ((), ()),
    ) -> None:
        self.text = text
        asked: list[Any] = list(spark.of("subqueries"))
        self.subqueries = [(kind, outer) for kind, outer, _ in asked]
        self.scanned = frozenset(spark.scans)
        self.scanned_by_subqueries = frozenset().union(*(scans for _, _, scans in asked))
        self._facts = (spark, ours)
        self._numbered = spark.scans == ours.scans
        self.spark: Said = {}
        self.ours: Said = {}
        self._compare(once=False)
        scans = [Counter(each.scans) for each in self._facts]
        self._dispute("scans", scans[0], scans[1])
        made = [[each if self._numbered else unnumbered(each) for each in side.columns] for side in self._facts]
        self._dispute("lineage", *(Counter(enumerate(each)) for each in made))
        self._dispute("types", *(Counter(enumerate(c.type for c in each)) for each in columns))
        self._dispute("nullability", *(Counter(enumerate(c.nullable for c in each)) for each in columns))

    def asks(self, *kinds: str, outer: bool | None = None) -> bool:
        """Return whether the query has a subquery of some kinds, with outer columns or without."""
        return any((not kinds or kind in kinds) and outer in (None, reads) for kind, reads in self.subqueries)

    def known(self, aspect: str) -> list[Any]:
        """All that Spark says of an aspect."""
        return list(self._said(self._facts[0], aspect))

    def own(self, aspect: str) -> list[Any]:
        """All that the reader says of an aspect."""
        return list(self._said(self._facts[1], aspect))

    def once(self) -> None:
        """Forget how often things are said."""
        self._compare(once=True)

    @property
    def left(self) -> list[str]:
        """What nobody has accounted for."""
        sides = (("only Spark", self.spark), ("only the reader", self.ours))
        return [
            f"{aspect}, {who}: {number} × {_shown(fact)}"
            for who, side in sides
            for aspect, facts in side.items()
            for fact, number in facts.items()
        ]

    def _compare(self, *, once: bool) -> None:
        for aspect in sorted({*self._facts[0].facts, *self._facts[1].facts} - {"subqueries"}):
            said = [self._said(side, aspect) for side in self._facts]
            self._dispute(aspect, *(Counter(dict.fromkeys(each, 1)) if once else each for each in said))

    def _said(self, side: Facts, aspect: str) -> Counter[Any]:
        found: Counter[Any] = Counter()
        for fact, number in side.of(aspect).items():
            found[fact if self._numbered else unnumbered(fact)] += number
        return found

    def _dispute(self, aspect: str, spark: Counter[Any], ours: Counter[Any]) -> None:
        self.spark[aspect], self.ours[aspect] = spark - ours, ours - spark


def _shown(fact: object) -> str:
    return re.sub(r"frozenset\((\{[^{}]*\})?\)", lambda found: found.group(1) or "{}", str(fact))
