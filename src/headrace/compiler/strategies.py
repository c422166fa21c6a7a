"""Tells in words what each construct of a query costs its refreshes: the rules' own choices.

The lines follow the tree that rules work on, from the result down to the sources, and ask the same functions as the
rules: what the root is, which accumulators an aggregate keeps, where old rows come from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from headrace.algebra.facts import Constant
from headrace.algebra.moving import is_moving
from headrace.algebra.properties.equalities import equalities
from headrace.algebra.relations import (
    Aggregate,
    AggregateCall,
    Existence,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Project,
    Recursive,
    Relation,
    Scan,
    TopK,
    Union,
    Values,
    Window,
)
from headrace.algebra.scalar import Scalar, pinned
from headrace.algebra.text import call_text, window_text
from headrace.algebra.tree import walk
from headrace.ivm.aggregates.accumulators import Kind, plan
from headrace.ivm.query_root import root_of
from headrace.ivm.rules.partitions import window_at_root
from headrace.ivm.rules.recursive import recursion_at_root
from headrace.names import NOW
from headrace.optimizer.auxiliary_views.bounded_groups import is_bound
from headrace.optimizer.auxiliary_views.kept import AuxiliaryViews


@dataclass(frozen=True, slots=True)
class Strategy:
    """One construct of a query and the way it follows a change.

    Args:
        construct: Its name in SQL words, such as `LEFT JOIN`.
        subject: What it is about: a table, a condition, a call.
        how: What a refresh does for it.
    """

    construct: str
    subject: str
    how: str


THROUGH = "the change passes through"


def kept_in_words(tree: Relation, views: AuxiliaryViews) -> Iterator[str]:
    """Say what a query's companion keeps, a line for each part; arguments as for `strategies`."""
    root = root_of(tree) or views.groups
    if views.recursion is not None:
        yield f"rows of the recursion ({', '.join(views.recursion.columns)})"
    elif root is not None:
        yield _groups(root.aggregate)
    elif views.buffer:
        yield "the first rows, and more in reserve"
    for each in views.aggregates:
        yield f"{_groups(each.aggregate)}, below the result"


def _groups(node: Aggregate) -> str:
    by = f"groups by {', '.join(node.keys)}" if node.keys else "one group"
    return f"{by}: {_bare_text(', '.join(map(call_text, node.calls))) or 'how many rows'}"


def strategies(tree: Relation, views: AuxiliaryViews) -> tuple[Strategy, ...]:
    """List how each construct is maintained, from the result down to the sources.

    Args:
        tree: The query, with types.
        views: What its companion keeps.
    """
    inside = frozenset(each.aggregate for each in views.aggregates)
    root, below = root_of(tree), views.recursion
    kept = (
        root.aggregate if root is not None and below is None else None,
        window_at_root(tree),
        tree if isinstance(tree, TopK) and below is None else None,
        recursion_at_root(tree) or below,
    )
    nodes = tuple(_outside_recursions(tree))
    made = {id(part) for node in nodes for part in _parts_of_comparisons(node)}

    def at_root(node: Relation) -> bool:
        return any(node is each for each in kept) or (isinstance(node, Aggregate) and node in inside)

    lines = (line for node in nodes if id(node) not in made for line in _of(node, views, at_root=at_root(node)))
    found = dict.fromkeys((*_select(tree), *lines, *_sources(tree)))
    return tuple(replace(line, subject=_short(line.subject), how=_short(line.how)) for line in found)


def _outside_recursions(node: Relation) -> Iterator[Relation]:
    yield node
    for below in () if isinstance(node, Recursive) else node.inputs:
        yield from _outside_recursions(below)


def _sources(tree: Relation) -> Iterator[Strategy]:
    read: dict[str, dict[str, None]] = {}
    for node in walk(tree):
        if isinstance(node, Scan):
            read.setdefault(str(node.source), {}).update((column, None) for _, column in node.fields)
    for source, columns in read.items():
        yield Strategy("FROM", source, f"its change is read ({', '.join(columns) or 'rows are only counted'})")


def _select(tree: Relation) -> Iterator[Strategy]:
    if isinstance(tree, Project):
        yield Strategy("SELECT", ", ".join(tree.columns), THROUGH)


