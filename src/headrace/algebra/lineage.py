"""Column lineage: which columns of which sources each output column comes from, and how.

The words are those of OpenLineage's columnLineage facet. A value is passed on as it is (IDENTITY), computed
(TRANSFORMATION) or aggregated (AGGREGATION); other columns decide about a value (CONDITIONAL, FILTER, SORT, WINDOW) or,
kept apart from those, about which rows there are at all (JOIN, FILTER, GROUP_BY, SORT).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from headrace.algebra.conditional_columns import deciding_columns
from headrace.algebra.relations import (
    Aggregate,
    AggregateCall,
    Existence,
    Filter,
    Generate,
    Join,
    LookupJoin,
    OuterJoin,
    Project,
    Recursive,
    Relation,
    Replicate,
    Round,
    Scan,
    SemiJoin,
    TopK,
    Union,
    Window,
)
from headrace.algebra.scalar import Scalar, as_column
from headrace.algebra.tree import inputs_first
from headrace.names import TableName


class Influence(StrEnum):
    """The way in which a source's column takes part in a result."""

    IDENTITY = "IDENTITY"
    TRANSFORMATION = "TRANSFORMATION"
    AGGREGATION = "AGGREGATION"
    CONDITIONAL = "CONDITIONAL"
    FILTER = "FILTER"
    GROUP_BY = "GROUP_BY"
    JOIN = "JOIN"
    SORT = "SORT"
    WINDOW = "WINDOW"

    @property
    def direct(self) -> bool:
        """Return whether the value itself goes into the result."""
        return self in _DIRECT

    def then(self, later: Influence) -> Influence:
        """Return what this one becomes where its result has another one."""
        if not later.direct or not self.direct:
            return self if later.direct else later
        return max(self, later, key=_DIRECT.index)


_DIRECT = (Influence.IDENTITY, Influence.TRANSFORMATION, Influence.AGGREGATION)


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """A column that a result comes from.

    Args:
        table: Its table.
        column: Its name.
        influence: How it takes part.
    """

    table: TableName
    column: str
    influence: Influence


Origins = frozenset[Origin]
NOTHING: Origins = frozenset()


@dataclass(frozen=True, slots=True)
class Lineage:
    """Origins of a relation's columns and of its rows.

    Args:
        columns: By output column, in order: the origins of its values.
        rows: The columns that decide which rows there are.
    """

    columns: Mapping[str, Origins]
    rows: Origins = NOTHING

    def of(self, names: Iterable[str], influence: Influence) -> Origins:
        """Return the origins of what some columns take part in.

        Args:
            names: The columns; those that do not exist have no origins.
            influence: How they take part.
        """
        found = (origin for name in names for origin in self.columns.get(name, NOTHING))
        return frozenset(_seen_through(origin, influence) for origin in found)


def lineage_of(tree: Relation, rounds: Mapping[str, Lineage] | None = None) -> Lineage:
    """Return the lineage of a query's tree.

    Args:
        tree: The query as it was read, before the optimiser has moved anything.
        rounds: Lineage of the rows of recursions around it, by name.
    """
    found: dict[int, Lineage] = {}
    rounds = rounds or {}
    for node in inputs_first(tree):
        found[id(node)] = _of_node(node, [found[id(each)] for each in node.inputs], rounds)
    return found[id(tree)]


def followed(table: TableName, lineages: Mapping[TableName, Lineage]) -> Lineage:
    """Return the lineage of a stream table down to tables that are none.

    Args:
        table: The stream table.
        lineages: Lineage of each stream table over what it reads, as far as known; where it is not, its own columns
            are the origins.
    """
    own = lineages[table]
    columns = {name: _ends(origins, lineages) for name, origins in own.columns.items()}
    below = [table]
    for each in below:  # which grows meanwhile
        read = (origin.table for origins in _all(lineages[each]) for origin in origins)
        below += [name for name in dict.fromkeys(read) if name in lineages and name not in below]
    rows = frozenset[Origin]().union(*(lineages[each].rows for each in below))
    return Lineage(columns, _ends(rows, lineages))


def _all(lineage: Lineage) -> Iterator[Origins]:
    yield from lineage.columns.values()
    yield lineage.rows


def _ends(origins: Origins, lineages: Mapping[TableName, Lineage]) -> Origins:
    """Replace origins in stream tables by theirs, also around circles."""
    seen, waiting, ends = set(origins), list(origins), set[Origin]()
    while waiting:
        origin = waiting.pop()
        inner = lineages.get(origin.table)
        if inner is None:
            ends.add(origin)
            continue
        further = inner.of((origin.column,), origin.influence) - seen
        seen |= further
        waiting += further
    return frozenset(ends)


def _seen_through(origin: Origin, influence: Influence) -> Origin:
    return Origin(origin.table, origin.column, origin.influence.then(influence))


# one node


