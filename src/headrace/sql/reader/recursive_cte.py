"""Common table expressions that read themselves.

Spark takes `start UNION ALL again`, each round reading what the round before it gave. It is maintained where `again`
takes each of these rows by itself: through projections, conditions, joins with other relations, unions and generators.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

from headrace.algebra.relations import (
    Existence,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Project,
    Recursive,
    Relation,
    Round,
    Union,
)
from headrace.algebra.scalar import column
from headrace.algebra.tree import walk
from headrace.sql.reader.context import BoundCte, Context, Output
from headrace.sql.reader.syntax.query_shape import Query, SetOperation

CONSTRUCT = "WITH RECURSIVE"


def recursion(context: Context, bound: BoundCte) -> Output | None:
    """Return the expression as a recursion; None where it does not read itself.

    Args:
        context: The text.
        bound: The expression, which may.
    """
    cte = bound.cte
    operation, around = _operation(cte.query)
    if operation is None:
        return None
    trial = context.trial()
    start = trial.read_query(trial, replace(around, body=operation.left), bound.env)
    name = f"__hr_r{cte.at}"
    shown = replace(start, relation=Round(name, start.relation), names=cte.columns or start.names)
    trial.read_ctes[cte.at] = shown
    known = {**bound.env, context.fold(cte.name): bound}
    again = trial.read_query(trial, replace(around, body=operation.right), known)
    if not _reads(again.relation, name) and not (again.opaque or trial.findings.all()):
        return None
    context.findings.refusals.extend(trial.findings.refusals)
    context.findings.doubts.extend(trial.findings.doubts)
    same = len(start.relation.columns) == len(again.relation.columns) == len(shown.names)
    if not same:
        context.doubt(CONSTRUCT, "Start and step differ in their number of columns.", context.cursor.offset(cte.at))
    if start.opaque or again.opaque or trial.findings.all() or not same:
        return replace(start, opaque=True)
    if not (operation.operator == "UNION" and operation.all and not operation.by_name):
        context.refuse_at(CONSTRUCT, cte.at, "A recursion is maintained when it is start UNION ALL step.")
    elif not _by_itself(again.relation, name):
        message = "A recursion is maintained when its step takes each row of the round before by itself."
        context.refuse_at(CONSTRUCT, cte.at, message)
    elif _without_limit(context):
        context.refuse_at(CONSTRUCT, cte.at, "LIMIT ALL lifts Spark's limit on the rows of a recursion.")
    pairs = zip(start.relation.columns, again.relation.columns, strict=True)
    step = Project(again.relation, tuple((new, column(old)) for new, old in pairs))
    return Output(Recursive(start.relation, step, name, cte.levels), start.names)


def _operation(query: Query) -> tuple[SetOperation | None, Query]:
    """Return the operation of a query, and the query with all that both sides may name."""
    ctes = query.ctes
    while isinstance(query.body, Query) and not query.extras:
        query = replace(query.body, recursive=query.recursive or query.body.recursive)
        ctes += query.ctes
    body = query.body
    return (body if isinstance(body, SetOperation) and not query.extras else None), replace(query, ctes=ctes)


def _reads(relation: Relation, name: str) -> bool:
    return any(isinstance(node, Round) and node.name == name for node in walk(relation))


def _by_itself(relation: Relation, name: str) -> bool:
    """Return whether a step distributes over the rows of a round."""
    match relation:
        case Round():
            return relation.name == name
        case Project() | Filter() | Generate():
            return _by_itself(relation.input, name)
        case Union():
            return all(_by_itself(branch, name) for branch in relation.branches)
        case Join():
            sides = [side for side in relation.inputs if _reads(side, name)]
            return len(sides) == 1 and _by_itself(sides[0], name)
        case OuterJoin(full=False) | Existence():
            return not _reads(relation.right, name) and _by_itself(relation.left, name)
    return False


def _without_limit(context: Context) -> bool:
    words = [token.word for token in context.cursor.tokens]
    return any(a == "LIMIT" and b == "ALL" for a, b in pairwise(words))