def _of(node: Relation, views: AuxiliaryViews, *, at_root: bool) -> Iterator[Strategy]:
    match node:
        case Filter():
            above = "HAVING" if isinstance(node.input, Aggregate) else "WHERE"
            yield Strategy(above, _written(node.condition), THROUGH)
        case Join():
            yield _join(node)
        case OuterJoin():
            yield _outer(node)
        case Existence() if is_bound(node):
            keys = ", ".join(a for a, _, _ in equalities(node.condition, node.left.columns, node.right.columns))
            yield Strategy("JOIN", f"groups by {keys}", "only groups that have a partner there are followed, and kept")
        case Existence() if is_moving(node):
            yield Strategy("MOVING FILTER", _written(node.condition).replace(NOW, "now"), _BY_TIME)
        case Existence():
            yield _existence(node)
        case Union():
            yield Strategy("UNION ALL", f"{len(node.branches)} branches", THROUGH)
        case Aggregate():
            yield from _aggregate(node, at_root=at_root)
        case Window():
            yield from _window(node, at_root=at_root)
        case TopK():
            yield _topk(node, at_root=at_root, buffered=views.buffer)
        case Recursive():
            how = _REDERIVED if node.settled else "computed again, as values that are equal need not be the same"
            yield Strategy("WITH RECURSIVE", ", ".join(node.columns), how if at_root else _TWICE)
        case Generate():
            yield Strategy("generator", _written(node.generator), THROUGH)


_BY_TIME = (
    "changed rows are passed through by the time of the refresh; rows that enter or leave as time goes on are looked up"
)
_REDERIVED = (
    "its rows are kept; what follows from new ones is added, what rested on lost ones taken back and found again"
)

_TWICE = "the whole recursion is computed as it was and as it is"

# joins


def _join(join: Join) -> Strategy:
    right = _bare(join.right)
    if isinstance(right, Aggregate) and not right.keys:
        how = "one row beside all others; while it stays the same, nothing else is read for it"
        return Strategy("JOIN", "a value of one row", how)
    if isinstance(right, Values):
        return _constant(join, right)
    how = f"each side's changed rows meet the other side{_by(join.condition, join)}"
    return Strategy("JOIN", _written(join.condition), how)


def _constant(join: Join, rows: Values) -> Strategy:
    number = len(rows.rows)
    if join.condition is None and rows.columns[:1] == ("set_number",):
        return Strategy("GROUPING SETS, ROLLUP, CUBE", f"{number} sets", "each changed row counts in each of the sets")
    return Strategy("JOIN", f"{number} constant rows", "changed rows meet the constant ones")


def _outer(join: OuterJoin) -> Strategy:
    rows = "rows of both sides" if join.full else "rows"
    padded = f"{rows} are padded with NULLs only where their partners changed"
    how = f"changed rows meet the other side; {padded}{_by(join.condition, join)}"
    return Strategy(f"{'FULL' if join.full else 'LEFT'} JOIN", _written(join.condition), how)


def _existence(node: Existence) -> Strategy:
    construct = "NOT EXISTS, NOT IN, ANTI JOIN" if node.anti else "EXISTS, IN, SEMI JOIN"
    how = "judges changed rows, and those whose partners changed"
    return Strategy(construct, _written(node.condition), how + _by(node.condition, node))


def _by(condition: Scalar | None, node: Join | OuterJoin | Existence) -> str:
    """Return whether partners are found by key, or by trying each pair."""
    pairs = equalities(condition, node.left.columns, node.right.columns) if condition is not None else ()
    return "; partners are found by key" if pairs else "; every pair is tried, as the condition has no equal columns"


def _bare(node: Relation) -> Relation:
    while isinstance(node, Project):
        node = node.input
    return node


# groups


