"""Changes that only add rows.

Scans, projections, filters, generators, unions, inner joins and recursions over these are monotone: more input, more
output. When every changed source only gained rows, so does their result.
"""

from __future__ import annotations

from headrace.algebra.relations import Filter, Generate, Join, Project, Recursive, Relation, Scan, Union, Values
from headrace.ivm.change import Change


def only_inserts(relation: Relation, change: Change) -> bool:
    """Return whether the change of a relation cannot have a negative weight."""
    match relation:
        case Scan():
            return relation.source not in change.changed or relation.source in change.appended
        case Project() | Filter() | Generate() | Join() | Union() | Values() | Recursive():
            return all(only_inserts(node, change) for node in relation.inputs)
    return not change.touches(relation)
