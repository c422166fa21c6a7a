"""Decorrelates subqueries: a relation of their own, with keys that match outer rows.

Where every condition with outer columns is an equality `f(R) = g(L)`, the keys are the values of f. In general let D
be the distinct values of the outer columns that conditions read: R is joined to D under these conditions, the keys are
the columns of D, and each row of L finds its own by them, NULL being a value like any other. What the subquery does
next, groups, partitions, first rows, it does for each key by itself.
Source: Neumann, Kemper, Unnesting Arbitrary Queries, BTW 2015.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

from headrace.algebra.properties.order import equal_means_same
from headrace.algebra.relations import Aggregate, AggregateCall, Join, Project, Relation
from headrace.algebra.scalar import Scalar, all_of, column, equals, substitute
from headrace.algebra.tree import identity
from headrace.algebra.types import decimal_of, is_integer
from headrace.sql.reader.context import Context
from headrace.sql.reader.names.column_names import Names
from headrace.sql.reader.scalars.booleans import split
from headrace.sql.reader.scalars.collations import under_one_collation
from headrace.sql.reader.scalars.lexemes import Lexeme, Lexemes, Role, input_lexeme, scalar
from headrace.sql.reader.spark_types import types_in


@dataclass(frozen=True, slots=True)
class Matched:
    """A subquery's rows and how outer rows find theirs.

    Args:
        inner: The subquery's rows; in general joined to the outer values they are for.
        keys: Expressions over these rows.
        theirs: For each key, the expression over outer rows that it equals.
        nulls: Whether NULL equals NULL.
    """

    inner: Relation
    keys: tuple[Lexemes, ...]
    theirs: tuple[Lexemes, ...]
    nulls: bool

    def equal(self, a: str, b: str) -> Scalar:
        """Return whether a column of outer rows equals a key."""
        return equals(column(a), column(b), null_safe=self.nulls)


def matched(
    context: Context, outer: Relation, inner: Relation, conditions: Sequence[Lexemes], names: Names
) -> Matched | None:
    """Find keys for a subquery's rows.

    Args:
        context: Knows whom to ask for types.
        outer: The outer rows.
        inner: The subquery's rows, with the columns that conditions read; names differ from those of `outer`.
        conditions: The conditions that read outer columns, at least one, all names resolved.
        names: Hands out columns that are free in both.

    Returns:
        None where outer values that are equal may be told apart.
    """
    pairs = [_equality(condition, frozenset(inner.columns)) for condition in conditions]
    told = [pair for pair in pairs if pair is not None]
    if len(told) == len(pairs) and _alike(context, outer, inner, told):
        return Matched(inner, tuple(own for own, _ in told), tuple(theirs for _, theirs in told), False)
    return _by_values(context, outer, inner, conditions, names)


def _by_values(
    context: Context, outer: Relation, inner: Relation, conditions: Sequence[Lexemes], names: Names
) -> Matched | None:
    condition = all_of(scalar(each) for each in conditions)
    assert condition is not None
    read = tuple(name for name in outer.columns if name in condition.columns)
    types = types_in(context, Project(outer, identity(read))) or ()
    if not all(equal_means_same(each.type) for each in types):
        return None
    fresh = {name: names.take(f"for.{name}") for name in read}
    wanted = Project(outer, tuple((new, column(old)) for old, new in fresh.items()))
    values = Aggregate(wanted, wanted.columns)
    over = substitute(condition, {old: column(new) for old, new in fresh.items()})
    like = conditions[0][0]
    keys = tuple((input_lexeme(new, like),) for new in fresh.values())
    return Matched(Join(values, inner, over), keys, tuple((input_lexeme(old, like),) for old in fresh), True)


def _equality(condition: Lexemes, own: Set[str]) -> tuple[Lexemes, Lexemes] | None:
    """Split an equality into expressions over the subquery's and over outer columns."""
    sides = next((parts for word in ("=", "==") if len(parts := split(condition, word)) == 2), None)
    collated = None if sides is None else under_one_collation(*sides)
    if sides is None or collated is None or not _tight(sides):
        return None
    a, b = ({p.parts[0] for p in side if p.role is Role.INPUT} for side in sides)
    if a and b and a <= own and not b & own:
        return collated
    return (collated[1], collated[0]) if a and b and b <= own and not a & own else None


