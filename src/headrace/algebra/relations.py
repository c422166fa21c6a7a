"""The relational algebra: small frozen nodes over bags of rows.

Every node knows its output columns; names are unique within a relation, which is checked when a node is built, so
rules can address columns by bare name. A weight is an ordinary integer column named `WEIGHT`: a delta is a
relation that has it, and no operator needs a special case for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, cast

from headrace.algebra.hashing import computed_once
from headrace.algebra.scalar import Scalar
from headrace.errors import Place
from headrace.names import WEIGHT, TableName


class Moment(StrEnum):
    """The contents that a leaf reads, relative to one refresh."""

    BEFORE = "BEFORE"
    AFTER = "AFTER"
    CHANGE = "CHANGE"


class Relation:
    """A bag of rows with named columns."""

    __slots__ = ("_columns", "_hash", "_size", "_sources", "_whole_sources")

    @property
    def columns(self) -> tuple[str, ...]:
        """Return output column names, in order, unique."""
        raise NotImplementedError(type(self).__name__)

    @property
    def inputs(self) -> tuple[Relation, ...]:
        """Return input relations, in order."""
        return ()

    def with_inputs(self, *inputs: Relation) -> Relation:
        """Return the same operator over other inputs; a leaf has none and stays as it is."""
        return self

    @property
    def weighted(self) -> bool:
        """Return whether rows carry a weight."""
        return WEIGHT in self.columns


class Unary(Relation):
    """A relation over one `input`."""

    __slots__ = ()
    input: Relation

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.input,)

    def with_inputs(self, *inputs: Relation) -> Relation:
        return replace(cast(Any, self), input=inputs[0])  # type: ignore[no-any-return]


class Binary(Relation):
    """A relation over a `left` and a `right` input."""

    __slots__ = ()
    left: Relation
    right: Relation

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.left, self.right)

    def with_inputs(self, *inputs: Relation) -> Relation:
        return replace(cast(Any, self), left=inputs[0], right=inputs[1])  # type: ignore[no-any-return]


def _check_unique(columns: tuple[str, ...]) -> None:
    if len(set(map(str.lower, columns))) == len(columns):
        return
    seen: set[str] = set()
    for name in columns:
        if name.lower() in seen:
            raise ValueError(f"duplicate column {name!r}")
        seen.add(name.lower())


@computed_once
@dataclass(frozen=True, slots=True)
class Scan(Relation):
    """A source relation, columns renamed.

    Args:
        source: The relation that is read.
        fields: Pairs (output name, source column), only those the query uses, in order.
        moment: Contents read; a view's own tree reads AFTER.
    """

    source: TableName
    fields: tuple[tuple[str, str], ...]
    moment: Moment = Moment.AFTER

    def __post_init__(self) -> None:
        _check_unique(self.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        names = tuple(out for out, _ in self.fields)
        return (*names, WEIGHT) if self.moment is Moment.CHANGE else names


@computed_once
@dataclass(frozen=True, slots=True)
class Stored(Relation):
    """Rows that Headrace holds: the state, the companion, or the result of an earlier step.

    Args:
        name: `state`, `companion`, or a step's name.
        names: Its columns, in order; WEIGHT among them when it is a change.
    """

    name: str
    names: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names


@computed_once
@dataclass(frozen=True, slots=True)
class Empty(Relation):
    """No rows. Rewrites remove it; only a wholly empty delta is left as one.

    Args:
        names: Its columns.
    """

    names: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names


@computed_once
@dataclass(frozen=True, slots=True)
class Values(Relation):
    """Literal rows, such as the single empty row of a SELECT without FROM.

    Args:
        names: Its columns.
        rows: Values in their order.
    """

    names: tuple[str, ...]
    rows: tuple[tuple[Scalar, ...], ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return self.names


@computed_once
@dataclass(frozen=True, slots=True)
class Project(Unary):
    """Named expressions over each row; keeps multiplicities.

    Args:
        input: The rows.
        items: Output columns in order, each with its expression.
    """

    input: Relation
    items: tuple[tuple[str, Scalar], ...]

    def __post_init__(self) -> None:
        _check_unique(self.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.items)


@computed_once
@dataclass(frozen=True, slots=True)
class Filter(Unary):
    """The rows for which the condition is true (not NULL, not false).

    Args:
        input: The rows.
        condition: The condition.
    """

    input: Relation
    condition: Scalar

    @property
    def columns(self) -> tuple[str, ...]:
        return self.input.columns


@computed_once
@dataclass(frozen=True, slots=True)
class Join(Binary):
    """Inner join; without a condition, the cross product.

    Column names of the inputs are disjoint.

    Args:
        left: One input.
        right: The other.
        condition: What pairs must satisfy.
        small_left: Advice that the left side is expected to be small, as a change is.
    """

    left: Relation
    right: Relation
    condition: Scalar | None = None
    small_left: bool = False

    def __post_init__(self) -> None:
        _check_unique(self.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.left.columns + self.right.columns


@computed_once
@dataclass(frozen=True, slots=True)
class OuterJoin(Binary):
    """Left or full outer join.

    A right outer join is a left one with its inputs exchanged.

    Args:
        left: The input whose rows all stay.
        right: The other; its columns are NULL beside a left row without a partner.
        condition: What pairs must satisfy.
        full: Whether rows of `right` without a partner stay too, the columns of `left` being NULL.
        types: Spark types of the columns, by name; rules need them, the reader leaves them out.
        unique: Whether a row of `left` is known to have one partner at most.
    """

    left: Relation
    right: Relation
    condition: Scalar
    full: bool = False
    types: tuple[tuple[str, str], ...] = ()
    unique: bool = False

    def __post_init__(self) -> None:
        _check_unique(self.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.left.columns + self.right.columns


@computed_once
@dataclass(frozen=True, slots=True)
class Existence(Binary):
    """Rows of `left` for which some (`anti`: no) row of `right` makes the condition true.

    Args:
        left: Rows to keep or drop.
        right: Where partners are looked for; its column names are disjoint from those of `left`.
        condition: What a pair must satisfy; NULL is not true.
        anti: Keep the rows without a partner instead.
        unique: Whether a row of `left` is known to have one partner at most.
        bounding: Whether it was put in so that fewer groups of `left` are kept: those that a query asks for.
    """

    left: Relation
    right: Relation
    condition: Scalar
    anti: bool = False
    unique: bool = False
    bounding: bool = False

    def __post_init__(self) -> None:
        _check_unique(self.left.columns + self.right.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.left.columns


@computed_once
@dataclass(frozen=True, slots=True)
class SemiJoin(Binary):
    """Rows of `left` whose key is (`anti`: is not) among `right`'s rows; NULL equals NULL.

    Args:
        left: Rows to keep or drop.
        right: The keys.
        on: Pairs (left column, right column); empty means: keep all if `right` has any row.
        anti: Keep the rows without a partner instead.
        numbers: Columns of `left` that are known to be whole numbers; only speed depends on it.
        small_right: Advice that the keys are expected to be few.
    """

    left: Relation
    right: Relation
    on: tuple[tuple[str, str], ...]
    anti: bool = False
    numbers: frozenset[str] = frozenset()
    small_right: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        return self.left.columns


@computed_once
@dataclass(frozen=True, slots=True)
class LookupJoin(Binary):
    """Left outer join on NULL-safe key equality, where `right` has at most one row a key.

    Not an operator of user queries: rules use it to put old accumulators beside new ones.

    Args:
        left: Rows, all of which stay.
        right: What is looked up.
        on: Pairs (left column, right column).
        small_right: Advice that the right side is expected to be small.
        whole: Whether rows of `right` without a partner come along, the columns of `left` being NULL. Nobody asks for
            them where `left` is known to be empty. Advice, too, that both sides are so few that one task joins them.
    """

    left: Relation
    right: Relation
    on: tuple[tuple[str, str], ...]
    small_right: bool = False
    whole: bool = False

    def __post_init__(self) -> None:
        _check_unique(self.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.left.columns + self.right.columns


@computed_once
@dataclass(frozen=True, slots=True)
class Union(Relation):
    """Bag union (UNION ALL).

    Args:
        branches: At least one; columns are matched by position, and named after the first branch.
    """

    branches: tuple[Relation, ...]

    def __post_init__(self) -> None:
        if not self.branches:
            raise ValueError("a union needs a branch")
        if len({len(b.columns) for b in self.branches}) != 1:
            raise ValueError("branches of a union differ in their number of columns")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.branches[0].columns

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return self.branches

    def with_inputs(self, *inputs: Relation) -> Relation:
        return Union(inputs)


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """One aggregate function of an `Aggregate`.

    Args:
        name: Output column.
        function: Lower-case function name (`count`, `sum`, `avg`, `min`, `max`, …).
        argument: The (first) argument, or None for `count(*)`.
        filter: The FILTER (WHERE …) condition, if any.
        argument_type: Spark type of the argument, such as `decimal(12,2)`; None for `count(*)`.
        type: Spark type of the result.
        more: Further arguments.
        distinct: Whether DISTINCT was written.
        inside: SQL around the call that takes its order away, such as `sort_array({})`.
        within: The ORDER BY of WITHIN GROUP, over columns of the input.
        place: Where it stands in the user's text.
    """

    name: str
    function: str
    argument: Scalar | None = None
    filter: Scalar | None = None
    argument_type: str | None = None
    type: str | None = None
    more: tuple[Scalar, ...] = ()
    distinct: bool = False
    inside: str = "{}"
    within: tuple[SortKey, ...] = ()
    place: Place | None = field(default=None, compare=False, repr=False)

    @property
    def columns(self) -> frozenset[str]:
        """Return the input columns it reads."""
        order = (key.scalar for key in self.within)
        read = (scalar for scalar in (self.argument, self.filter, *self.more, *order) if scalar is not None)
        return frozenset().union(*(scalar.columns for scalar in read))

    @property
    def plain(self) -> bool:
        """Return whether it is a function of one argument, copies included, and nothing more."""
        return not (self.more or self.distinct or self.within or self.inside != "{}")

    def written(self, write: Callable[[Scalar], str]) -> str:
        """Return the call in SQL.

        Args:
            write: Writes an argument.
        """
        arguments = ", ".join(write(each) for each in (self.argument, *self.more) if each is not None)
        arguments = arguments or ("" if self.within else "*")
        text = f"{self.function}({'DISTINCT ' if self.distinct else ''}{arguments})"
        if self.within:
            keys = ", ".join(f"{write(key.scalar)} {key.direction}".rstrip() for key in self.within)
            text = f"{text} WITHIN GROUP (ORDER BY {keys})"
        filtered = text if self.filter is None else f"{text} FILTER (WHERE {write(self.filter)})"
        return self.inside.replace("{}", filtered)


@computed_once
@dataclass(frozen=True, slots=True)
class Aggregate(Unary):
    """GROUP BY; without calls, DISTINCT over its keys.

    Without keys it is one row, also over no input.

    Args:
        input: Rows to group.
        keys: Input columns that form the group; NULL is a value like any other.
        calls: Aggregate functions, in order.
    """

    input: Relation
    keys: tuple[str, ...]
    calls: tuple[AggregateCall, ...] = ()

    def __post_init__(self) -> None:
        _check_unique(self.columns)
        if not self.keys and not self.calls:
            raise ValueError("an aggregate needs a key or a call")

    @property
    def columns(self) -> tuple[str, ...]:
        return self.keys + tuple(c.name for c in self.calls)


@computed_once
@dataclass(frozen=True, slots=True)
class Repeat(Unary):
    """Each row as often as its weight says, without the weight.

    Not an operator of user queries: it turns a Z-set into the bag that is stored.

    Args:
        input: A weighted relation whose weights are positive.
    """

    input: Relation

    def __post_init__(self) -> None:
        if not self.input.weighted:
            raise ValueError("only a weighted relation can be repeated")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in self.input.columns if name != WEIGHT)


@computed_once
@dataclass(frozen=True, slots=True)
class Replicate(Unary):
    """Each row as often as one of its columns says, without that column.

    Rows for which it is below one are dropped.

    Args:
        input: Rows with their numbers.
        copies: The column that holds the number; never NULL.
    """

    input: Relation
    copies: str

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for name in self.input.columns if name != self.copies)


@dataclass(frozen=True, slots=True)
class SortKey:
    """One expression of a window's ORDER BY.

    Args:
        scalar: The expression.
        direction: What follows it: `DESC`, `NULLS LAST` and the like.
    """

    scalar: Scalar
    direction: str = ""

    def __str__(self) -> str:
        return f"{self.scalar} {self.direction}".rstrip()


@dataclass(frozen=True, slots=True)
class WindowCall:
    """One function of a `Window`.

    Args:
        name: Output column.
        function: Its lower-case name.
        call: The call in SQL, with FILTER and IGNORE NULLS, without OVER.
        order: ORDER BY.
        frame: `ROWS …` or `RANGE …` as written; empty for the usual one.
        place: Where it stands in the user's text.
        written: What stands there, if not this function.
    """

    name: str
    function: str
    call: Scalar
    order: tuple[SortKey, ...] = ()
    frame: str = ""
    place: Place | None = field(default=None, compare=False, repr=False)
    written: str = ""

    @property
    def columns(self) -> frozenset[str]:
        """Return the input columns it reads."""
        return self.call.columns.union(*(key.scalar.columns for key in self.order))


@computed_once
@dataclass(frozen=True, slots=True)
class Window(Unary):
    """Window functions with one PARTITION BY: every row stays and gains a column for each.

    Args:
        input: Rows.
        partition: Input columns that form a partition, NULL being a value like any other; none for one partition.
        calls: The functions, in order.
    """

    input: Relation
    partition: tuple[str, ...]
    calls: tuple[WindowCall, ...]

    def __post_init__(self) -> None:
        _check_unique(self.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.input.columns + tuple(c.name for c in self.calls)


@computed_once
@dataclass(frozen=True, slots=True)
class Generate(Unary):
    """Each row beside every row that a generator gives for it.

    Args:
        input: Rows.
        generator: A call such as `explode(…)` or `posexplode_outer(…)`.
        names: The columns it gives, all of them.
    """

    input: Relation
    generator: Scalar
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        _check_unique(self.columns)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.input.columns + self.names


@computed_once
@dataclass(frozen=True, slots=True)
class Round(Relation):
    """The rows of a recursion's previous round; only its recursive branch reads them.

    Args:
        name: The recursion's.
        start: Its first rows, which tell what columns there are; outside of the recursion it stands for them.
    """

    name: str
    start: Relation

    @property
    def columns(self) -> tuple[str, ...]:
        return self.start.columns


@computed_once
@dataclass(frozen=True, slots=True)
class Recursive(Relation):
    """Rows of a start and all that follows from them, to the fixed point.

    Copies are kept: a row is there as often as there are ways to it. So cycles in the data have no end.

    Args:
        start: The first rows.
        again: What follows from the rows of a round, a `Round` of this name; it reads them once in each branch.
        name: Unique among the recursions around it.
        levels: How many rounds may give rows, the first rows being one; None where Spark's own limit holds.
        settled: Whether rows that compare as equal are the same, so that what follows from one follows from the other.
    """

    start: Relation
    again: Relation
    name: str
    levels: int | None = None
    settled: bool = True

    @property
    def columns(self) -> tuple[str, ...]:
        return self.start.columns

    @property
    def inputs(self) -> tuple[Relation, ...]:
        return (self.start, self.again)

    def with_inputs(self, *inputs: Relation) -> Relation:
        return Recursive(inputs[0], inputs[1], self.name, self.levels, self.settled)


@computed_once
@dataclass(frozen=True, slots=True)
class TopK(Unary):
    """The first rows in an order that leaves no tie between different rows.

    Args:
        input: Rows.
        order: ORDER BY, over columns of the input; none only until it is known that there is one row at most.
        limit: How many rows; None for all.
        offset: How many rows are passed over first.
        place: Where LIMIT stands in the user's text.
    """

    input: Relation
    order: tuple[SortKey, ...]
    limit: int | None
    offset: int = 0
    place: Place | None = field(default=None, compare=False, repr=False)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.input.columns
