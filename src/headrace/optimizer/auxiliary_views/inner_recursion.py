"""Keeps the rows of a recursion below other operators in the companion.

Wherever the rules ask for the recursion as it was, they are given the companion R; as it is, R ⊎ ΔR: the rows of R that
did not change, and the others as often as they are there now. ΔR is found as if the recursion stood at the root. What
stands above it is followed without a companion of its own, which a table has one of: groups by their rows, before and
after. Where these would have to be summed again to the last digit, the companion remembers groups instead, and the
recursion is computed anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from headrace.algebra.relations import Empty, Project, Recursive, Relation, Repeat, SemiJoin, Stored, Union
from headrace.algebra.scalar import Scalar, column
from headrace.algebra.tree import identity, sources, transform, walk
from headrace.ivm.change import Change, empty, union_all, weigh
from headrace.ivm.consolidate import consolidate
from headrace.ivm.program import COMPANION, DeltaProgram, FullProgram, TableChange
from headrace.ivm.query_root import root_of
from headrace.ivm.rules import partitions, recursive, top_k
from headrace.names import WEIGHT
from headrace.optimizer.auxiliary_views.kept import AuxiliaryViews
from headrace.optimizer.auxiliary_views.top_groups import grouped


def keep_recursion(views: AuxiliaryViews, tree: Relation) -> AuxiliaryViews:
    """Keep the rows of a recursion below other operators.

    Args:
        views: What else the companion keeps.
        tree: The query.
    """
    return replace(views, recursion=recursion_below(tree))


def recursion_below(tree: Relation) -> Recursive | None:
    """Return the recursion whose rows the companion keeps.

    None where there is none, several, or none that would help.
    """
    found = {node for node in walk(tree) if isinstance(node, Recursive)}
    if len(found) != 1 or recursive.recursion_at_root(tree) is not None:
        return None
    (only,) = found
    root = root_of(tree) or grouped(tree)
    by_groups = root is not None and root.plan.recomputed
    return only if only.settled and sources(only) and not by_groups else None


def full(tree: Relation, below: Recursive) -> FullProgram:
    """Compute the recursion from the sources and the state from the recursion.

    Args:
        tree: The query.
        below: The recursion in it, which the companion stores.
    """
    return FullProgram(_companion(below, below), _with(tree, {below: _known(below)}))


def follow(tree: Relation, below: Recursive, change: Change) -> DeltaProgram | None:
    """Return the program for a change of the recursion's sources, or of others in the query.

    Args:
        tree: The query.
        below: The recursion in it, which the companion stores.
        change: The changed sources; gets the steps of the program.

    Returns:
        The program; None when the result cannot change.
    """
    was = _known(below)
    moved = recursive.moved(below, was, change)
    kept = None if isinstance(moved, Empty) else change.keep("moved", consolidate(moved))
    change.found[below] = kept or empty(below)
    now = was if kept is None else _now(was, kept, change)
    found = partitions.delta(tree, change) or top_k.at_root(tree, change) or consolidate(change.of(tree))
    if isinstance(found, Empty):
        return None
    state = TableChange(change.keep("change", found), None)
    # where it did not change, it is the same before and after
    places = {change.before(below): was, below: now}
    steps = tuple(step.rewritten(lambda each: _with(each, places)) for step in change.steps)
    return DeltaProgram(steps, state, None if kept is None else TableChange(_companion(kept, below), None))


def _known(below: Recursive) -> Project:
    """Return the recursion as it was, from the companion."""
    names = tuple(name for name, _ in _stored(below))
    pairs = zip(below.columns, names, strict=True)
    return Project(Stored(COMPANION, names), tuple((name, column(stored)) for name, stored in pairs))


def _now(was: Relation, moved: Stored, change: Change) -> Relation:
    """Return the recursion as it is."""
    same = tuple((name, name) for name in was.columns)
    copies = consolidate(union_all(weigh(SemiJoin(was, moved, same), 1), moved))
    changed = change.keep("now", Project(Repeat(copies), identity(was.columns)))
    return Union((SemiJoin(was, moved, same, anti=True), changed))


def _stored(below: Recursive) -> tuple[tuple[str, Scalar], ...]:
    """Return its columns under names that any table format takes."""
    return tuple((f"column_{i}", column(name)) for i, name in enumerate(below.columns, 1))


def _companion(rows: Relation, below: Recursive) -> Project:
    weight = ((WEIGHT, column(WEIGHT)),) if rows.weighted else ()
    return Project(rows, (*_stored(below), *weight))


def _with(relation: Relation, places: Mapping[Relation, Relation]) -> Relation:
    """Return a relation that reads something else instead of some of its parts."""
    kinds = {type(part) for part in places}
    return transform(relation, lambda node: places.get(node, node) if type(node) in kinds else node)
