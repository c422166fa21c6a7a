"""Semi-joins and anti-joins: EXISTS, IN and their negations.

Let L ⋉ R stand for either. Whether a row of L stays depends on its partners only, so a change of R concerns no rows
but those with a partner in ΔR, A = L ⋉ ΔR, or any larger part of L:
Δ(L ⋉ R) = ΔL ⋉ R′ + A ⋉ R′ − A ⋉ R, with L as it was in A. Where the condition has equalities of columns, A is found by
their keys, and R is read for the keys of ΔL and A only; any other condition is tried on every pair.
Where a row of L is known to have one partner at most, L ⋉ R = π_L(L ⋈ R) and L ▷ R = L − π_L(L ⋈ R), so that
Δ(L ▷ R) = ΔL − π_L(Δ(L ⋈ R)): nothing is judged before and after.
Source: Griffin, Kumar, Algebraic Change Propagation for Semijoin and Outerjoin Queries, SIGMOD Record 1998.
"""

from __future__ import annotations

from headrace.algebra.moving import is_moving
from headrace.algebra.properties.equalities import equalities
from headrace.algebra.relations import Aggregate, Empty, Existence, Filter, Join, Project, Relation, Scan, Stored
from headrace.algebra.scalar import Scalar, all_of, column, compose, conjuncts
from headrace.algebra.tree import identity
from headrace.ivm import moving_filters
from headrace.ivm.change import Change, empty, union_all, weigh
from headrace.ivm.consolidate import consolidate
from headrace.ivm.restriction import restricted
from headrace.names import WEIGHT


def delta(node: Existence, change: Change) -> Relation:
    """Return the changed left rows, and the change of rows whose partners changed."""
    if is_moving(node):
        return moving_filters.delta(node, change)
    left, right = change.of(node.left), change.of(node.right)
    if isinstance(right, Empty):
        return empty(node) if isinstance(left, Empty) else judged(node, left, change.after(node.right), change)
    if node.unique:
        return _with_one_partner(node, left, change)
    concerned = affected(node, right, change)
    now = union_all(left, weigh(concerned, 1))
    return union_all(
        judged(node, now, change.after(node.right), change),
        judged(node, weigh(concerned, -1), change.before(node.right), change),
    )


def _with_one_partner(node: Existence, left: Relation, change: Change) -> Relation:
    pairs = Join(node.left, node.right, node.condition)
    partnered = change.of(Project(pairs, identity(node.left.columns)))
    if not node.anti or isinstance(partnered, Empty):
        return left if node.anti else partnered
    minus = compose("-{w}", w=column(WEIGHT))
    return union_all(left, Project(partnered, (*identity(node.left.columns), (WEIGHT, minus))))


def affected(node: Existence, right: Relation, change: Change) -> Stored:
    """Return the left side's former rows that may have met changed right rows.

    Args:
        node: The semi-join or anti-join.
        right: The change of its right side.
        change: Gets the steps that compute them.
    """
    before = change.before(node.left)
    on = equalities(node.condition, node.left.columns, node.right.columns)
    if on:
        names = tuple(dict.fromkeys(b for _, b, _ in on))
        met = [compose("{k} IS NOT NULL", k=column(b)) for _, b, nulls in on if not nulls]
        there = all_of(dict.fromkeys(met))
        changed = Filter(right, there) if there else right
        # of partners that are told by their keys alone, as many may come as go; unless something else tells keys apart
        # that are equal, as texts of 0.0 and -0.0 do
        alike = set(names) <= change.exact or len(on) == len(conjuncts(node.condition))
        by_key = alike and set(node.right.columns) == set(names)
        keys = change.keep(
            "met", Project(consolidate(changed), identity(names)) if by_key else Aggregate(changed, names)
        )
        return change.keep("affected", restricted(before, keys, tuple((a, b) for a, b, _ in on)))
    read = tuple(c for c in node.right.columns if c in node.condition.columns)
    return change.keep("affected", Existence(before, Project(right, identity(read)), node.condition))


def judged(node: Existence, rows: Relation, right: Relation, change: Change) -> Relation:
    """Return those of some left rows that belong to the result, by the given right side.

    It is read for their keys only.
    """
    rows, right = with_partners(node.condition, rows, right, change)
    return Existence(rows, right, node.condition, node.anti)


def with_partners(condition: Scalar, rows: Relation, right: Relation, change: Change) -> tuple[Relation, Relation]:
    """Restrict the right side of a join to possible partners of some left rows."""
    on = equalities(condition, rows.columns, right.columns)
    if not on:
        return rows, right
    if not _cheap(rows):
        rows = change.keep("rows", rows)
    names = tuple(dict.fromkeys(a for a, _, _ in on))
    keys = Aggregate(Project(rows, identity(names)), names)
    return rows, restricted(right, keys, tuple((b, a) for a, b, _ in on))


def _cheap(rows: Relation) -> bool:
    """Return whether rows may as well be read twice."""
    if isinstance(rows, (Project, Filter)):
        return _cheap(rows.input)
    return isinstance(rows, (Scan, Stored))
