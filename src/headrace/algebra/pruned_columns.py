"""Read only columns that are used: the reader leaves out the rest, and so does a pass.

π_A of a relation depends on no column outside A and those its operators read. Keys of a GROUP BY are used even when
nobody reads them, as they decide how many rows there are. An outer join that keeps L and gives each of its rows one
partner at most is L, when nobody reads what the partners have.
"""

from __future__ import annotations

from collections.abc import Iterable

from headrace.algebra.relations import (
    Aggregate,
    Existence,
    Filter,
    Generate,
    Join,
    LookupJoin,
    OuterJoin,
    Project,
    Recursive,
    Relation,
    Repeat,
    Replicate,
    Scan,
    SemiJoin,
    TopK,
    Union,
    Window,
)
from headrace.algebra.scalar import Scalar
from headrace.algebra.tree import identity
from headrace.names import WEIGHT

Names = frozenset[str]


def prune(relation: Relation) -> Relation:
    """Drop unused columns, down to the scans; the relation's own columns stay."""
    return _keep(relation, frozenset(relation.columns))


def _keep(node: Relation, used: Names) -> Relation:
    """Return the relation with at least the used columns, in its order."""
    match node:
        case Scan():
            return Scan(node.source, tuple(f for f in node.fields if f[0] in used), node.moment)
        case Project():
            items = tuple(item for item in node.items if item[0] in used or item[0] == WEIGHT)
            return Project(_keep(node.input, _read(scalar for _, scalar in items)), items)
        case Filter():
            return Filter(_keep(node.input, used | node.condition.columns), node.condition)
        case OuterJoin(unique=True, full=False) if used.isdisjoint(node.right.columns):
            return _keep(node.left, used)
        case Join() | OuterJoin():
            wanted = used | (node.condition.columns if node.condition else frozenset())
            return node.with_inputs(*(_keep(side, wanted & frozenset(side.columns)) for side in node.inputs))
        case Existence():
            left = _keep(node.left, (used | node.condition.columns) & frozenset(node.left.columns))
            return node.with_inputs(left, _keep(node.right, node.condition.columns & frozenset(node.right.columns)))
        case SemiJoin() | LookupJoin():
            left = _keep(node.left, (used & frozenset(node.left.columns)) | {a for a, _ in node.on})
            kept = used & frozenset(node.right.columns) if isinstance(node, LookupJoin) else frozenset[str]()
            return node.with_inputs(left, _keep(node.right, kept | {b for _, b in node.on}))
        case Union():
            return _union(node, used)
        case Aggregate():
            return _aggregate(node, used)
        case Replicate():
            return Replicate(_keep(node.input, used | {node.copies}), node.copies)
        case TopK():
            return node.with_inputs(_keep(node.input, used | _read(key.scalar for key in node.order)))
        case Generate():
            below = (used & frozenset(node.input.columns)) | node.generator.columns
            return node.with_inputs(_keep(node.input, below))
        case Window():
            return _window(node, used)
        case Recursive():
            # what nobody above reads, the next round may read
            return node.with_inputs(*(_exactly(side, side.columns) for side in node.inputs))
        case Repeat():
            return Repeat(_keep(node.input, used | {WEIGHT}))
    return node


def _read(scalars: Iterable[Scalar]) -> Names:
    return frozenset().union(*(scalar.columns for scalar in scalars))


def _aggregate(node: Aggregate, used: Names) -> Relation:
    calls = tuple(call for call in node.calls if call.name in used)
    if not node.keys and not calls:
        calls = node.calls[:1]
    read = frozenset(node.keys).union(*(call.columns for call in calls))
    return Aggregate(_keep(node.input, read), node.keys, calls)


def _window(node: Window, used: Names) -> Relation:
    calls = tuple(call for call in node.calls if call.name in used)
    below = (used & frozenset(node.input.columns)).union(*(call.columns for call in calls))
    if not calls:
        return _keep(node.input, below)
    return Window(_keep(node.input, below | set(node.partition)), node.partition, calls)


def _union(node: Union, used: Names) -> Relation:
    # branches match by position, so each keeps exactly the same positions
    places = [i for i, name in enumerate(node.columns) if name in used or name == WEIGHT]
    return Union(tuple(_exactly(branch, tuple(branch.columns[i] for i in places)) for branch in node.branches))


def _exactly(node: Relation, names: tuple[str, ...]) -> Relation:
    kept = _keep(node, frozenset(names))
    return kept if kept.columns == names else Project(kept, identity(names))
