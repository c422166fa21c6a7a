"""What is said of each construct of a query; the texts are in `strategies.spec`."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.maintained import Maintained

from headrace.algebra.schema import Column
from headrace.compiler.strategies import strategies

EXECUTOR = DuckExecutor()
NUMBERS = tuple(Column(name, "int") for name in ("k", "a", "b"))
TABLES = (Table("t", NUMBERS), Table("u", NUMBERS), Table("f", (Column("k", "int"), Column("x", "double"))))
FILE = Path(__file__).with_name("strategies.spec")


def lines(query: str) -> list[str]:
    view = Maintained(EXECUTOR, Case(query, TABLES, ())).view
    assert view.tree is not None
    return [f"{s.construct} | {s.subject} | {s.how}" for s in strategies(view.tree, view.views)]


CASES = [block.partition("\n=>\n") for block in FILE.read_text(encoding="utf-8").strip().split("\n\n")]


@pytest.mark.parametrize(("query", "expected"), [(query, expected) for query, _, expected in CASES])
def test_strategies(query: str, expected: str) -> None:
    assert "\n".join(lines(query)) == expected
