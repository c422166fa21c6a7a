"""Compute common subexpressions of a program once, as steps of their own.

A relation that a query reads twice (a common table expression, the sides of an outer join, a value compared and shown)
has its change, and a value has its old and its new row, in several places of a program. Both are small, so they are
kept. What only a step that may be skipped reads is left there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace

from headrace.algebra.relations import Aggregate, Relation, Stored
from headrace.algebra.tree import over, walk
from headrace.ivm.change import SHARED, cheap
from headrace.ivm.program import DeltaProgram, Step, free_name


def share(program: DeltaProgram, changes: Set[Relation]) -> DeltaProgram:
    """Make a step of every part needed in several places.

    The program may have steps afterwards that none reads.

    Args:
        program: What rules gave.
        changes: Changes of relations that rules asked for several times.
    """
    steps = list(program.steps)
    while (found := _repeated(steps, changes)) is not None:
        step = next((each for each in steps if each.relation == found and each.only_if is None), None)
        step = step or Step(free_name(SHARED, steps), found)
        # where it is first read, which may be before it was kept
        first = next(i for i, each in enumerate(steps) if _holds(each.relation, found))
        kept = Stored(step.name, found.columns)
        others = [replace(each, relation=_replaced(each.relation, found, kept)) for each in steps if each is not step]
        steps = [*others[:first], step, *others[first:]]
    return replace(program, steps=tuple(steps))


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
    read = _read(program.state.change) | (_read(program.companion.change) if program.companion else set())
    found: list[Step] = []
    for step in reversed(steps):
        if step.name in read:
            found.append(step)
            read = read.union(*map(_read, step.relations))
    return tuple(reversed(found))


def _read(relation: Relation) -> set[str]:
    return {node.name for node in walk(relation) if isinstance(node, Stored)}


def _repeated(steps: list[Step], changes: Set[Relation]) -> Relation | None:
    """Return the largest relation worth a step that several unconditional places need."""
    # a tree's hash looks at all of it, so only nodes that can be among the changes are looked up
    shapes = {(type(each), _size(each)) for each in changes}
    counts: Counter[Relation] = Counter()
    sizes: dict[Relation, int] = {}
    for step in steps:
        for node, size in _sized(step.relation) if step.only_if is None else ():
            alike = (type(node), size) in shapes
            if (alike or isinstance(node, Aggregate)) and _worth_keeping(node, changes if alike else frozenset()):
                counts[node] += 1
                sizes[node] = size
    several = [node for node, times in counts.items() if times > 1]
    return max(several, key=sizes.__getitem__, default=None)


def _sized(relation: Relation) -> Iterator[tuple[Relation, int]]:
    """Return every node with the number of nodes in its tree, a node before its inputs."""
    found: list[tuple[Relation, int]] = []

    def measure(node: Relation) -> int:
        place = len(found)
        found.append((node, 0))
        size = 1 + sum(measure(each) for each in node.inputs)
        found[place] = (node, size)
        return size

    measure(relation)
    return iter(found)


def _size(relation: Relation) -> int:
    return sum(1 for _ in walk(relation))


def _worth_keeping(node: Relation, changes: Set[Relation]) -> bool:
    if cheap(node):
        return False
    return (isinstance(node, Aggregate) and not node.keys) or node in changes


def _holds(relation: Relation, part: Relation) -> bool:
    return any(node == part for node in walk(relation))


def _replaced(relation: Relation, part: Relation, kept: Stored) -> Relation:
    if relation == part:
        return kept
    return over(relation, *(_replaced(each, part, kept) for each in relation.inputs))
