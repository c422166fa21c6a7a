"""Decides which sides of joins Spark is asked to send to every task: those of small changes.

Spark knows little of how many rows a change has, and would shuffle a whole source to meet it. Asked to broadcast the
change, it only reads the source. Rules say of a join which side is expected to be small; here that is held against
estimates. A change is not sent to meet a small table: Spark sends that by itself, and all such tables of a chain of
joins at once, where of changes each has to wait for the one before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from headrace.algebra.relations import Join, LookupJoin, Relation, SemiJoin
from headrace.algebra.tree import transform
from headrace.ivm.program import Step
from headrace.optimizer.cardinality import Work, sends_small_side
from headrace.physical.facts import Facts, SourceFacts

FEW_CHANGED_ROWS = 500_000
"""Changed rows up to which what follows from a change is small without an estimate."""

OF_BROADCASTS = frozenset({"BROADCAST_TOO_LARGE", "RESULT_TOO_LARGE"})
"""Errors of what does not fit on its way to all of Spark's tasks, which leads through the driver."""


def changes_are_few(sources: Iterable[SourceFacts]) -> bool:
    """Return whether changes are known to be small."""
    return all(s.change_rows is not None and s.change_rows <= FEW_CHANGED_ROWS for s in sources if s.change)


def changes_are_counted(sources: Iterable[SourceFacts]) -> bool:
    """Return whether it is known how large changes are, so that Spark may be asked to broadcast."""
    return all(s.change_rows is not None for s in sources if s.change)


def at_most(facts: Facts) -> Facts:
    """Return facts by which every row of a change did change.

    Most rows of rewritten files are expected to be the same, but what is sent to every task must fit where none is.
    """
    return replace(facts, sources=tuple(replace(source, carried=False) for source in facts.sources))


def only_small_sides(step: Step, work: Work, known: dict[int, tuple[Relation, Relation]] | None = None) -> Step:
    """Return a step that takes only those sides of joins for small which are by estimate.

    Args:
        step: The step.
        work: Tells cardinalities.
        known: What has become of parts of other steps, as of `transform`.
    """
    known = {} if known is None else known

    def decide(node: Relation) -> Relation:
        if sends_small_side(node, work.add):
            return node
        match node:
            case Join(small_left=True):
                return replace(node, small_left=False)
            case SemiJoin(small_right=True) | LookupJoin(small_right=True):
                return replace(node, small_right=False)
        return node

    def rewrite(relation: Relation) -> Relation:
        return transform(relation, decide, known)

    step, covers = step.rewritten(rewrite), step.coverage
    if covers is None:
        return step
    semijoin, added, instead = map(rewrite, (covers.semijoin, covers.added, covers.instead))
    return replace(step, coverage=replace(covers, semijoin=semijoin, added=added, instead=instead))
