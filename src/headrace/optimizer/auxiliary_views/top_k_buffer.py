"""ORDER BY … LIMIT at the root: keeps the first rows, and as many again in reserve.

The companion is C, the first |C| rows of the input R, however many that is. A change that loses rows takes those among
them away; a row that comes enters where it is not behind all of C, for between the last of C and it there may be rows
that nobody has seen. So C′ is the first |C′| rows of R′ again. Rows move up from the reserve, and only when fewer are
left than the query passes over and shows, R′ is read. As long as C is shorter than that, it is all of R, and every row
that comes enters.
Source: Yi, Yu, Yang, Xia, Chen, Efficient Maintenance of Materialized Top-k Views, ICDE 2003.
"""

from __future__ import annotations

from dataclasses import replace

from headrace.algebra.relations import (
    Aggregate,
    Empty,
    Filter,
    Project,
    Relation,
    Replicate,
    SemiJoin,
    Stored,
    TopK,
    Union,
    Window,
    WindowCall,
)
from headrace.algebra.scalar import Scalar, call_of, column, compose, literal
from headrace.algebra.tree import identity
from headrace.ivm.append_only import only_inserts
from headrace.ivm.change import Change, total
from headrace.ivm.consolidate import consolidate, difference
from headrace.ivm.program import COMPANION, STATE, DeltaProgram, FullProgram, TableChange
from headrace.names import WEIGHT
from headrace.optimizer.auxiliary_views.kept import AuxiliaryViews

LEAST = 100
"""Rows in reserve, if not as many as the query passes over and shows: a few rows more cost nothing."""

MOST = 10_000
"""Rows passed over and shown for which a reserve is kept: the first rows are put in order in one task."""

_THERE, _MOVED, _BEHIND, _ALL = "__hr_there", "__hr_moved", "__hr_behind", "__hr_all"


def keep_buffer(views: AuxiliaryViews, tree: Relation) -> AuxiliaryViews:
    """Keep more of the first rows than a query shows.

    Args:
        views: What else the companion keeps.
        tree: The query.
    """
    return replace(views, buffer=reserved(tree))


def reserved(tree: Relation) -> bool:
    """Return whether a query is the first rows of something, with a reserve of more."""
    return isinstance(tree, TopK) and tree.limit is not None and 0 < tree.limit + tree.offset <= MOST


def full(tree: TopK) -> FullProgram:
    """Compute the first rows with their reserve, and the result from these."""
    return FullProgram(_first(tree, tree.input), tree.with_inputs(Stored(COMPANION, tree.columns)))


def follow(tree: TopK, change: Change) -> DeltaProgram | None:
    """Return the program for a change of the rows that are chosen from.

    Args:
        tree: The query.
        change: The changed sources; gets the steps of the program.

    Returns:
        The program, which changes result and buffer; None when neither can change.
    """
    moved = consolidate(change.of(tree.input))
    if isinstance(moved, Empty):
        return None
    kept = Stored(COMPANION, tree.columns)
    now = _followed(tree, kept, change.keep("moved", moved))
    if not only_inserts(tree.input, change):
        now = _refilled(tree, kept, change.keep("followed", now), change)
    now = change.keep("first", now)
    shown = change.keep("change", difference(Stored(STATE, tree.columns), tree.with_inputs(now)))
    return DeltaProgram(tuple(change.steps), TableChange(shown, None), TableChange(difference(kept, now), None))


def _wanted(tree: TopK) -> int:
    """Return how many rows the query passes over and shows."""
    assert tree.limit is not None
    return tree.limit + tree.offset


def _first(tree: TopK, rows: Relation) -> TopK:
    """Return the first of some rows, with a whole reserve."""
    return TopK(rows, tree.order, _wanted(tree) + max(_wanted(tree), LEAST))


def _followed(tree: TopK, kept: Stored, moved: Stored) -> Relation:
    """Return the first rows after a change, as far as the kept ones determine them."""
    same = tuple((name, name) for name in tree.columns)
    lost = SemiJoin(Filter(moved, compose("{w} < 0", w=column(WEIGHT))), kept, same)
    came = _first(tree, Filter(moved, compose("{w} > 0", w=column(WEIGHT))))
    rows = Union((_counted(kept, literal(1), literal(0)), _counted(Union((lost, came)), literal(0), column(WEIGHT))))
    each = Aggregate(rows, tree.columns, (total(_THERE), total(_MOVED)))
    kept_rows = call_of("sum", column(_THERE))
    behind = WindowCall(_BEHIND, "sum", kept_rows, tree.order, "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING")
    placed = Window(each, (), (behind, WindowCall(_ALL, "sum", kept_rows)))
    copies = compose("{t} + {m}", t=column(_THERE), m=column(_MOVED))
    left = Project(Filter(placed, _known(tree)), (*identity(tree.columns), (_THERE, copies)))
    return _first(tree, Replicate(Filter(left, compose("{c} > 0", c=column(_THERE))), _THERE))


def _known(tree: TopK) -> Scalar:
    """Return the condition that no unkept row can stand before a row."""
    return compose("{b} > 0 OR {a} < {k}", b=column(_BEHIND), a=column(_ALL), k=literal(_wanted(tree)))


def _refilled(tree: TopK, kept: Stored, followed: Stored, change: Change) -> Relation:
    """Return the first rows; read them again where too few kept ones are left."""
    was = Project(kept, ((_THERE, literal(1)), (_MOVED, literal(0))))
    now = Project(followed, ((_THERE, literal(0)), (_MOVED, literal(1))))
    counts = Aggregate(Union((was, now)), (), (total(_THERE), total(_MOVED)))
    few = compose("{t} >= {k} AND {m} < {k}", t=column(_THERE), m=column(_MOVED), k=literal(_wanted(tree)))
    short = change.keep("short", Filter(counts, few))
    again = change.keep("rescanned", _first(tree, change.after(tree.input)), only_if=short)
    return Union((SemiJoin(followed, short, (), anti=True), SemiJoin(again, short, ())))


def _counted(rows: Relation, there: Scalar, moved: Scalar) -> Project:
    columns = tuple(name for name in rows.columns if name != WEIGHT)
    return Project(rows, (*identity(columns), (_THERE, there), (_MOVED, moved)))
