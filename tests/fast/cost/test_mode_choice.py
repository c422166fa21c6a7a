"""FULL or DIFFERENTIAL under AUTO: what the model says, what history says, and when the other is tried again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from catalog_kit.samples import REVENUE
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.maintained import Maintained

from headrace.algebra.schema import Column
from headrace.cost.cost_model import differential_seconds, full_seconds
from headrace.cost.mode_choice import PROBE_EVERY, _detail, _prefers_full, choose
from headrace.definitions.details import Details, SourceUse
from headrace.physical.facts import Facts, SourceFacts
from headrace.reasons import FullReason
from headrace.results.refresh_results import Mode, RefreshMode
from headrace.semantics import Semantics
from headrace.statistics.calibration import Calibration


@pytest.mark.parametrize(
    ("calibration", "expected", "model", "full"),
    [
        (Calibration(), (1.0, 2.0), True, True),
        (Calibration(), (2.0, 1.0), False, False),
        # history overrules the model
        (Calibration(1.0, 4.0), (1.0, 2.0), False, True),
        # but not for ever
        (Calibration(1.0, 4.0, 0, PROBE_EVERY), (1.0, 2.0), False, False),
        (Calibration(4.0, 1.0, PROBE_EVERY, 0), (2.0, 1.0), True, True),
        # unless it would be dear
        (Calibration(1.0, 9.0, 0, PROBE_EVERY), (1.0, 9.0), False, True),
        (Calibration(1.0, 4.0, 0, PROBE_EVERY - 1), (1.0, 2.0), False, True),
        # what history says nothing about is tried where it may be better
        (Calibration(1.0, None, 0, PROBE_EVERY), (1.0, 1.9), True, False),
        (Calibration(None, 1.0, PROBE_EVERY, 0), (1.9, 1.0), False, True),
        (Calibration(1.0, None, 0, PROBE_EVERY), (1.0, 2.1), True, True),
        (Calibration(1.0, 1.0, 0, PROBE_EVERY), (1.0, 1.9), True, True),
        # not where nothing is ever learnt
        (Calibration(None, None, 0, PROBE_EVERY), (1.0, 1.9), True, True),
    ],
)
def test_the_choice(calibration: Calibration, expected: tuple[float, float], model: bool, full: bool) -> None:
    assert _prefers_full(calibration, expected, model) is full


def test_why_full_is_told_in_words() -> None:
    def words(expected: tuple[float, float], full: float | None = 1.0, **more: bool) -> str:
        return _detail(replace(facts(), calibration=Calibration(full, 1.0), **more), expected)  # type: ignore[arg-type]

    assert words((1.0, 2.0)).endswith("DIFFERENTIAL at 2.0 s")
    assert words((1.0, 2.0), companion_behind=True).endswith("writing its companion again takes")
    assert words((2.0, 1.0)).endswith("tried to see whether that still holds")
    assert words((2.0, 1.0), None).endswith("tried to see how long it takes")


@pytest.mark.parametrize(
    ("calibration", "corrected"),
    [
        (Calibration(), (1.0, 1.0)),
        (Calibration(4.0, 0.2), (4.0, 0.2)),
        # a machine is slower by so much, not a query
        (Calibration(1.2, None), (1.2, 1.2)),
        (Calibration(None, 0.8), (0.8, 0.8)),
        (Calibration(4.0, None), (4.0, 1.5)),
        (Calibration(None, 0.2), (1 / 1.5, 0.2)),
    ],
)
def test_what_was_never_measured_is_as_slow_as_the_machine(
    calibration: Calibration, corrected: tuple[float, float]
) -> None:
    assert calibration.either == corrected


TABLES = (Table("t", (Column("g", "int"), Column("v", "int")), ()),)
VIEW = Maintained(DuckExecutor(), Case("SELECT g, sum(v) AS v FROM t GROUP BY g", TABLES)).view


def facts(**change: bool) -> Facts:
    """Of a query over one large table a little of which changed."""
    (name,) = VIEW.sources
    uses = (SourceUse(name, (Column("g", "int"), Column("v", "int"))),)
    details = Details(VIEW.query, (), Semantics(), VIEW.output, uses, {}, (), VIEW.companion)
    source = SourceFacts(name, "t", "t", 2, "change", change_rows=10, rows=500_000_000, **change)  # type: ignore[arg-type]
    return Facts(REVENUE, details, RefreshMode.AUTO, (source,), 100, None, None, 1)


PROGRAM = VIEW.delta_program(frozenset(VIEW.sources))


def with_companion(rows: int, changed: int, **more: object) -> Facts:
    """Of a query over one table with a companion of a hundred groups."""
    known = facts(logged=True)
    source = replace(known.sources[0], rows=rows, change_rows=changed)
    return replace(known, **{"companion": REVENUE, "companion_rows": 100, "sources": (source,), **more})  # type: ignore[arg-type]


SMALL, LARGE = 10_000, 500_000_000


@pytest.mark.parametrize(
    ("of", "mode", "reason", "left"),
    [
        # following costs more than all that there is
        (with_companion(SMALL, 10), Mode.FULL, FullReason.COST, True),
        (with_companion(SMALL, 10, companion_behind=True), Mode.FULL, FullReason.COST, True),
        # a large change of a large table: small ones may come
        (with_companion(LARGE, LARGE), Mode.FULL, FullReason.COST, False),
        (with_companion(LARGE, LARGE, recomputed=3), Mode.FULL, FullReason.COST, False),
        # until none has for so long that writing the companion has cost as much as FULL instead of DIFFERENTIAL once
        (with_companion(LARGE, LARGE, recomputed=1_000), Mode.FULL, FullReason.COST, True),
        (with_companion(LARGE, LARGE, companion_behind=True), Mode.FULL, FullReason.COST, True),
        (with_companion(LARGE, 10), Mode.DIFFERENTIAL, None, False),
        (with_companion(LARGE, 10, companion_behind=True), Mode.FULL, FullReason.COMPANION_BEHIND, False),
        # whatever it costs
        (with_companion(SMALL, 10, refresh_mode=RefreshMode.DIFFERENTIAL), Mode.DIFFERENTIAL, None, False),
        (
            with_companion(SMALL, 10, refresh_mode=RefreshMode.DIFFERENTIAL, companion_behind=True),
            Mode.FULL,
            FullReason.COMPANION_BEHIND,
            False,
        ),
        (with_companion(LARGE, 10, refresh_mode=RefreshMode.FULL), Mode.FULL, FullReason.FORCED, True),
        (with_companion(SMALL, 10, forced=True), Mode.FULL, FullReason.FORCED, False),
        (with_companion(SMALL, 10, forced=True, companion_behind=True), Mode.FULL, FullReason.FORCED, False),
        (with_companion(SMALL, 10, forced=True, refresh_mode=RefreshMode.FULL), Mode.FULL, FullReason.FORCED, False),
        # a table without one has nothing to leave
        (with_companion(LARGE, 10, refresh_mode=RefreshMode.FULL, companion=None), Mode.FULL, FullReason.FORCED, False),
    ],
)
def test_when_the_companion_is_left_behind(of: Facts, mode: Mode, reason: FullReason | None, left: bool) -> None:
    choice = choose(of, VIEW, PROGRAM)
    assert (choice.mode, choice.reason, choice.leaves_companion) == (mode, reason, left)


def test_what_is_left_behind_is_not_counted() -> None:
    left, written = (choose(with_companion(SMALL, 10, forced=f), VIEW, PROGRAM).full_seconds for f in (False, True))
    assert left is not None
    assert written is not None
    assert left < written


def test_to_write_it_again_must_pay_soon() -> None:
    """Where both modes cost nearly the same, going to and fro would cost more than either."""
    for rows in range(1_000_000, 60_000_000, 1_000_000):
        there = choose(with_companion(rows, 10), VIEW, PROGRAM)
        if there.mode is Mode.DIFFERENTIAL:
            behind = choose(with_companion(rows, 10, companion_behind=True), VIEW, PROGRAM)
            assert behind.reason is FullReason.COST
            return
    raise AssertionError("no size is followed")


def test_following_is_tried_half_as_often_where_the_companion_comes_first() -> None:
    calibration, size = Calibration(full=1.0, differential_age=PROBE_EVERY), 20_000_000
    there = with_companion(size, size // 22, calibration=calibration, recomputed=PROBE_EVERY)
    assert choose(replace(there, calibration=replace(calibration, differential_age=0)), VIEW, PROGRAM).mode is Mode.FULL
    assert choose(there, VIEW, PROGRAM).mode is Mode.DIFFERENTIAL
    behind = replace(there, companion_behind=True)
    assert choose(behind, VIEW, PROGRAM).reason is FullReason.COST
    assert choose(replace(behind, recomputed=2 * PROBE_EVERY), VIEW, PROGRAM).reason is FullReason.COMPANION_BEHIND


def test_kinds_of_changes_that_take_turns_do_not_have_it_written_each_time() -> None:
    """One that is dear to follow and one that is cheap: the cheap ones are followed, or it is rarely left behind."""
    behind, row, ran = False, 0, []
    for turn in range(200):
        size = with_companion(100_000_000, 60_000_000 if turn % 2 else 10)
        choice = choose(replace(size, companion_behind=behind, recomputed=row), VIEW, PROGRAM)
        row = row + 1 if choice.reason is FullReason.COST else 0
        behind = behind if choice.mode is Mode.DIFFERENTIAL else choice.leaves_companion
        ran.append(choice.reason)
    assert ran == [None, FullReason.COST] * 100


def test_a_change_that_says_nothing_needs_no_companion() -> None:
    choice = choose(with_companion(LARGE, 10, companion_behind=True), VIEW, None)
    assert choice.mode is Mode.DIFFERENTIAL


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
