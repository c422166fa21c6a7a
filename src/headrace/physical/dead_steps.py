"""Steps that a refresh can do without, once others have turned out to be empty.

A program is derived for whatever a change may do. What it does is seen step by step: where nobody met a changed row,
what follows from those who did has no rows either, and what would be read for them is not needed.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from headrace.algebra.relations import Empty, Relation, Stored
from headrace.algebra.tree import transform
from headrace.ivm.program import DeltaProgram, Step
from headrace.optimizer.common_subexpressions.shared_steps import needed
from headrace.optimizer.empty_relations import drop_empty


class DeadSteps:
    """Steps of a program that turn out not to be needed while it runs.

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
            self.steps = dead_steps(self._program, self._empty)


def dead_steps(program: DeltaProgram, empty: Set[str]) -> frozenset[str]:
    """Return the steps that are empty, or whose rows no later step reads.

    Args:
        program: What runs.
        empty: Names of steps that were computed, and have no rows; they are among those found.
    """
    without, live = set(empty), list[Step]()
    for step in program.steps:
        relation = _without(step.relation, without)
        only_if = None if step.only_if is None else _without(step.only_if, without)
        if isinstance(relation, Empty) or isinstance(only_if, Empty):
            without.add(step.name)
        else:
            live.append(replace(step, relation=relation, only_if=only_if))

    def kept(relation: Relation) -> Relation:
        return _without(relation, without)

    state = program.state.rewritten(kept)
    companion = None if program.companion is None else program.companion.rewritten(kept)
    left = {step.name for step in needed(live, replace(program, state=state, companion=companion))}
    return frozenset(step.name for step in program.steps if step.name not in left)


def _without(relation: Relation, names: Set[str]) -> Relation:
    def rule(node: Relation) -> Relation:
        return Empty(node.columns) if isinstance(node, Stored) and node.name in names else node

    return drop_empty(transform(relation, rule))
