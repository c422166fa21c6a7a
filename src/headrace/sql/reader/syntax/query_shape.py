"""The shape of a query: clauses, FROM items, nested queries. Scalars stay ranges of tokens.

Every range is half-open, over the token tuple of the whole text, so that each part knows its exact place.
"""

from __future__ import annotations

from dataclasses import dataclass

Range = tuple[int, int]
"""First token, and the one after the last."""


@dataclass(frozen=True, slots=True)
class Alias:
    """`AS name (columns)` after a FROM item."""

    name: str
    columns: tuple[str, ...] = ()


SPANS = frozenset({"session_window", "window"})
"""Functions that put rows into spans of time: wherever one is called, Spark leaves out the rows without a time."""


@dataclass(frozen=True, slots=True)
class Extra:
    """A construct that the reader does not translate.

    Args:
        construct: Its name for messages, such as `LIMIT`.
        at: Token it begins at.
        range: Its tokens, which may hold subqueries.
        harmless: Without influence on the bag of rows, such as ORDER BY without LIMIT.
    """

    construct: str
    at: int
    range: Range
    harmless: bool = False


@dataclass(frozen=True, slots=True)
class TableItem:
    """A table, view or CTE named in FROM.

    Args:
        parts: The name, split and unquoted.
        name: The tokens of the dotted name.
        alias: Its alias.
        extras: What follows the name: VERSION AS OF, TABLESAMPLE, options, PIVOT.
    """

    parts: tuple[str, ...]
    name: Range
    alias: Alias | None
    extras: tuple[Extra, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryItem:
    """A subquery in FROM."""

    query: Query
    alias: Alias | None
    at: int
    lateral: bool = False
    extras: tuple[Extra, ...] = ()


@dataclass(frozen=True, slots=True)
class FunctionItem:
    """A table-valued function in FROM."""

    name: str
    arguments: Range
    alias: Alias | None
    at: int
    extras: tuple[Extra, ...] = ()


@dataclass(frozen=True, slots=True)
class ValuesItem:
    """Inline rows, in FROM or as a query of their own."""

    rows: tuple[Range, ...]
    alias: Alias | None
    at: int
    extras: tuple[Extra, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupItem:
    """Joins in parentheses."""

    source: From
    alias: Alias | None
    at: int
    extras: tuple[Extra, ...] = ()


Item = TableItem | QueryItem | FunctionItem | ValuesItem | GroupItem


@dataclass(frozen=True, slots=True)
class JoinStep:
    """One join of a FROM clause with everything to its left.

    Args:
        kind: `,`, `CROSS`, `INNER`, or the words before JOIN for every other kind.
        item: The right side.
        on: The condition.
        using: Column names of USING.
        natural: Whether NATURAL was written.
        at: Token the join begins at.
        extras: PIVOT and UNPIVOT of everything joined so far.
    """

    kind: str
    item: Item
    on: Range | None
    using: tuple[str, ...]
    natural: bool
    at: int
    extras: tuple[Extra, ...] = ()


@dataclass(frozen=True, slots=True)
class From:
    """A FROM clause; Spark joins strictly from left to right."""

    first: Item
    joins: tuple[JoinStep, ...] = ()
    extras: tuple[Extra, ...] = ()


@dataclass(frozen=True, slots=True)
class Group:
    """GROUP BY.

    Args:
        items: The grouping expressions; without any, and anything else, all rows are one group.
        all: GROUP BY ALL.
        extras: ROLLUP, CUBE, GROUPING SETS.
    """

    items: tuple[Range, ...]
    all: bool
    extras: tuple[Extra, ...]
    at: int


@dataclass(frozen=True, slots=True)
class Select:
    """One SELECT block."""

    items: tuple[Range, ...]
    at: int
    distinct: bool = False
    source: From | None = None
    where: Range | None = None
    group: Group | None = None
    having: Range | None = None
    windows: tuple[tuple[str, Range], ...] = ()
    extras: tuple[Extra, ...] = ()


@dataclass(frozen=True, slots=True)
class SetOperation:
    """UNION, EXCEPT or INTERSECT.

    Args:
        operator: `UNION`, `EXCEPT` or `INTERSECT`.
        all: Whether ALL was written.
        by_name: UNION BY NAME.
        left: Left branch.
        right: Right branch.
        at: Token of the operator.
    """

    operator: str
    all: bool
    by_name: bool
    left: Body
    right: Body
    at: int


@dataclass(frozen=True, slots=True)
class TableBody:
    """`TABLE name` as a query."""

    table: TableItem
    at: int


@dataclass(frozen=True, slots=True)
class Cte:
    """One common table expression.

    Args:
        name: Its name.
        columns: Names of its columns, where they are given.
        query: What it stands for.
        at: Token it begins at.
        levels: MAX RECURSION LEVEL.
    """

    name: str
    columns: tuple[str, ...]
    query: Query
    at: int
    levels: int | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A whole query: WITH, body, and what orders or limits it.

    Args:
        ctes: Its common table expressions, in order.
        recursive: WITH RECURSIVE.
        body: What it computes.
        extras: ORDER BY, LIMIT and the like, pipe operators.
        at: First token.
        pipes: FROM items read by pipe operators.
    """

    ctes: tuple[Cte, ...]
    recursive: bool
    body: Body
    extras: tuple[Extra, ...]
    at: int
    pipes: tuple[Item, ...] = ()


def branches(operation: SetOperation) -> tuple[Body, ...]:
    """Return the branches of a chain of set operations from left to right."""
    found: list[Body] = []
    body: Body = operation
    while isinstance(body, SetOperation):
        found.append(body.right)
        body = body.left
    return (body, *reversed(found))


Body = Select | SetOperation | ValuesItem | TableBody | Query
