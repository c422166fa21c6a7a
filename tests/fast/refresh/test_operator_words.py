"""Operators of a step in words: no column that only maintenance knows, and no empty names."""

from __future__ import annotations

import pytest
from kit.tpch import compiled

from headrace.algebra.relations import Aggregate, LookupJoin, SemiJoin, Stored
from headrace.demo import tpch22
from headrace.refresh.explain.operator_words import operators

A, HIDDEN = Stored("a", ("k",)), Stored("b", ("__hr_key0",))


@pytest.mark.parametrize("name", tpch22.NAMES)
def test_the_changes_of_real_queries(name: str) -> None:
    view = compiled(tpch22.text(name))
    program = view.delta_program(frozenset(view.sources))
    assert program is not None
    for step in program.steps:
        lines = list(operators(step.relation, {}))
        assert lines
        for line in lines:
            assert "__hr_" not in line
            assert "  " not in line.strip(), line
            assert not line.endswith((" by", " ", ":")), line


def test_operators_over_hidden_columns_only() -> None:
    assert list(operators(SemiJoin(HIDDEN, A, (("__hr_key0", "k"),)), {})) == ["rows with a match among", "  b", "  a"]
    assert next(iter(operators(SemiJoin(A, HIDDEN, (("k", "__hr_key0"),), anti=True), {}))) == (
        "rows whose k are not among"
    )
    assert next(iter(operators(LookupJoin(A, HIDDEN, (("k", "__hr_key0"),)), {"a": "step 1"}))) == "look up by k"
    both = LookupJoin(A, HIDDEN, (("k", "__hr_key0"),), whole=True)
    assert next(iter(operators(both, {"a": "step 1"}))) == "full join by k"
    assert next(iter(operators(Aggregate(HIDDEN, ("__hr_key0",)), {}))) == "distinct rows"
