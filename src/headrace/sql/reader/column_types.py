"""The types of a query's columns by name, as far as they are known.

Where two columns are of one type, equality is transitive: `a = b AND b = c` says `a = c`. It is not where Spark casts
one of them: '01' = 1 and 1 = '1', but '01' <> '1'. Rules go by column names, which are unique within a block only: a
name that means columns of several types in different parts of a query has no type. The types of computed columns are
known where Spark is asked for them; those of sources it always is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass

from headrace.algebra.joins import at_most_one_row
from headrace.algebra.properties.order import equal_means_same
from headrace.algebra.relations import (
    Aggregate,
    Filter,
    Generate,
    Project,
    Recursive,
    Relation,
    Round,
    Scan,
    TopK,
    Union,
    Values,
    Window,
)
from headrace.algebra.scalar import as_column
from headrace.algebra.tree import walk
from headrace.sql.reader.argument_types import DescribeRelation

Types = dict[str, str | None]


@dataclass(frozen=True, slots=True)
class ColumnTypes:
    """Types of the columns of a query.

    Args:
        by_name: All types of columns of a name, None among them where one is not known.
    """

    by_name: Mapping[str, Set[str | None]]

    @property
    def types(self) -> Mapping[str, str]:
        """Return types by name, of names that have one only."""
        single = ((name, next(iter(types))) for name, types in self.by_name.items() if len(types) == 1)
        return {name: type_ for name, type_ in single if type_ is not None}

    @property
    def exact(self) -> frozenset[str]:
        """Return the names of columns whose equal values are the same, unlike 0.0 and -0.0."""
        return frozenset(name for name, types in self.by_name.items() if all(t and equal_means_same(t) for t in types))

    def beside(self, others: Iterable[tuple[str, str | None]]) -> ColumnTypes:
        """Return these types, with those of more columns by name."""
        found = {name: set(types) for name, types in self.by_name.items()}
        for name, type_ in others:
            found.setdefault(name, set()).add(type_)
        return ColumnTypes(found)


def column_types(tree: Relation, describe_relation: DescribeRelation, *, computed: bool = False) -> ColumnTypes:
    """Find Spark types by column name.

    Args:
        tree: The query, with types filled in.
        describe_relation: Spark's column types of a relation; called for sources.
        computed: Call it for whatever computes columns too.
    """
    found: dict[str, set[str | None]] = {}
    _collect(tree, describe_relation, found, computed=computed)
    return ColumnTypes(found)


def asks_for_types(tree: Relation, known: ColumnTypes) -> bool:
    """Return whether changes are added up below an operator by columns of unknown types.

    Args:
        tree: The query.
        known: The types that are known.
    """
    root = tree
    while isinstance(root, Project | Filter):
        root = root.input
    below = (node for each in root.inputs for node in walk(each))
    unknown = {name for name, types in known.by_name.items() if None in types}
    return any(_added_up(node) and not unknown.isdisjoint(node.columns) for node in below)


def _added_up(node: Relation) -> bool:
    """Return whether a change is what an operator gives after it, minus what it gave before.

    So it is for what is computed of an aggregate's one row: joins look first whether it changed.
    """
    return isinstance(node, Aggregate | Recursive | TopK | Window) or at_most_one_row(node)


def _collect(
    node: Relation, describe_relation: DescribeRelation, found: dict[str, set[str | None]], *, computed: bool
) -> Types:
    below = (node.start,) if isinstance(node, Round) else node.inputs
    inputs = [_collect(each, describe_relation, found, computed=computed) for each in below]
    own = _own(node, inputs, describe_relation)
    if computed and isinstance(node, _COMPUTING) and None in own.values():
        own = {c.name: c.type for c in describe_relation(node)}
    for name, type_ in own.items():
        found.setdefault(name, set()).add(type_)
    return own


_COMPUTING = Aggregate | Generate | Project | Recursive | Union | Values | Window


def _own(node: Relation, inputs: list[Types], describe_relation: DescribeRelation) -> Types:
    match node:
        case Scan():
            return {c.name: c.type for c in describe_relation(node)}
        case Project():
            return {name: inputs[0].get(as_column(scalar) or "") for name, scalar in node.items}
        case Aggregate():
            return {key: inputs[0].get(key) for key in node.keys} | {call.name: call.type for call in node.calls}
        case Union() | Recursive():
            return _agreed(node, inputs)
    below: Types = {}
    for each in inputs:
        below |= each
    return {name: below.get(name) for name in node.columns}


def _agreed(node: Union | Recursive, inputs: list[Types]) -> Types:
    found: Types = {}
    for at, name in enumerate(node.columns):
        types = {own.get(each.columns[at]) for own, each in zip(inputs, node.inputs, strict=True)}
        found[name] = types.pop() if len(types) == 1 else None
    return found
