"""WITH RECURSIVE: computed again, or followed on from the rows that came.

A recursion ρ over a start A and a step S gives T = A ⊎ S(T), copies and all: a row as often as there are ways to it.
In general Δρ = ρ′ − ρ, both computed. At the root ρ is the stream table. There, as long as sources only gain rows and S
is monotone in them, ΔT = ΔA ⊎ ΔS(T) ⊎ S′(ΔT), which is a recursion again: it starts from what the new rows give at
once, and goes on from there (semi-naive evaluation). S takes each row by itself, so nothing is counted twice.
Source: Bancilhon, Ramakrishnan, An Amateur's Introduction to Recursive Query Processing Strategies, SIGMOD 1986.
"""

from __future__ import annotations

from headrace.algebra.relations import Empty, Project, Recursive, Relation, Repeat, Round, Stored, Union
from headrace.algebra.scalar import as_column, column
from headrace.algebra.tree import identity, transform
from headrace.delta.change import Change, empty, weigh
from headrace.delta.consolidate import consolidate, difference
from headrace.delta.monotone import only_gains
from headrace.delta.program import STATE


def delta(recursive: Recursive, change: Change) -> Relation:
    """The rows after, minus those before."""
    # each takes many jobs, and a plan around it may run it more than once
    was, now = change.keep("rounds", change.before(recursive)), change.keep("rounds", change.after(recursive))
    return difference(was, now)


def recursion_at_root(tree: Relation) -> Recursive | None:
    """The recursion whose rows are those of the stream table; None where that is not so."""
    recursive = tree.input if isinstance(tree, Project) else tree
    if not isinstance(recursive, Recursive):
        return None
    return recursive if set(recursive.columns) <= _shown(tree).keys() else None


def at_root(tree: Relation, change: Change) -> Relation | None:
    """The change of a query that is nothing but a recursion; None for any other query."""
    recursive = recursion_at_root(tree)
    if recursive is None:
        return None
    state = Stored(STATE, tree.columns)
    if not only_gains(recursive, change):
        return difference(state, change.after(tree))
    came = _came(recursive, state, tree, change)
    if isinstance(came, Empty):
        return empty(tree)
    return consolidate(weigh(came if tree is recursive else tree.with_inputs(came), 1))


def _came(recursive: Recursive, state: Stored, tree: Relation, change: Change) -> Relation:
    """The rows that come, each as often as it comes."""
    shown = _shown(tree)
    known = Project(state, tuple((name, column(shown[name])) for name in recursive.columns))

    def all_rounds(node: Relation) -> Relation:
        return known if isinstance(node, Round) and node.name == recursive.name else node

    once = Union((recursive.start, transform(recursive.again, all_rounds)))
    seeds = consolidate(change.of(once))
    if isinstance(seeds, Empty):
        return seeds
    start = Project(Repeat(change.keep("seeds", seeds)), identity(recursive.columns))
    return Recursive(start, change.after(recursive.again), recursive.name, recursive.levels)


def _shown(tree: Relation) -> dict[str, str]:
    """The output column that shows each column of the recursion."""
    if not isinstance(tree, Project):
        return {name: name for name in tree.columns}
    found = ((as_column(scalar), name) for name, scalar in tree.items)
    return {source: name for source, name in found if source is not None}
