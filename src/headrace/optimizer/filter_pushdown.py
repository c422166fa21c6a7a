"""Move conditions towards the leaves.

σ_p(π_f(R)) = π_f(σ_{p∘f}(R)); σ_p(R ⊎ S) = σ_p(R) ⊎ σ_p(S); σ_p(L ⋈_q R) = L ⋈_{q∧p} R, and a conjunct over one side
filters that side; σ_p(γ_K(R)) = γ_K(σ_p(R)) for p over K only, and
likewise for window functions and their PARTITION BY. So a comma join with its equalities in WHERE becomes an
equi-join. Conditions that read no column stay where they are: they decide about whole relations. So do conditions that
would have to compute something twice below. Of an outer join that keeps L, conditions over L filter L, and conjuncts of
its own condition over the other side filter that side; likewise of a semi-join or an anti-join.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.relations import (
    Aggregate,
    Existence,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Project,
    Relation,
    Replicate,
    Union,
    Window,
)
from headrace.algebra.scalar import TRUE, Scalar, all_of, as_column, column, conjuncts, substitute, uses
from headrace.algebra.tree import transform


def push_filters(relation: Relation) -> Relation:
    """Push conditions below projections, unions, joins and aggregates."""
    return transform(relation, _rule)


def _rule(node: Relation) -> Relation:
    match node:
        case Filter():
            return _sink(node.input, conjuncts(node.condition))
        case Join(condition=Scalar() as condition):
            return _into_join(Join(node.left, node.right, None, node.small_left), conjuncts(condition))
        case OuterJoin(full=False) | Existence():
            return _own_condition(node)
    return node


def _own_condition(node: OuterJoin | Existence) -> Relation:
    """Push conjuncts over the right side alone below an existence test."""
    names = set(node.right.columns)
    right = tuple(c for c in conjuncts(node.condition) if c.columns and c.columns <= names)
    if not right:
        return node
    rest = all_of(c for c in conjuncts(node.condition) if c not in right) or TRUE
    return replace(node, right=_sink(node.right, right), condition=rest)


def _sink(node: Relation, conditions: tuple[Scalar, ...]) -> Relation:
    """Apply conditions to a relation, as low as possible."""
    if not conditions:
        return node
    match node:
        case Filter():
            return _sink(node.input, conjuncts(node.condition) + conditions)
        case Project():
            values = dict(node.items)
            if _repeats(values, conditions):
                return _filter(node, conditions)
            return Project(_sink(node.input, tuple(substitute(c, values) for c in conditions)), node.items)
        case Replicate():
            return Replicate(_sink(node.input, conditions), node.copies)
        case Union():
            return Union(tuple(_sink(branch, _renamed(conditions, node, branch)) for branch in node.branches))
        case Join():
            own = conjuncts(node.condition) if node.condition is not None else ()
            return _into_join(Join(node.left, node.right, None, node.small_left), own + conditions)
        case OuterJoin(full=False) | Existence():
            names = set(node.left.columns)
            left = tuple(c for c in conditions if c.columns and c.columns <= names)
            others = tuple(c for c in conditions if c not in left)
            return _filter(node.with_inputs(_sink(node.left, left), node.right), others)
        case Generate():
            below = tuple(c for c in conditions if c.columns and c.columns <= set(node.input.columns))
            above = tuple(c for c in conditions if c not in below)
            return _filter(node.with_inputs(_sink(node.input, below)), above)
        case Window():
            below = tuple(c for c in conditions if c.columns and c.columns <= set(node.partition))
            above = tuple(c for c in conditions if c not in below)
            return _filter(Window(_sink(node.input, below), node.partition, node.calls), above)
        case Aggregate() if node.keys:
            below = tuple(c for c in conditions if c.columns and c.columns <= set(node.keys))
            above = tuple(c for c in conditions if c not in below)
            return _filter(Aggregate(_sink(node.input, below), node.keys, node.calls), above)
    return _filter(node, conditions)


def _repeats(values: dict[str, Scalar], conditions: tuple[Scalar, ...]) -> bool:
    """Return whether pushing conditions would compute a column more than once."""
    computed = [name for name, scalar in values.items() if scalar.columns and as_column(scalar) is None]
    return any(sum(uses(condition, name) for condition in conditions) > 1 for name in computed)


def _into_join(join: Join, conditions: tuple[Scalar, ...]) -> Relation:
    left_names, right_names = set(join.left.columns), set(join.right.columns)
    left = tuple(c for c in conditions if c.columns and c.columns <= left_names)
    right = tuple(c for c in conditions if c.columns and c.columns <= right_names)
    both = tuple(c for c in conditions if c not in left and c not in right)
    return Join(_sink(join.left, left), _sink(join.right, right), all_of(both), join.small_left)


def _renamed(conditions: tuple[Scalar, ...], union: Union, branch: Relation) -> tuple[Scalar, ...]:
    names = {out: column(own) for out, own in zip(union.columns, branch.columns, strict=True)}
    return tuple(substitute(condition, names) for condition in conditions)


def _filter(node: Relation, conditions: tuple[Scalar, ...]) -> Relation:
    condition = all_of(conditions)
    return node if condition is None else Filter(node, condition)
