"""Conditional steps: rarely needed, and therefore computed inside the stage that reads them.

Kept, such a step would be planned for nothing where it is not needed, and be a Spark job more where it is.
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.algebra.relations import LookupJoin, Recursive, Relation, Scan, Stored
from headrace.algebra.tree import walk
from headrace.ivm.program import DeltaProgram, Step


def part_of_their_readers(program: DeltaProgram) -> frozenset[str]:
    """Return conditional steps that one other step reads once.

    What is iterated over, or reads such, is a stage of its own; so is what reads a source and is sent as a whole to
    every task, because it is not joined by key: Spark waits for that no longer than for any other broadcast.

    Args:
        program: What runs.
    """
    apart = {step.name for step in program.steps if any(isinstance(node, Recursive) for node in walk(step.relation))}
    readers: dict[str, list[str]] = {}
    for reader, relation in _relations(program):
        for node in walk(relation):
            if isinstance(node, Stored):
                readers.setdefault(node.name, []).append(reader)
    steps = {step.name: step for step in program.steps}
    return frozenset(
        name
        for name, step in steps.items()
        if step.only_if is not None
        and step.semijoin is None
        and name not in apart
        and len(readers.get(name, ())) == 1
        and (reader := readers[name][0]) in steps
        and reader not in apart
        and not _is_broadcast(step, steps[reader])
    )


def _relations(program: DeltaProgram) -> Iterator[tuple[str, Relation]]:
    """Yield all that a program computes, with the name of the step that it is of.

    Of others it is empty.
    """
    for step in program.steps:
        yield step.name, step.relation
        yield from (("", relation) for relation in step.aside)
    yield from (("", relation) for table in program.tables for relation in table.relations)


def _is_broadcast(step: Step, reader: Step) -> bool:
    """Return whether a step is the broadcast side of a join without a key."""
    if not any(isinstance(node, Scan) for node in walk(step.relation)):
        return False
    joins = (node for node in walk(reader.relation) if isinstance(node, LookupJoin) and not node.on)
    return any(isinstance(node, Stored) and node.name == step.name for join in joins for node in walk(join.right))
