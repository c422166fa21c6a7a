"""Steps that a refresh can do without, once others have turned out to be empty.

A program is derived for whatever a change may do. What it does is seen step by step: where nobody met a changed row,
what follows from those who did has no rows either, and what would be read for them is not needed.
"""

from __future__ import annotations

from collections.abc import Set

from headrace.algebra.relations import Empty, Relation, Stored
from headrace.algebra.tree import transform, walk
from headrace.delta.program import DeltaProgram
from headrace.rewrite.empty import drop_empty


class Needless:
    """What of a program is not needed, as far as is known while it runs.

    Args:
        program: What runs.
    """

    def __init__(self, program: DeltaProgram) -> None:
        self.steps = frozenset[str]()
        self._program = program
        self._empty = set[str]()

    def note_empty(self, step: str) -> None:
        """Take note of a step that was computed, and has no rows."""
        if step not in self.steps:
            self._empty.add(step)
            self.steps = needless(self._program, self._empty)


def needless(program: DeltaProgram, empty: Set[str]) -> frozenset[str]:
    """The steps that have no rows, or whose rows nobody looks at.

    Args:
        program: What runs.
        empty: Names of steps that were computed, and have no rows; they are among those found.
    """
    without, reads = set(empty), dict[str, frozenset[str]]()
    for step in program.steps:
        asked = [_without(each, without) for each in (step.relation, step.only_if) if each is not None]
        if any(isinstance(each, Empty) for each in asked):
            without.add(step.name)
        else:
            spans = [step.numbers[1]] if step.numbers is not None else []
            reads[step.name] = frozenset[str]().union(*map(_read, (*asked, *spans)))
    changes = (each.change for each in (program.state, program.companion) if each is not None)
    needed = set[str]().union(*(_read(_without(each, without)) for each in changes))
    for step in reversed(program.steps):
        if step.name in needed:
            needed |= reads.get(step.name, frozenset())
    return frozenset(step.name for step in program.steps if step.name in without or step.name not in needed)


def _without(relation: Relation, names: Set[str]) -> Relation:
    def rule(node: Relation) -> Relation:
        return Empty(node.columns) if isinstance(node, Stored) and node.name in names else node

    return drop_empty(transform(relation, rule))


def _read(relation: Relation) -> frozenset[str]:
    return frozenset(node.name for node in walk(relation) if isinstance(node, Stored))
