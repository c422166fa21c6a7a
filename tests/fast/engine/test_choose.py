"""FULL or DIFFERENTIAL under AUTO: what the model says, what history says, and when the other is tried again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from catalog_kit.samples import ORDERS, REVENUE

from headrace.algebra.schema import Column
from headrace.engine.choose import PROBE_EVERY, _prefers_full, choose, estimate_differential, estimate_full
from headrace.engine.details import Details
from headrace.engine.facts import Facts, Pace, SourceFacts
from headrace.engine.results import Mode, RefreshMode
from headrace.semantics import Semantics


@pytest.mark.parametrize(
    ("pace", "expected", "model", "full"),
    [
        (Pace(), (1.0, 2.0), True, True),
        (Pace(), (2.0, 1.0), False, False),
        # history overrules the model
        (Pace(1.0, 4.0), (1.0, 2.0), False, True),
        # but not for ever
        (Pace(1.0, 4.0, 0, PROBE_EVERY), (1.0, 2.0), False, False),
        (Pace(4.0, 1.0, PROBE_EVERY, 0), (2.0, 1.0), True, True),
        # unless it would be dear
        (Pace(1.0, 9.0, 0, PROBE_EVERY), (1.0, 9.0), False, True),
        (Pace(1.0, 4.0, 0, PROBE_EVERY - 1), (1.0, 2.0), False, True),
    ],
)
def test_the_choice(pace: Pace, expected: tuple[float, float], model: bool, full: bool) -> None:
    assert _prefers_full(pace, expected, model) is full


def facts(**change: bool) -> Facts:
    """Of a query over one large table a little of which changed."""
    details = Details("SELECT g, sum(v) FROM t GROUP BY g", (), Semantics(), (), (), {}, (), None)
    source = SourceFacts(
        ORDERS,
        "t",
        "t",
        2,
        "change",
        change_rows=10,
        rows=50_000_000,
        **change,  # type: ignore[arg-type]
    )
    return Facts(REVENUE, details, RefreshMode.AUTO, (source,), 100, None, None, 1)


def test_a_change_costs_what_has_to_be_read_to_find_it() -> None:
    deleted = estimate_differential(facts())
    for known in ("appended", "logged"):
        assert 10 * estimate_differential(facts(**{known: True})) < deleted
        assert choose(facts(**{known: True})).mode is Mode.DIFFERENTIAL


def test_a_wide_result_costs_more_to_write() -> None:
    def output(columns: int) -> Facts:
        narrow = facts()
        wide = tuple(Column(f"c{number}", "int") for number in range(columns))
        return replace(narrow, details=replace(narrow.details, output=wide), state_rows=6_000_000)

    assert estimate_full(output(13)) > estimate_full(output(2)) + 3