def _of_node(node: Relation, inputs: list[Lineage], rounds: Mapping[str, Lineage]) -> Lineage:
    match node:
        case Scan():
            columns = {out: frozenset({Origin(node.source, of, Influence.IDENTITY)}) for out, of in node.fields}
            return Lineage(columns)
        case Round():
            return rounds[node.name] if node.name in rounds else lineage_of(node.start, rounds)
        case Recursive():
            return _recursion(node, inputs[0], rounds)
        case Union():
            return _union(node.columns, inputs)
        case Project():
            (rows,) = inputs
            return Lineage({name: _of_value(scalar, rows) for name, scalar in node.items}, rows.rows)
        case Aggregate():
            return _aggregate(node, inputs[0])
        case Window():
            return _window(node, inputs[0])
        case Generate():
            (rows,) = inputs
            value = rows.of(node.generator.columns, Influence.TRANSFORMATION)
            number = rows.of(node.generator.columns, Influence.JOIN)
            return Lineage({**rows.columns, **dict.fromkeys(node.names, value)}, rows.rows | number)
        case _:
            return _of_rows(node, inputs)


def _of_rows(node: Relation, inputs: list[Lineage]) -> Lineage:
    """Return the lineage of an operator that chooses or pairs rows and computes no values."""
    every = {name: origins for each in inputs for name, origins in each.columns.items()}
    columns = {name: every.get(name, NOTHING) for name in node.columns}
    rows = frozenset[Origin]().union(*(each.rows for each in inputs))
    names, influence = _deciding(node)
    return Lineage(columns, rows | Lineage(every).of(names, influence))


def _deciding(node: Relation) -> tuple[Iterable[str], Influence]:
    """Return the columns by which an operator chooses or pairs rows."""
    match node:
        case Filter(condition=condition) | Existence(condition=condition):
            return condition.columns, Influence.FILTER
        case Join(condition=None):
            return (), Influence.JOIN
        case Join(condition=Scalar() as condition) | OuterJoin(condition=condition):
            return condition.columns, Influence.JOIN
        case LookupJoin(on=on):
            return (name for pair in on for name in pair), Influence.JOIN
        case SemiJoin(on=on):
            return (name for pair in on for name in pair), Influence.FILTER
        case Replicate(copies=copies):
            return (copies,), Influence.FILTER
        case TopK(order=order):
            return (name for key in order for name in key.scalar.columns), Influence.SORT
    return (), Influence.FILTER


def _of_value(scalar: Scalar, rows: Lineage) -> Origins:
    name = as_column(scalar)
    if name is not None:
        return rows.columns.get(name, NOTHING)
    deciding, others = deciding_columns(scalar.words)
    return rows.of(others, Influence.TRANSFORMATION) | rows.of(deciding, Influence.CONDITIONAL)


def _union(names: tuple[str, ...], branches: list[Lineage]) -> Lineage:
    by_place = zip(*(each.columns.values() for each in branches), strict=True)
    columns = {name: NOTHING.union(*place) for name, place in zip(names, by_place, strict=True)}
    return Lineage(columns, NOTHING.union(*(each.rows for each in branches)))


def _aggregate(node: Aggregate, rows: Lineage) -> Lineage:
    columns = {name: rows.columns.get(name, NOTHING) for name in node.keys}
    columns |= {call.name: _of_call(call, rows) for call in node.calls}
    return Lineage(columns, rows.rows | rows.of(node.keys, Influence.GROUP_BY))


def _of_call(call: AggregateCall, rows: Lineage) -> Origins:
    values = [each for each in (call.argument, *call.more) if each is not None]
    found = [frozenset(_seen_through(o, Influence.AGGREGATION) for o in _of_value(each, rows)) for each in values]
    found += [rows.of(key.scalar.columns, Influence.SORT) for key in call.within]
    if call.filter is not None:
        found.append(rows.of(call.filter.columns, Influence.FILTER))
    return NOTHING.union(*found)


def _window(node: Window, rows: Lineage) -> Lineage:
    columns = dict(rows.columns)
    partition = rows.of(node.partition, Influence.WINDOW)
    for call in node.calls:
        order = rows.of((name for key in call.order for name in key.scalar.columns), Influence.WINDOW)
        influence = Influence.TRANSFORMATION if call.function in _ONE_ROW else Influence.AGGREGATION
        columns[call.name] = rows.of(call.call.columns, influence) | order | partition
    return Lineage(columns, rows.rows)


_ONE_ROW = frozenset({"lag", "lead", "first", "first_value", "last", "last_value", "nth_value", "any_value"})
"""Window functions that give the value of one row."""


def _recursion(node: Recursive, start: Lineage, rounds: Mapping[str, Lineage]) -> Lineage:
    """Follow a recursion until another round brings no further origin."""
    known = start
    while True:
        again = lineage_of(node.again, {**rounds, node.name: known})
        following = _union(node.columns, [known, again])
        if following == known:
            return known
        known = following
