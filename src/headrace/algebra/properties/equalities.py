"""Equalities of columns: those that a condition states, and those that follow from others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

from headrace.algebra.relations import Relation
from headrace.algebra.scalar import Scalar, column, conjuncts, disjuncts, equals, equated


def equalities(condition: Scalar, left: Collection[str], right: Collection[str]) -> tuple[tuple[str, str, bool], ...]:
    """Return the conjuncts that say that a column of one side equals a column of the other.

    Args:
        condition: Over the columns of both sides.
        left: Columns of one side.
        right: Columns of the other.

    Returns:
        Left column, right column, and whether NULL equals NULL; where it does not, NULLs on either side are rejected.
    """
    found = []
    for one, other, null_safe in filter(None, map(equated, conjuncts(condition))):
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


def hashable(condition: Scalar) -> bool:
    """Return whether an equality decides a condition on pairs, so that a join can hash."""
    facts = condition.facts
    return (facts.equates and not facts.disjunctive and not facts.negative) or bool(_in_every_branch(condition))


def _in_every_branch(condition: Scalar) -> frozenset[tuple[str, str]]:
    """Return the equalities that all branches of an OR have: Spark takes these out."""
    branches = disjuncts(condition)
    if len(branches) == 1:
        return frozenset((a, b) for a, b, _ in filter(None, map(equated, conjuncts(condition))))
    return frozenset.intersection(*map(_in_every_branch, branches))


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
        equals(column(a), column(b))
        for each in classes
        for a, b in combinations(sorted(each), 2)
        if home.get(a) != home.get(b) and frozenset((a, b)) not in written
    )


def _equal_columns(condition: Scalar) -> tuple[str, str] | None:
    found = equated(condition)
    return None if found is None or found[2] or found[0] == found[1] else found[:2]
