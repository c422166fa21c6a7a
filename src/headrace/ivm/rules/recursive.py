"""WITH RECURSIVE: semi-naive for rows that came, delete and rederive for rows that went.

A recursion ρ over a start A and a step S gives T = A ⊎ S(T), copies and all: a row as often as there are ways to it.
As long as sources only gain rows and S is monotone in them, ΔT = ΔA ⊎ ΔS(T) ⊎ S′(ΔT), which is a recursion again: it
starts from what the new rows give at once, and goes on from there (semi-naive evaluation). S takes each row by itself,
so nothing is counted twice. Else rows are taken back and found again; see `rederived`. At the root T is the stream
table. Below another operator T has to be computed, as it was, and Δρ = ρ′ − ρ where rows may have gone.
Source: Bancilhon, Ramakrishnan, An Amateur's Introduction to Recursive Query Processing Strategies, SIGMOD 1986.
"""

from __future__ import annotations

from headrace.algebra.relations import Empty, Project, Recursive, Relation, Repeat, Round, Stored, Union
from headrace.algebra.scalar import as_column, column
from headrace.algebra.tree import identity, transform
from headrace.ivm.append_only import only_inserts
from headrace.ivm.change import Change, empty, weigh
from headrace.ivm.consolidate import consolidate, difference, difference_below
from headrace.ivm.program import STATE
from headrace.ivm.recursion.rederive import rederived
from headrace.names import WEIGHT


def delta(recursive: Recursive, change: Change) -> Relation:
    """Return the rows after, minus those before."""
    # each takes many jobs, and a plan around it may run it more than once
    was = change.keep("rounds", change.before(recursive))
    if recursive.settled and only_inserts(recursive, change):
        came = _came(recursive, was, change)
        return empty(recursive) if isinstance(came, Empty) else weigh(change.keep("came", came), 1)
    return difference_below(was, change.keep("rounds", change.after(recursive)), change.exact, change.types)


def recursion_at_root(tree: Relation) -> Recursive | None:
    """Return the recursion whose rows are those of the stream table; None where that is not so."""
    recursive = tree.input if isinstance(tree, Project) else tree
    if not isinstance(recursive, Recursive):
        return None
    return recursive if set(recursive.columns) <= _shown(tree).keys() else None


def at_root(tree: Relation, change: Change) -> Relation | None:
    """Return the change of a query that is nothing but a recursion; None for any other query."""
    recursive = recursion_at_root(tree)
    if recursive is None:
        return None
    state = Stored(STATE, tree.columns)
    if not recursive.settled:
        return difference(state, change.after(tree))
    shown = _shown(tree)
    known = Project(state, tuple((name, column(shown[name])) for name in recursive.columns))
    found = moved(recursive, known, change)
    if isinstance(found, Empty):
        return empty(tree)
    return consolidate(found if tree is recursive else _through(tree, found))


def moved(recursive: Recursive, known: Relation, change: Change) -> Relation:
    """Return the change of a recursion's rows, weighted; not consolidated.

    Args:
        recursive: The recursion, whose equal rows are the same.
        known: Its rows as they were.
        change: Keeps what is computed once.
    """
    if not only_inserts(recursive, change):
        return rederived(recursive, known, change)
    came = _came(recursive, known, change)
    return came if isinstance(came, Empty) else weigh(came, 1)


def _through(tree: Relation, found: Relation) -> Relation:
    assert isinstance(tree, Project)
    return Project(found, (*tree.items, (WEIGHT, column(WEIGHT))))


def _came(recursive: Recursive, known: Relation, change: Change) -> Relation:
    """Return the rows that come, each as often as it comes."""

    def all_rounds(node: Relation) -> Relation:
        return known if isinstance(node, Round) and node.name == recursive.name else node

    once = Union((recursive.start, transform(recursive.again, all_rounds)))
    seeds = consolidate(change.of(once))
    if isinstance(seeds, Empty):
        return seeds
    start = Project(Repeat(change.keep("seeds", seeds)), identity(recursive.columns))
    return Recursive(start, change.after(recursive.again), recursive.name, recursive.levels)


def _shown(tree: Relation) -> dict[str, str]:
    """Return the output column that shows each column of the recursion."""
    if not isinstance(tree, Project):
        return {name: name for name in tree.columns}
    found = ((as_column(scalar), name) for name, scalar in tree.items)
    return {source: name for source, name in found if source is not None}
