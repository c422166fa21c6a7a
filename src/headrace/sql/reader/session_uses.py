"""Finds uses of sessions that are not allowed once rows are grouped by them.

Spark marks the column of `session_window`, and groups by the mark wherever the column goes: a second GROUP BY or
DISTINCT merges sessions again. And it moves conditions over what a query groups by below the grouping, where they meet
the spans of single rows: a session loses rows instead of being kept or left out. The mark is lost in a table, and no
condition is moved into one, so that a query that reads sessions from a stream table means what it says. Fields of a
session may be grouped by.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto

from headrace.algebra.facts import Call
from headrace.algebra.relations import (
    Aggregate,
    Existence,
    Filter,
    Generate,
    Join,
    OuterJoin,
    Project,
    Relation,
    TopK,
    Union,
    Window,
)
from headrace.algebra.scalar import Scalar, as_column
from headrace.algebra.tree import inputs_first
from headrace.errors import Place
from headrace.sql.reader.refusals import SESSION


class _Part(Enum):
    """The part of a session that a column holds."""

    BOUND = auto()
    """Its first or last moment, as it was computed."""
    WHOLE = auto()
    """All of it, in rows that are not grouped yet."""
    GROUPED = auto()
    """All of it, after grouping."""
    DERIVED = auto()
    """A value of it."""


_Columns = Mapping[str, _Part]


def misused_session(tree: Relation) -> Place | None:
    """Return where a session is written whose rows Spark does not leave alone; None without one.

    Args:
        tree: A query as it was read.
    """
    nodes = inputs_first(tree)
    places = [c.place for n in nodes if isinstance(n, Window) for c in n.calls if c.written == SESSION]
    if not places:
        return None
    found: dict[int, _Columns | None] = {}
    for node in nodes:
        below = [found[id(each)] for each in node.inputs]
        columns = None if None in below else _columns(node, [each for each in below if each is not None])
        if columns is None:
            return places[0]
        found[id(node)] = columns
    return None


def _columns(node: Relation, inputs: list[_Columns]) -> _Columns | None:
    """Return what columns of a relation hold of a session; None for a use that is refused."""
    known = {name: part for each in inputs for name, part in each.items()}
    match node:
        case Window():
            return {**known, **{call.name: _Part.BOUND for call in node.calls if call.written == SESSION}}
        case Project():
            held = {name: _of_value(scalar, known) for name, scalar in node.items}
            return {name: part for name, part in held.items() if part is not None}
        case Aggregate():
            return _grouped(node, known)
        case Union():
            return _united(node, inputs)
        case TopK() | Join(condition=None):
            return known
        case Filter(condition=Scalar() as decides) | Join(condition=Scalar() as decides):
            return None if decides.columns & known.keys() else known
        case OuterJoin(condition=decides) | Existence(condition=decides) | Generate(generator=decides):
            return None if decides.columns & known.keys() else known
    return None if known else {}


def _of_value(scalar: Scalar, known: _Columns) -> _Part | None:
    name = as_column(scalar)
    if name is not None:
        return known.get(name)
    parts = {known[each] for each in scalar.columns if each in known}
    if parts == {_Part.BOUND} and isinstance(scalar.form, Call) and scalar.form.function == "named_struct":
        return _Part.WHOLE
    return _Part.DERIVED if parts else None


def _grouped(node: Aggregate, known: _Columns) -> _Columns | None:
    parts = {name: known[name] for name in node.keys if name in known}
    if _Part.GROUPED in parts.values():
        return None
    return {name: _Part.GROUPED if part is _Part.WHOLE else part for name, part in parts.items()}


def _united(node: Union, inputs: list[_Columns]) -> _Columns:
    columns: dict[str, _Part] = {}
    for branch, known in zip(node.branches, inputs, strict=True):
        for name, own in zip(node.columns, branch.columns, strict=True):
            if own in known and columns.get(name) is not _Part.GROUPED:
                columns[name] = known[own]
    return columns
