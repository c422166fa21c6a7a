"""Reading only the columns a query uses.

Claim: a column that nothing above reads may be left out of any operator but DISTINCT's keys and GROUP BY's, because no
other operator compares whole rows.
"""

from __future__ import annotations

from headrace.algebra.relations import (
    Aggregate,
    Existence,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Project,
    Recursive,
    Relation,
    Replicate,
    Scan,
    TopK,
    Union,
    Window,
)
from headrace.algebra.tree import identity


def pruned(relation: Relation) -> Relation:
    """Return the relation over scans that read no more than it needs; same columns."""
    return _keep(relation, frozenset(relation.columns))


def _keep(relation: Relation, needed: frozenset[str]) -> Relation:
    """Return the relation with at least the needed columns, in their order."""
    match relation:
        case Scan():
            return Scan(relation.source, tuple(f for f in relation.fields if f[0] in needed), relation.moment)
        case Project():
            items = tuple((name, s) for name, s in relation.items if name in needed)
            below = frozenset[str]().union(*(s.columns for _, s in items))
            return Project(_keep(relation.input, below), items)
        case Filter():
            return Filter(_keep(relation.input, needed | relation.condition.columns), relation.condition)
        case Join() | OuterJoin():
            wanted = needed | (relation.condition.columns if relation.condition else frozenset())
            return relation.with_inputs(_keep(relation.left, wanted), _keep(relation.right, wanted))
        case Existence():
            left = _keep(relation.left, needed | relation.condition.columns)
            return relation.with_inputs(left, _keep(relation.right, relation.condition.columns))
        case Aggregate():
            return _keep_aggregate(relation, needed)
        case Replicate():
            return Replicate(_keep(relation.input, needed | {relation.copies}), relation.copies)
        case TopK():
            return relation.with_inputs(
                _keep(relation.input, needed.union(*(k.scalar.columns for k in relation.order)))
            )
        case Generate():
            below = (needed & frozenset(relation.input.columns)) | relation.generator.columns
            return relation.with_inputs(_keep(relation.input, below))
        case Window():
            calls = tuple(call for call in relation.calls if call.name in needed)
            below = needed.union(*(call.columns for call in calls)) & frozenset(relation.input.columns)
            if not calls:
                return _keep(relation.input, below)
            return Window(_keep(relation.input, below | set(relation.partition)), relation.partition, calls)
        case Union():
            return _keep_union(relation, needed)
        case Recursive():
            # what nobody above reads, the next round may read
            return relation.with_inputs(*(_exactly(side, side.columns) for side in relation.inputs))
    return relation


def _keep_aggregate(relation: Aggregate, needed: frozenset[str]) -> Relation:
    calls = tuple(call for call in relation.calls if call.name in needed)
    if not calls and not relation.keys:
        calls = relation.calls[:1]
    below = frozenset(relation.keys).union(*(call.columns for call in calls))
    return Aggregate(_keep(relation.input, below), relation.keys, calls)


def _keep_union(relation: Union, needed: frozenset[str]) -> Relation:
    positions = [i for i, name in enumerate(relation.columns) if name in needed]
    branches = []
    for branch in relation.branches:
        branches.append(_exactly(branch, tuple(branch.columns[i] for i in positions)))
    return Union(tuple(branches))


def _exactly(relation: Relation, wanted: tuple[str, ...]) -> Relation:
    kept = _keep(relation, frozenset(wanted))
    return kept if kept.columns == wanted else Project(kept, identity(wanted))