def _alike(context: Context, outer: Relation, inner: Relation, pairs: Sequence[tuple[Lexemes, Lexemes]]) -> bool:
    """Return whether no pair is compared by a cast, as then several groups may equal one row."""
    sides = []
    for relation, at in ((inner, 0), (outer, 1)):
        items = tuple((f"side{number}", scalar(pair[at])) for number, pair in enumerate(pairs))
        sides.append(types_in(context, Project(relation, items)) or ())
    return all(_groups_alike(own.type, theirs.type) for own, theirs in zip(*sides, strict=False))


def _groups_alike(own: str, theirs: str) -> bool:
    """Return whether values of one type that equal a value of the other are equal themselves."""
    if own == theirs or (is_integer(own) and is_integer(theirs)):
        return True
    a, b = decimal_of(own), decimal_of(theirs)
    return a is not None and b is not None and a[1] == b[1]


_LOOSE = (
    "AND",
    "OR",
    "NOT",
    "!",
    "IS",
    "IN",
    "BETWEEN",
    "LIKE",
    "<",
    ">",
    "<=",
    ">=",
    "<>",
    "!=",
    "<=>",
    "|",
    "^",
    "&",
)


def _tight(sides: tuple[Lexemes, ...]) -> bool:
    """Return whether no side holds an operator that binds less than the equality between them."""
    return all(len(split(side, word)) == 1 for side in sides for word in _LOOSE)


_ZERO_OVER_NOTHING = frozenset(["count", "approx_count_distinct", "regr_count"])
_EMPTY_ARRAYS = frozenset(["collect_list", "collect_set", "array_agg"])
_COUNTING = frozenset(["size", "cardinality"])
_CHOOSING = frozenset(["array_max", "array_min"])


def over_nothing(aggregate: Aggregate) -> dict[str, Lexemes]:
    """Return what columns that are not NULL over no rows are there: zero, or an empty array."""
    found = ((call.name, _over_nothing(call)) for call in aggregate.calls)
    return {name: value for name, value in found if value}


def _over_nothing(call: AggregateCall) -> Lexemes:
    around = call.inside.partition("(")[0].lower()
    if call.function in _ZERO_OVER_NOTHING or around in _COUNTING:
        return (_word(Role.LITERAL, "0"),)
    if call.function not in _EMPTY_ARRAYS or around in _CHOOSING:
        return ()
    name = Lexeme(Role.CALL, "array", 0, False, ("array",))
    return (name, _word(Role.OPERATOR, "("), _word(Role.OPERATOR, ")"))


def _word(role: Role, text: str) -> Lexeme:
    return Lexeme(role, text, 0, False)


def beside_nothing(lexemes: Lexemes, names: Mapping[str, str], nothing: Mapping[str, Lexemes]) -> Lexemes:
    """Return an expression over an aggregate as it is beside a row that may have no group.

    Args:
        lexemes: The expression.
        names: What the aggregate's columns are called there.
        nothing: What those are over no rows that are not NULL then.
    """
    return tuple(p for each in lexemes for p in _beside_nothing(each, names, nothing))


def _beside_nothing(lexeme: Lexeme, names: Mapping[str, str], nothing: Mapping[str, Lexemes]) -> Lexemes:
    if lexeme.role is not Role.INPUT:
        return (lexeme,)
    own = input_lexeme(names[lexeme.parts[0]], lexeme)
    if lexeme.parts[0] not in nothing:
        return (own,)
    at = lexeme.at
    call = Lexeme(Role.CALL, "COALESCE", at, lexeme.spaced, ("coalesce",))
    opening, closing = Lexeme(Role.OPERATOR, "(", at, False), Lexeme(Role.OPERATOR, ")", at, False)
    first, *rest = nothing[lexeme.parts[0]]
    value = (replace(first, at=at, spaced=True), *(replace(each, at=at) for each in rest))
    return (call, opening, own, Lexeme(Role.OPERATOR, ",", at, False), *value, closing)
