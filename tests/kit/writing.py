"""What every part of a random query is written with."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field

from hypothesis import strategies as st

from kit.case import Table
from kit.expressions import NUMBERS, TYPES, Field, Scope

Shown = tuple[Field, ...]
"""The output columns of a query: bare names and types."""


@dataclass
class Writing(ABC):
    """Writes one query; aliases are unique over the whole of it.

    Args:
        draw: Draws.
        tables: The tables it reads.
        ctes: The common table expressions in sight.
        inexact: Whether there may be sums and statistics of floating-point numbers.
        aliases: How many there are.
        columns: Likewise.
    """

    draw: st.DrawFn
    tables: tuple[Table, ...]
    ctes: dict[str, Shown] = field(default_factory=dict)
    inexact: bool = False
    aliases: int = 0
    columns: int = 0

    @abstractmethod
    def query(self, depth: int) -> tuple[str, Shown]:
        """A query, and what it shows."""

    @abstractmethod
    def asking(self, scope: Scope, depth: int, outer: Scope | None = None) -> str:
        """A condition that is a subquery or compares with one.

        Args:
            scope: What is compared.
            depth: How deep the subquery may be.
            outer: What the subquery may read of the query around it; None: the same.
        """

    @abstractmethod
    def call(self, scope: Scope) -> tuple[str, str]:
        """An aggregate call and its type."""

    def choose(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def often(self) -> bool:
        return self.draw(st.integers(0, 2)) > 0

    def seldom(self) -> bool:
        return self.draw(st.integers(0, 3)) == 3

    def alias(self) -> str:
        self.aliases += 1
        return f"q{self.aliases}"

    def type(self, scope: Scope) -> str:
        """A type, mostly of something in scope."""
        return self.choose(*(each.type for each in scope), *(each.type for each in scope), *TYPES)

    def number(self, scope: Scope) -> str:
        kinds = [each for each in NUMBERS if self.inexact or each != "double"]
        return self.choose(*(each.type for each in scope if each.type in kinds), *kinds)

    def written(self, head: str, items: list[str], types: list[str], tail: str) -> tuple[str, Shown]:
        """A SELECT; an alias occurs once in a query, so that none is mistaken for a column."""
        names = [f"c{self.columns + i}" for i in range(len(items))]
        self.columns += len(items)
        shown = tuple(Field(name, type_) for name, type_ in zip(names, types, strict=True))
        return head + ", ".join(f"{sql} AS {name}" for sql, name in zip(items, names, strict=True)) + tail, shown

    def cut(self, sql: str, shown: Shown) -> str:
        """A query, sometimes with LIMIT: in an order of all its columns, in one that leaves ties, or in none."""
        if not self.seldom():
            return sql
        floats = any(each.type == "double" for each in shown)
        kind = self.choose("ties", "none") if floats else self.choose("total", "ties", "none")
        # over set operations and after DISTINCT there is nothing to order zeros by but the columns themselves
        if floats and (self.inexact or any(word in sql for word in ("UNION", "INTERSECT", "EXCEPT", "DISTINCT"))):
            return sql
        by = [] if kind == "none" else [each for each in shown if kind == "total" or self.seldom()]
        order = ", ".join(f"{each.sql}{self.choose('', ' DESC', ' NULLS LAST')}" for each in by)
        cut = f"LIMIT {self.choose('1', '2', '3')}{self.choose('', '', ' OFFSET 1')}" if self.often() else "OFFSET 1"
        return f"{sql} ORDER BY {order} {cut}" if order else f"{sql} {cut}"
