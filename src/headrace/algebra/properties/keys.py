"""Find the columns that identify a row of a relation.

A key is a set of columns in which no two rows agree, NULL being a value like any other; the empty key says that there
is one row at most. Keys of sources are known from elsewhere. What keeps rows keeps keys, and needs no column of them
that a condition sets equal to a constant; a GROUP BY has the key it groups by; numbered rows of a partition differ in
their number; a join has every pair of keys of both sides, and the key of one side where the condition equals all
columns of a key of the other side, so that a row has one partner at most.
Source: Paulley, Larson, Exploiting Uniqueness in Query Optimization, ICDE 1994.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.algebra.facts import Constant, Equality, Named, Type
from headrace.algebra.properties.equalities import equal_alike
from headrace.algebra.relations import (
    Aggregate,
    Existence,
    Filter,
    Join,
    OuterJoin,
    Project,
    Relation,
    Scan,
    SemiJoin,
    TopK,
    Window,
)
from headrace.algebra.scalar import Scalar, as_column, conjuncts
from headrace.algebra.types import is_integer
from headrace.names import TableName

Key = frozenset[str]

KeysOf = Mapping[TableName, tuple[tuple[str, ...], ...]]
"""Keys of sources, each by the names that columns have in the source."""

Types = Mapping[str, str]

MOST = 8
"""Keys of one relation that definitions look at: joins of many tables would have more than anybody needs."""

MOST_NUMBERED = 64
"""The same where it is asked which order of rows is settled: a query is refused for a key that is not seen, and a join
of ten tables by other columns would have a thousand."""


def _fits(constant: Type, type_: str | None) -> bool:
    """Return whether a constant is of a column's own type."""
    if constant is Type.INTEGER:
        return is_integer(type_)
    return constant in _TYPES and type_ == _TYPES[constant]


_TYPES = {Type.TEXT: "string", Type.DATE: "date"}


class Uniqueness:
    """Finds keys, of each relation once.

    Args:
        known: Keys of sources.
        types: Types of columns by name, as far as known.
        numbered: Whether numbers that a query gives its rows count. They must not where keys decide what a stream
            table stores: what exists was stored without.
    """

    def __init__(self, known: KeysOf, types: Types, *, numbered: bool = False) -> None:
        self._known = known
        self._types = types
        self._numbered = numbered
        # with the relation: an id is its own only while it lives
        self._found: dict[int, tuple[Relation, tuple[Key, ...]]] = {}

    def keys(self, relation: Relation) -> tuple[Key, ...]:
        """Return the keys of a relation, smaller ones first; none that holds another."""
        kept = self._found.get(id(relation))
        if kept is None:
            found = sorted(set(self._keys(relation)), key=lambda key: (len(key), sorted(key)))
            least = [key for i, key in enumerate(found) if not any(other <= key for other in found[:i])]
            kept = self._found[id(relation)] = relation, tuple(least[: MOST_NUMBERED if self._numbered else MOST])
        return kept[1]

    def one_partner(self, left: Relation, right: Relation, condition: Scalar) -> bool:
        """Return whether each row of `left` has at most one partner in `right`.

        Compared columns must be of one type: where Spark casts one of them, several values may equal the same.

        Args:
            left: One side of a join.
            right: The other side, whose keys decide.
            condition: The join's condition.
        """
        fixed = {b for _, b, _ in equal_alike(condition, left.columns, right.columns, self._types)}
        return any(key <= fixed for key in self.keys(right))

    def _keys(self, node: Relation) -> Iterable[Key]:
        match node:
            case Scan():
                return self._of_source(node)
            case Filter():
                return (key - self._settled(node.condition) for key in self.keys(node.input))
            case Window():
                return (*self.keys(node.input), *(_numbers(node) if self._numbered else ()))
            case TopK():
                return self.keys(node.input)
            case SemiJoin() | Existence():
                return self.keys(node.left)
            case Project():
                return self._projected(node)
            case Aggregate():
                below = self.keys(node.input)
                return (frozenset(node.keys), *(key for key in below if key <= set(node.keys)))
            case Join() | OuterJoin(full=False):
                return self._joined(node)
        return ()

    def _settled(self, condition: Scalar) -> frozenset[str]:
        """Return the columns whose values a condition fixes without a cast."""
        found = set[str]()
        for form in (each.form for each in conjuncts(condition)):
            match form:
                case Equality(Named(name), Constant(type_)) | Equality(Constant(type_), Named(name)):
                    if _fits(type_, self._types.get(name)):
                        found.add(name)
        return frozenset(found)

    def _of_source(self, scan: Scan) -> Iterable[Key]:
        names = {source: name for name, source in scan.fields}
        for key in self._known.get(scan.source, ()):
            if set(key) <= names.keys():
                yield frozenset(names[column] for column in key)

    def _projected(self, node: Project) -> Iterable[Key]:
        shown = {as_column(scalar): name for name, scalar in reversed(node.items)}
        for key in self.keys(node.input):
            if key <= shown.keys():
                yield frozenset(shown[column] for column in key)

    def _joined(self, node: Join | OuterJoin) -> Iterable[Key]:
        left, right = self.keys(node.left), self.keys(node.right)
        yield from (a | b for a in left for b in right)
        if node.condition is None:
            return
        if self.one_partner(node.left, node.right, node.condition):
            yield from left
        if isinstance(node, Join) and self.one_partner(node.right, node.left, node.condition):
            yield from right


def one_row_at_most(relation: Relation) -> bool:
    """Return whether a relation has one row at most, whatever its sources hold."""
    return frozenset[str]() in Uniqueness({}, {}).keys(relation)


def _numbers(window: Window) -> Iterable[Key]:
    for call in window.calls:
        if call.function == "row_number":
            yield frozenset(window.partition) | {call.name}
