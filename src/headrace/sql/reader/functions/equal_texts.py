"""Finds values that are one of several equal texts, as texts with a collation may be.

Under `UTF8_LCASE` 'a' and 'A' are one group, and either is their maximum: which of them Spark gives depends on the
order of rows. That does not show where the value is only grouped by, joined or compared again. It does where anything
else reads it, such as `x COLLATE UTF8_BINARY` or `hex(x)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headrace.algebra.properties.dependencies import Names
from headrace.algebra.relations import (
    Aggregate,
    AggregateCall,
    Existence,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Project,
    Relation,
    Replicate,
    SemiJoin,
    TopK,
    Union,
    Window,
    WindowCall,
)
from headrace.algebra.scalar import Scalar, as_column, called_with_column, conjuncts
from headrace.algebra.text import text
from headrace.algebra.types import is_collated
from headrace.algebra.words import Kind, Word
from headrace.sql.reader.functions.ties import TypesOf
from headrace.sql.reader.refusals import Refusal, not_deterministic
from headrace.sql.reader.syntax.tokens import words

_COLLATED = "collat"  # COLLATE, collate()

_TAKING = ("max", "min", "mode")
_BY_EQUALITY = ("count", *_TAKING)
"""Functions to which equal values are the same, but for which of them comes out."""

_COMPARING = words("= == <=> <> != < <= > >= AND OR NOT IS NULL IN BETWEEN ( )")


def chosen_texts(tree: Relation, types_of: TypesOf) -> tuple[Refusal, ...]:
    """Return the groups and aggregates that give one of several equal texts, where that shows.

    Args:
        tree: The query, reading no column that it does not use.
        types_of: Spark's column types of a relation.
    """
    if _COLLATED not in text(tree).lower():  # Spark is asked for types only where there may be such
        return ()
    # a table does not keep a collation, but whoever compares its rows does so by that of the query
    shown = frozenset(tree.columns) - _collated(tree, types_of)
    return tuple(dict.fromkeys(_chosen(tree, shown, types_of)))


def _collated(relation: Relation, types_of: TypesOf) -> Names:
    return frozenset(column.name for column in types_of(relation) if is_collated(column.type))


def _chosen(node: Relation, told: Names, types_of: TypesOf) -> Iterator[Refusal]:
    """Yield what is refused of a relation.

    Args:
        node: The relation.
        told: Columns of which somebody tells equal values apart.
        types_of: Spark's column types of a relation.
    """
    if isinstance(node, Aggregate | Window) and (chosen := told - _passed_on(node)):
        chosen &= _collated(node, types_of)
        yield from (_refusal(call) for call in node.calls if call.name in chosen and _takes_any(call))
        if isinstance(node, Aggregate) and not chosen.isdisjoint(node.keys):
            yield not_deterministic("GROUP BY", None, f"shows of each group {_WHY}", _HINT)
    for at, below in enumerate(node.inputs):
        yield from _chosen(below, _told_below(node, told, at) & frozenset(below.columns), types_of)


def _passed_on(node: Aggregate | Window) -> Names:
    return frozenset(node.input.columns) if isinstance(node, Window) else frozenset()


def _takes_any(call: AggregateCall | WindowCall) -> bool:
    """Return whether a function takes any of equal values, or puts them in any order.

    Those that go by another value are judged by that.
    """
    return call.function in _TAKING or (isinstance(call, AggregateCall) and call.inside != "{}")


def _refusal(call: AggregateCall | WindowCall) -> Refusal:
    return not_deterministic(f"{call.function}()", call.place, f"gives {_WHY}", _HINT)


_WHY = "one of several texts that are equal under their collation, and it shows which"
_HINT = "Make texts that are equal the same before: lower(x), or take x COLLATE UTF8_BINARY there."


def _told_below(node: Relation, told: Names, at: int) -> Names:
    """Return the columns of an input in which equal values must not be exchanged.

    Args:
        node: The relation.
        told: Those of the relation itself.
        at: The number of the input.
    """
    match node:
        case Project():
            return _read(scalar for name, scalar in node.items if name in told or as_column(scalar) is None)
        case Filter() | Join() | OuterJoin() | Existence():
            return told | _read(conjuncts(node.condition) if node.condition is not None else ())
        case Aggregate() | Window():
            return told.union(*map(_of_call, node.calls))
        case TopK():
            return told | _read(key.scalar for key in node.order if as_column(key.scalar) is None)
        case Union():
            places = dict(zip(node.columns, node.inputs[at].columns, strict=True))
            return frozenset(places[name] for name in told)
        case SemiJoin():
            return told
        case Generate():
            return told | node.generator.columns
        case Replicate():
            return told | {node.copies}
    return frozenset(node.inputs[at].columns)


def _of_call(call: AggregateCall | WindowCall) -> Names:
    if isinstance(call, AggregateCall):
        argument = as_column(call.argument) if call.argument is not None else None
        simple = call.function in _BY_EQUALITY and argument is not None and not (call.more or call.within)
        condition = _read((call.filter,) if call.filter is not None else ())
        return condition if simple else call.columns
    keys = _read(key.scalar for key in call.order if as_column(key.scalar) is None)
    return keys if any(called_with_column(call.call, name) for name in _BY_EQUALITY) else keys | call.call.columns


def _read(scalars: Iterable[Scalar]) -> Names:
    """Return columns of which equal values may make scalars differ."""
    return frozenset().union(*(scalar.columns for scalar in scalars if not _compares(scalar)))


def _compares(scalar: Scalar) -> bool:
    """Return whether a scalar follows from comparisons of columns and constants."""
    if any(word.kind is Kind.FUNCTION for word in scalar.words):
        return False
    operators = set(_operators(scalar.words))
    return operators <= _COMPARING and not operators <= {"(", ")"}


def _operators(all_words: Iterable[Word]) -> Iterator[str]:
    """Yield the operators of a scalar, but for the commas of `IN (…, …)`.

    Other commas make a value of what is between them.
    """
    lists, before = list[bool](), ""
    for word in all_words:
        name = word.name if word.kind is Kind.OPERATOR else ""
        if name == "(":
            lists.append(before == "IN")
        elif name == ")":
            lists.pop()
        if name and not (name == "," and lists and lists[-1]):
            yield name
        before = name
