"""Trees of inner joins as inputs and conditions; conditions as equalities of columns."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from itertools import combinations

from headrace.algebra.relations import Aggregate, Filter, Join, Project, Relation
from headrace.algebra.scalar import Scalar, column, compose, conjuncts


def flatten(relation: Relation) -> tuple[tuple[Relation, ...], tuple[Scalar, ...]]:
    """Return the inputs of nested inner joins, left to right, and all their conjuncts."""
    if not isinstance(relation, Join):
        return (relation,), ()
    left, left_conditions = flatten(relation.left)
    right, right_conditions = flatten(relation.right)
    own = conjuncts(relation.condition) if relation.condition is not None else ()
    return left + right, left_conditions + right_conditions + own


def connected(start: Relation, others: Sequence[Relation], conditions: Sequence[Scalar]) -> tuple[Relation, ...]:
    """Order inputs so that each, where possible, shares a condition with earlier ones.

    Args:
        start: The first input.
        others: The others; their order decides where there is a choice.
        conditions: Conditions over any of the inputs.
    """
    order, waiting = [start], list(others)
    there = set(start.columns)
    while waiting:
        chosen = next((i for i, each in enumerate(waiting) if _share(there, each, conditions)), 0)
        following = waiting.pop(chosen)
        order.append(following)
        there |= set(following.columns)
    return tuple(order)


def _share(there: set[str], relation: Relation, conditions: Sequence[Scalar]) -> bool:
    own = set(relation.columns)
    return any(c.columns & own and c.columns & there and c.columns <= own | there for c in conditions)


def ready(conditions: Sequence[Scalar], without: set[str]) -> tuple[Scalar, ...]:
    """Return the conditions that cannot be decided from some columns alone."""
    return tuple(c for c in conditions if not c.columns <= without)


def at_most_one_row(relation: Relation) -> bool:
    """Return whether an input is a single value: an aggregate of all rows, maybe filtered."""
    while isinstance(relation, (Project, Filter)):
        relation = relation.input
    return isinstance(relation, Aggregate) and not relation.keys


_NAME = r"(`(?:``|[^`])*`)"
_EQUALITY = re.compile(rf"\s*{_NAME}\s*(=|==|<=>)\s*{_NAME}\s*")


def equalities(condition: Scalar, left: Collection[str], right: Collection[str]) -> tuple[tuple[str, str, bool], ...]:
    """Return the conjuncts that say that a column of one side equals a column of the other.

    Args:
        condition: Over the columns of both sides.
        left: Columns of one side.
        right: Columns of the other.

    Returns:
        Left column, right column, and whether NULL equals NULL.
    """
    found = []
    for one, other, null_safe in _compared(condition):
        a, b = (one, other) if one in left else (other, one)
        if a in left and b in right:
            found.append((a, b, null_safe))
    return tuple(found)


def equal_alike(
    condition: Scalar | None, left: Collection[str], right: Collection[str], types: Mapping[str, str]
) -> tuple[tuple[str, str, bool], ...]:
    """Return the equalities of columns of one type.

    Where Spark casts one of two, several values may equal the same.

    Args:
        condition: As for `equalities`; None says nothing.
        left: Columns of one side.
        right: Columns of the other.
        types: Types of columns by name, as far as known.
    """
    found = equalities(condition, left, right) if condition is not None else ()
    return tuple(each for each in found if each[0] in types and types[each[0]] == types.get(each[1]))


@lru_cache(maxsize=4096)
def _compared(condition: Scalar) -> tuple[tuple[str, str, bool], ...]:
    """Return columns that conjuncts of a condition say are equal.

    Kept, as of a large join it is asked very often.
    """
    matches = [match for part in conjuncts(condition) if (match := _EQUALITY.fullmatch(part.sql)) is not None]
    names = [tuple(match.group(i)[1:-1].replace("``", "`") for i in (1, 3)) for match in matches]
    return tuple((a, b, match.group(2) == "<=>") for (a, b), match in zip(names, matches, strict=True))


def implied(conditions: Sequence[Scalar], inputs: Sequence[Relation], types: Mapping[str, str]) -> tuple[Scalar, ...]:
    """Return equalities between inputs that follow from others: from a = b and b = c, a = c.

    Args:
        conditions: What holds.
        inputs: The inputs whose columns it is about.
        types: Types of columns, as far as known; equality is transitive within one type only.
    """
    home = {name: i for i, each in enumerate(inputs) for name in each.columns}
    classes: list[set[str]] = []
    written = set[frozenset[str]]()
    for pair in filter(None, map(_equal_columns, conditions)):
        written.add(frozenset(pair))
        if len({types.get(name, name) for name in pair}) == 1:
            met = [each for each in classes if each & set(pair)]
            classes = [each for each in classes if each not in met] + [set(pair).union(*met)]
    return tuple(
        compose("{a} = {b}", a=column(a), b=column(b))
        for each in classes
        for a, b in combinations(sorted(each), 2)
        if home.get(a) != home.get(b) and frozenset((a, b)) not in written
    )


def _equal_columns(condition: Scalar) -> tuple[str, str] | None:
    match = _EQUALITY.fullmatch(condition.sql)
    if match is None or match.group(2) == "<=>":
        return None
    a, b = (match.group(i)[1:-1].replace("``", "`") for i in (1, 3))
    return (a, b) if {a, b} <= condition.columns and a != b else None
