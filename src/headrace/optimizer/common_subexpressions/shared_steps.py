"""Compute common subexpressions of a program once, as steps of their own.

A relation that a query reads twice (a common table expression, the sides of an outer join, a value compared and shown)
has its change, and a value has its old and its new row, in several places of a program. Both are small, so they are
kept. What only a step that may be skipped reads is left there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from headrace.algebra.relations import Aggregate, Relation, Stored
from headrace.algebra.tree import inputs_first, nodes, size, transform
from headrace.ivm.change import SHARED, cheap
from headrace.ivm.program import DeltaProgram, Step, free_name

Parts = dict[Relation, int]
"""Parts of a relation that are worth a step, a node before its inputs, and how often."""


def share(program: DeltaProgram, changes: Set[Relation]) -> DeltaProgram:
    """Make a step of every part needed in several places.

    The program may have steps afterwards that none reads.

    Args:
        program: What rules gave.
        changes: Changes of relations that rules asked for several times.
    """
    return replace(program, steps=_Sharing(program.steps, changes).done())


def drop_unread(program: DeltaProgram) -> DeltaProgram:
    """Drop steps that neither a table change nor a step that stays reads."""
    live = needed(program.steps, program)
    return program if len(live) == len(program.steps) else replace(program, steps=live)


def needed(steps: Sequence[Step], program: DeltaProgram) -> tuple[Step, ...]:
    """Return the steps that somebody reads.

    Args:
        steps: In the order in which they run.
        program: What reads them in the end.
    """
    read = set[str]().union(*(_read(relation) for table in program.tables for relation in table.relations))
    found: list[Step] = []
    for step in reversed(steps):
        if step.name in read:
            found.append(step)
            read = read.union(*map(_read, step.relations))
    return tuple(reversed(found))


def _read(relation: Relation) -> set[str]:
    return {node.name for node in nodes(relation) if isinstance(node, Stored)}


class _Sharing:
    """Steps, of which the largest part that several need becomes one, then the next largest.

    A step is looked through once, and again when a part of it has been replaced.

    Args:
        steps: What rules gave.
        changes: Changes of relations that rules asked for several times.
    """

    def __init__(self, steps: Sequence[Step], changes: Set[Relation]) -> None:
        self._changes = changes
        # a tree's hash looks at all of it, so only nodes that can be among the changes are looked up
        self._shapes = {(type(each), size(each)) for each in changes}
        self._steps = list(steps)
        self._parts = [self._of(each.relation) for each in steps]
        self._needed: Counter[Relation] = Counter()
        for step, parts in zip(self._steps, self._parts, strict=True):
            self._count(step, parts, 1)

    def done(self) -> tuple[Step, ...]:
        """Return the steps, and those of what they need several times."""
        while (found := self._largest()) is not None:
            self._share(found)
        return tuple(self._steps)

    def _share(self, found: Relation) -> None:
        step = next((each for each in self._steps if each.relation == found and each.only_if is None), None)
        new = step is None
        step = step or Step(free_name(SHARED, self._steps), found)
        if new:
            self._count(step, self._of(found), 1)
        # where it is first read, which may be before it was kept
        first = next(i for i, parts in enumerate(self._parts) if found in parts)
        others = [(each, parts) for each, parts in zip(self._steps, self._parts, strict=True) if each is not step]
        replaced = self._replaced(others, found, Stored(step.name, found.columns))
        replaced.insert(first, (step, self._of(found)))
        self._steps, self._parts = [each for each, _ in replaced], [parts for _, parts in replaced]

    def _replaced(self, steps: list[tuple[Step, Parts]], found: Relation, kept: Stored) -> list[tuple[Step, Parts]]:
        """Return the steps with a leaf in the place of a part."""
        known: dict[int, tuple[Relation, Relation]] = {}

        def instead(node: Relation) -> Relation:
            return kept if size(node) == size(found) and node == found else node

        result: list[tuple[Step, Parts]] = []
        for step, parts in steps:
            if found in parts:
                self._count(step, parts, -1)
                step = replace(step, relation=transform(step.relation, instead, known))
                parts = self._of(step.relation)
                self._count(step, parts, 1)
            result.append((step, parts))
        return result

    def _count(self, step: Step, parts: Parts, sign: int) -> None:
        for node, times in parts.items() if step.only_if is None else ():
            self._needed[node] += sign * times

    def _largest(self) -> Relation | None:
        """Return the largest relation worth a step that several places need.

        The first of equally large ones; steps that may be skipped do not count.
        """
        several = {node: size(node) for node, times in self._needed.items() if times > 1}
        most = max(several.values(), default=None)
        if most is None:
            return None
        equal = {node for node, nodes_in in several.items() if nodes_in == most}
        steps = zip(self._steps, self._parts, strict=True)
        places = (node for step, parts in steps if step.only_if is None for node in parts)
        return next(node for node in places if node in equal)

    def _of(self, relation: Relation) -> Parts:
        """Return what a relation has in it that is worth a step, and how often."""
        worth = [node for node in nodes(relation) if self._worth_a_step(node)]
        found: Parts = {}
        times = _times(relation) if worth else {}
        for node in worth:
            found[node] = found.get(node, 0) + times[id(node)]
        return found

    def _worth_a_step(self, node: Relation) -> bool:
        if (type(node), size(node)) in self._shapes:
            return _worth_keeping(node, self._changes)
        return isinstance(node, Aggregate) and _worth_keeping(node, frozenset())


def _times(relation: Relation) -> Mapping[int, int]:
    """Return by id how often each object of a tree is there."""
    order = inputs_first(relation)
    times = {id(node): 0 for node in order} | {id(relation): 1}
    for node in reversed(order):
        for each in node.inputs:
            times[id(each)] += times[id(node)]
    return times


def _worth_keeping(node: Relation, changes: Set[Relation]) -> bool:
    if cheap(node):
        return False
    return (isinstance(node, Aggregate) and not node.keys) or node in changes
