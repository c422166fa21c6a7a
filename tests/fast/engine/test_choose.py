"""FULL or DIFFERENTIAL under AUTO: what the model says, what history says, and when the other is tried again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from catalog_kit.samples import REVENUE
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.maintained import Maintained

from headrace.algebra.schema import Column
from headrace.engine.choose import PROBE_EVERY, _detail, _prefers_full, choose
from headrace.engine.details import Details, SourceUse
from headrace.engine.estimate import differential_seconds, full_seconds
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
        # what history says nothing about is tried where it may be better
        (Pace(1.0, None, 0, PROBE_EVERY), (1.0, 1.9), True, False),
        (Pace(None, 1.0, PROBE_EVERY, 0), (1.9, 1.0), False, True),
        (Pace(1.0, None, 0, PROBE_EVERY), (1.0, 2.1), True, True),
        (Pace(1.0, 1.0, 0, PROBE_EVERY), (1.0, 1.9), True, True),
        # not where nothing is ever learnt
        (Pace(None, None, 0, PROBE_EVERY), (1.0, 1.9), True, True),
    ],
)
def test_the_choice(pace: Pace, expected: tuple[float, float], model: bool, full: bool) -> None:
    assert _prefers_full(pace, expected, model) is full


def test_why_full_is_told_in_words() -> None:
    assert _detail(Pace(1.0, 1.0), (1.0, 2.0)).endswith("DIFFERENTIAL at 2.0 s")
    assert _detail(Pace(1.0, 1.0), (2.0, 1.0)).endswith("tried to see whether that still holds")
    assert _detail(Pace(None, 1.0), (2.0, 1.0)).endswith("tried to see how long it takes")


@pytest.mark.parametrize(
    ("pace", "corrected"),
    [
        (Pace(), (1.0, 1.0)),
        (Pace(4.0, 0.2), (4.0, 0.2)),
        # a machine is slower by so much, not a query
        (Pace(1.2, None), (1.2, 1.2)),
        (Pace(None, 0.8), (0.8, 0.8)),
        (Pace(4.0, None), (4.0, 1.5)),
        (Pace(None, 0.2), (1 / 1.5, 0.2)),
    ],
)
def test_what_was_never_measured_is_as_slow_as_the_machine(pace: Pace, corrected: tuple[float, float]) -> None:
    assert pace.either == corrected


TABLES = (Table("t", (Column("g", "int"), Column("v", "int")), ()),)
VIEW = Maintained(DuckExecutor(), Case("SELECT g, sum(v) AS v FROM t GROUP BY g", TABLES)).view


def facts(**change: bool) -> Facts:
    """Of a query over one large table a little of which changed."""
    (name,) = VIEW.sources
    uses = (SourceUse(name, (Column("g", "int"), Column("v", "int"))),)
    details = Details(VIEW.query, (), Semantics(), VIEW.output, uses, {}, (), VIEW.companion)
    source = SourceFacts(name, "t", "t", 2, "change", change_rows=10, rows=500_000_000, **change)  # type: ignore[arg-type]
    return Facts(REVENUE, details, RefreshMode.AUTO, (source,), 100, None, None, 1)


def test_a_change_costs_what_has_to_be_read_to_find_it() -> None:
    program = VIEW.delta_program(frozenset(VIEW.sources))
    assert program is not None
    deleted = differential_seconds(facts(), program)
    for known in ("appended", "logged"):
        assert 10 * differential_seconds(facts(**{known: True}), program) < deleted
        assert choose(facts(**{known: True}), VIEW, program).mode is Mode.DIFFERENTIAL


def test_a_wide_result_costs_more_to_write() -> None:
    def output(columns: int) -> Facts:
        narrow = facts()
        wide = tuple(Column(f"c{number}", "int") for number in range(columns))
        return replace(narrow, details=replace(narrow.details, output=wide), state_rows=6_000_000)

    assert full_seconds(output(13), VIEW) > full_seconds(output(2), VIEW) + 3


def test_of_a_query_that_is_not_maintained_it_counts_what_is_read() -> None:
    assert full_seconds(facts(), None) > full_seconds(replace(facts(), sources=()), None) + 60