def _aggregate(node: Aggregate, *, at_root: bool) -> Iterator[Strategy]:
    if _compares(node):
        construct, subject = "INTERSECT, EXCEPT", ", ".join(node.keys)
        how = "how often each side has a row, in a companion table"
        yield Strategy(construct, subject, how if at_root else "touched rows are counted before and after")
        return
    construct = "GROUP BY" if node.calls else "DISTINCT"
    subject = ", ".join(node.keys) or "one group"
    if not at_root:
        rows = "touched groups are computed from their rows" if node.keys else "computed from all rows"
        yield Strategy(construct, subject, f"{rows}, as they were and as they are")
        return
    again = [call_text(call) for call in node.calls if Kind.VALUE in _kinds(call, node.input)]
    if again:
        groups = "touched groups are computed again from their rows" if node.keys else "computed again from all rows"
        yield Strategy(construct, subject, f"{groups}, because of {_bare_text(again[0])}")
        return
    yield Strategy(construct, subject, "a companion table has what each group remembers; touched groups are updated")
    for call in node.calls:
        yield Strategy("aggregate", _bare_text(call_text(call)), _remembered(call, node.input))


def _remembered(call: AggregateCall, rows: Relation) -> str:
    if _kinds(call, rows):
        return "grows in place; a group is read again only when its extreme has left"
    return "kept in accumulators that the change is added to"


def _kinds(call: AggregateCall, rows: Relation) -> set[Kind]:
    """Return the accumulators that a call needs besides counts and sums."""
    own = plan(Aggregate(rows, (), (call,)))
    return {each.kind for each in own.accumulators if each.kind is Kind.VALUE or each.extreme}


def _compares(node: Aggregate) -> bool:
    """Return whether it is what INTERSECT and EXCEPT become."""
    sides = {pinned(call.filter) if call.filter is not None else None for call in node.calls}
    side = next(iter(sides)) if len(sides) == 1 and len(node.calls) == 2 else None
    return side is not None and isinstance(node.input, Union) and all(_marks(each, side) for each in node.input.inputs)


def _marks(branch: Relation, side: str) -> bool:
    """Return whether a branch's rows all have one value in a column, which marks the branch."""
    value = dict(branch.items).get(side) if isinstance(branch, Project) else None
    return value is not None and isinstance(value.form, Constant)


def _parts_of_comparisons(node: Relation) -> Iterator[Relation]:
    """Yield the operators of INTERSECT and EXCEPT besides their aggregate."""
    if isinstance(node, Aggregate) and _compares(node):
        yield node.input
    elif isinstance(node, Filter) and isinstance(node.input, Aggregate) and _compares(node.input):
        yield node


# windows and order


def _window(node: Window, *, at_root: bool) -> Iterator[Strategy]:
    partition = ", ".join(node.partition)
    touched = "touched partitions are computed again" if partition else "all rows, one partition, are computed again"
    old = "old rows come from the stream table" if at_root else "old rows are computed once more, as they were"
    for call in node.calls:
        text, by = window_text(call), f"PARTITION BY {partition} " if partition else ""
        subject = text.replace(" OVER (", f" OVER ({by}").replace(" )", ")")
        yield Strategy("window function", _bare_text(subject), f"{touched}; {old}")


def _topk(node: TopK, *, at_root: bool, buffered: bool) -> Strategy:
    construct = "ORDER BY … LIMIT" if node.limit is not None else "ORDER BY … OFFSET"
    subject = _bare_text(", ".join(map(str, node.order)))
    if at_root and buffered:
        how = "more rows than are shown are kept in a companion table; read again only when too few of them are left"
        return Strategy(construct, subject, how)
    if at_root and not node.offset:
        return Strategy(construct, subject, "gained rows are merged in; read again only when one of its rows is lost")
    return Strategy(construct, subject, "the rows are read again" + ("" if at_root else ", before and after"))


# words


def _written(scalar: Scalar | None) -> str:
    return "" if scalar is None else _bare_text(scalar.sql)


MOST_CHARACTERS = 400
"""Longer texts are shown by their two ends, so that a construct stays a line or two."""


def _short(text: str) -> str:
    """Return a text as far as somebody reads it."""
    half = MOST_CHARACTERS // 2
    return text if len(text) <= MOST_CHARACTERS else f"{text[:half]} … {text[-half:]}"


def _bare_text(sql: str) -> str:
    """Return SQL without the quotes that names do not need."""
    return re.sub(r"`([A-Za-z_][\w.]*)`", r"\1", sql)
