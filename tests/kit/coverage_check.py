"""A check that nothing naive is left in a derived program.

A refresh that reads a whole unchanged source although only a change of it matters would be right and slow, and no
test of results would notice. So every derived relation is looked at before it is run.
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.algebra.moving import is_moving
from headrace.algebra.relations import (
    Aggregate,
    Empty,
    Existence,
    Filter,
    Join,
    LookupJoin,
    Moment,
    OuterJoin,
    Project,
    Recursive,
    Relation,
    Scan,
    SemiJoin,
    Stored,
    TopK,
    Values,
    Window,
)
from headrace.algebra.text import label
from headrace.algebra.tree import walk


def naive(relation: Relation) -> Iterator[str]:
    """What is left to improve in a derived relation, one sentence each; nothing for a good one."""
    for node in walk(relation):
        if isinstance(node, Empty):
            yield "an empty term was not dropped"
        elif isinstance(node, Project) and isinstance(node.input, Project) and node.items == node.input.items:
            yield f"a projection is repeated: {label(node)}"
    yield from _unrestricted(relation)


def _unrestricted(node: Relation) -> Iterator[str]:
    """Scans of whole contents that no change and no set of keys restricts."""
    if isinstance(node, Scan) and node.moment is not Moment.CHANGE:
        yield f"all of {node.source} is read"
    elif isinstance(node, Existence) and is_moving(node):
        if not is_moving(node.left):  # at two times: a range of what is read
            yield from _unrestricted(node.left)
    elif isinstance(node, (Join, OuterJoin, Existence, SemiJoin, LookupJoin)):
        if isinstance(node, SemiJoin) and not node.anti and _constant(node.right):
            return  # read by keys of the query's own text
        sides = [side for side in node.inputs if not _small(side)]
        if len(sides) == len(node.inputs):
            for side in sides:
                yield from _unrestricted(side)
    elif isinstance(node, TopK) or (isinstance(node, Aggregate) and not node.keys):
        return  # few rows of a whole, which has to be read when it is read at all
    elif isinstance(node, Recursive):
        return  # no key restricts what rows follow from
    elif isinstance(node, Window) and not node.partition:
        return  # one group over everything has to be read when it is read at all
    else:
        for inner in node.inputs:
            yield from _unrestricted(inner)


def _small(node: Relation) -> bool:
    """Return whether a relation is no larger than a change."""
    match node:
        case Stored():
            return True
        case Scan():
            return node.moment is Moment.CHANGE
        case Existence() if is_moving(node) and is_moving(node.left):
            return True
        case Join() | OuterJoin() | Existence() | SemiJoin() | LookupJoin():
            return any(_small(side) for side in node.inputs)
        case Aggregate() if not node.keys:
            return True
        case Window() if not node.partition:
            return True
        case TopK() | Recursive():
            return True
        case Project() | Filter() | Aggregate() | Window():
            return _small(node.inputs[0])
    sides = [side for side in node.inputs if not _constant(side)]  # a few rows of the query's own text
    return bool(sides) and all(_small(side) for side in sides)


def _constant(node: Relation) -> bool:
    return isinstance(node, Values) or (isinstance(node, Project | Filter) and _constant(node.input))
