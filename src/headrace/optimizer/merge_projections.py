"""Merge neighbours.

π_f(π_g(R)) = π_{f∘g}(R) and σ_p(σ_q(R)) = σ_{q∧p}(R); a projection that changes nothing is the identity. A projection
is not merged when that would evaluate an expression more than once. Unions of unions are one union.
"""

from __future__ import annotations

from headrace.algebra.relations import Filter, Project, Relation, Union
from headrace.algebra.scalar import all_of, as_column, substitute, uses
from headrace.algebra.tree import transform


def merge(relation: Relation) -> Relation:
    """Merge adjacent projections, filters and unions."""
    return transform(relation, _rule)


def _rule(node: Relation) -> Relation:
    match node:
        case Project(input=Project() as below) if not _repeats(node, below):
            values = dict(below.items)
            return _rule(Project(below.input, tuple((name, substitute(e, values)) for name, e in node.items)))
        case Project() if node.columns == node.input.columns and all(as_column(e) == n for n, e in node.items):
            return node.input
        case Filter(input=Filter() as below):
            condition = all_of((below.condition, node.condition))
            return Filter(below.input, condition) if condition else below
        case Union() if any(isinstance(branch, Union) for branch in node.branches):
            nested = (each.branches if isinstance(each, Union) else (each,) for each in node.branches)
            return Union(tuple(branch for branches in nested for branch in branches))
    return node


def _repeats(outer: Project, inner: Project) -> bool:
    """Return whether merging would evaluate an expression of the inner projection twice."""
    return any(
        scalar.columns and as_column(scalar) is None and sum(uses(e, name) for _, e in outer.items) > 1
        for name, scalar in inner.items
    )
