"""Which sums cannot be computed a second time to the last digit, by the types that are added up."""

from __future__ import annotations

import pytest

from headrace.algebra.relations import Aggregate, AggregateCall, Moment, Relation, Scan, Window, WindowCall
from headrace.algebra.scalar import column, compose
from headrace.algebra.schema import Column
from headrace.compiler.inexact_values import inexact
from headrace.names import LAKE, TableName

T = Scan(TableName(LAKE, ("shop",), "t"), (("k", "k"), ("x", "x")), Moment.AFTER)

TYPES = [
    ("double", True),
    ("float", True),
    ("string", True),  # which Spark reads as DOUBLE
    ("varchar(9)", True),
    ("int", False),  # the average of which is a sum of integers, divided once
    ("bigint", False),
    ("decimal(12,2)", False),
    (None, True),
]


@pytest.mark.parametrize(("type_", "expected"), TYPES)
def test_sums_below_another_operator(type_: str | None, expected: bool) -> None:
    known = {"k": "string", "s": "double"} | ({} if type_ is None else {"x": type_})

    def types_of(node: Relation) -> tuple[Column, ...]:
        return tuple(Column(name, known[name]) for name in node.columns if name in known)

    grouped = Aggregate(T, ("k",), (AggregateCall("s", "avg", column("x"), argument_type=type_, type="double"),))
    window = Window(T, ("k",), (WindowCall("s", "avg", compose("avg({x})", x=column("x"))),))
    for tree in (grouped, window):
        above = Aggregate(tree, ("s",), (AggregateCall("n", "count"),))
        assert bool(inexact(above, types_of)) is expected
