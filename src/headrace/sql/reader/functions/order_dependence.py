"""Decides if aggregates that choose among rows, or order them, are deterministic.

`max_by(x, y)` takes x from a row with the greatest y, `first(x)` from any row, and `listagg(x) WITHIN GROUP (ORDER BY
y)` puts equal ys in any order. They are maintained where that leaves nothing to choose: where rows of a group that
agree in y (for `first`: all of them) agree in x. So `max_by(x, struct(y, x))` always is. `try_sum` and `try_avg` may
run out of their type in one order of the rows and not in another; with types that always suffice they are maintained.
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.algebra.properties.dependencies import Names, closure, dependencies, struct_fields
from headrace.algebra.properties.order import equal_means_same
from headrace.algebra.relations import Aggregate, AggregateCall, Relation
from headrace.algebra.scalar import Scalar, as_column
from headrace.algebra.tree import walk
from headrace.algebra.types import decimal_of
from headrace.sql.reader.functions.aggregate_functions import CHOOSING_BY, JOINING
from headrace.sql.reader.functions.ties import FindKeys, TypesOf
from headrace.sql.reader.refusals import Refusal, not_deterministic
from headrace.sql.reader.syntax.tokens import words

_ANY = words("any_value first first_value last last_value")
_TRIES = words("try_avg try_sum")


def unsettled(tree: Relation, types_of: TypesOf, keys: FindKeys) -> tuple[Refusal, ...]:
    """Return the aggregates of a query that may give other results for the same rows.

    Args:
        tree: The query, reading no column that it does not use.
        types_of: Spark's column types of a relation.
        keys: Finds keys of a relation.
    """
    nodes = [node for node in walk(tree) if isinstance(node, Aggregate)]
    return tuple(refusal for node in nodes for refusal in _refusals(node, types_of, keys))


def _refusals(node: Aggregate, types_of: TypesOf, keys: FindKeys) -> Iterator[Refusal]:
    choosing = [call for call in node.calls if call.function in CHOOSING_BY | _ANY | JOINING | _TRIES]
    if not choosing:
        return
    types = {column.name: column.type for column in types_of(node.input)}
    for call in choosing:
        if call.function in _TRIES:
            if not _suffices(types.get(_name(call.argument) or "", "")):
                yield _refusal(call, "may run out of its type in one order of its rows and not in another")
        elif not _settled(node, call, types, keys):
            why = "puts rows in an order that its ORDER BY does not settle" if call.within else _WHY
            yield _refusal(call, why)


_WHY = "may choose one row or another, and they are not known to agree"


def _refusal(call: AggregateCall, why: str) -> Refusal:
    return not_deterministic(f"{call.function}()", call.place, why)


def _suffices(type_: str) -> bool:
    """Return whether sums of a type cannot overflow Spark's type for them.

    It would take ten billion rows.
    """
    shape = decimal_of(type_)
    return type_ in ("tinyint", "smallint", "int", "float", "double") or (shape is not None and shape[0] <= 28)


def _settled(node: Aggregate, call: AggregateCall, types: dict[str, str], keys: FindKeys) -> bool:
    """Return whether rows of a group that tie for the call agree in its result."""
    pins = frozenset(node.keys).union(*(_pinned(each) for each in _told_apart(call)))
    # structs are equal where their fields are: of these, those that are no floats are the same then
    pins = pins.union(*(fields for struct, fields in struct_fields(node.input) if struct <= pins))
    if any(key <= pins for key in keys(node.input)):
        return True
    exact = frozenset(name for name, type_ in types.items() if equal_means_same(type_))
    wanted = call.argument.columns if call.argument is not None else frozenset[str]()
    return wanted <= closure(pins & exact, dependencies(node.input))


def _told_apart(call: AggregateCall) -> tuple[Scalar, ...]:
    if call.function in CHOOSING_BY:
        return call.more
    return tuple(key.scalar for key in call.within)


def _pinned(scalar: Scalar) -> Names:
    name = as_column(scalar)
    return frozenset() if name is None else frozenset({name})


def _name(scalar: Scalar | None) -> str | None:
    return None if scalar is None else as_column(scalar)
