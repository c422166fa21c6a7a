"""How fast a table has been is told by its own part of what it read together with others."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest
from catalog_kit.samples import REVENUE, START
from kit.case import Case, Table
from kit.duck import DuckExecutor
from kit.maintained import Maintained
from kit.planned import facts_of, source

from headrace.algebra.schema import Column
from headrace.catalog import HistoryEntry, RanAs
from headrace.cost.mode_choice import Choice
from headrace.reasons import FullReason
from headrace.refresh.publication_builder import Finished, entry_of
from headrace.refresh.run_context import Outcome
from headrace.statistics.calibration import (
    FADING,
    MACHINES,
    MODEL,
    PACES,
    SHARED,
    SURE,
    WARM,
    Calibration,
    calibrated,
    recomputed,
)


@pytest.mark.parametrize(("seconds", "shared", "ratio"), [(4.0, 0.0, 2.0), (4.0, -2.0, 1.0), (1.0, 1.0, 1.0)])
def test_who_reads_for_others_is_no_slower_than_they(seconds: float, shared: float, ratio: float) -> None:
    metrics = {"estimate": 2.0, "model": MODEL, "session": WARM, SHARED: shared}
    entry = HistoryEntry(REVENUE, START, START + dt.timedelta(seconds=seconds), RanAs.DIFFERENTIAL, metrics=metrics)
    assert calibrated((entry,) * SURE).differential == ratio
    assert calibrated((entry,) * SURE).full is None


@pytest.mark.parametrize("metrics", [{"model": MODEL - 1}, {"session": WARM - 1}, {"estimate": None}])
def test_what_says_nothing_about_the_estimate_corrects_nothing(metrics: dict[str, object]) -> None:
    metrics = {"estimate": 2.0, "model": MODEL, "session": WARM, **metrics}
    entry = HistoryEntry(REVENUE, START, START + dt.timedelta(seconds=4), RanAs.FULL, metrics=metrics)
    assert calibrated((entry,)).full is None


def test_few_tell_no_more_than_how_fast_the_machine_is() -> None:
    metrics = {"estimate": 2.0, "model": MODEL, "session": WARM}
    entry = HistoryEntry(REVENUE, START, START + dt.timedelta(seconds=4), RanAs.FULL, metrics=metrics)
    assert calibrated((entry,) * SURE).full == 2.0
    assert calibrated((entry,)).full == MACHINES  # one slow sample is not believed


def _ran(mode: RanAs, seconds: float, **metrics: object) -> HistoryEntry:
    metrics = {"estimate": 1.0, "model": MODEL, "session": WARM, **metrics}
    return HistoryEntry(REVENUE, START, START + dt.timedelta(seconds=seconds), mode, metrics=metrics)


def _entry(known: Calibration, row: int = 0) -> HistoryEntry:
    """What is kept of a refresh, before which so much was known."""
    view = Maintained(DuckExecutor(), Case("SELECT v FROM t", (Table("t", (Column("v", "int"),), ()),))).view
    (name,) = view.sources
    facts = replace(facts_of(view, {name: source(name, 10, 1)}, state=10), calibration=known, recomputed=row)
    return entry_of(
        Finished(
            facts=facts,
            choice=Choice(RanAs.DIFFERENTIAL),
            outcome=Outcome(),
            generation=1,
            expected={},
            definition=None,
            started=START,
            ended=START,
        )
    )


def test_what_ran_long_ago_is_remembered() -> None:
    recent = (_ran(RanAs.DIFFERENTIAL, 1.0),) * 19
    assert calibrated((*recent, _entry(Calibration(4.0, 1.0)))).full == pytest.approx(4.0**FADING)
    assert calibrated((*recent, _entry(Calibration(None, 1.0)))).full is None
    assert (
        calibrated((_entry(Calibration(4.0, 1.0)), *recent)).full is None
    )  # it would count what the rest tells a second time
    assert calibrated((*recent, _ran(RanAs.DIFFERENTIAL, 1.0, model=MODEL - 1, **{PACES: {"FULL": 4.0}}))).full is None


@pytest.mark.parametrize("reason", [FullReason.FIRST_LOAD, FullReason.DEFINITION_CHANGED])
def test_what_another_query_taught_is_forgotten(reason: FullReason) -> None:
    anew = replace(_ran(RanAs.FULL, 1.0, **{PACES: {"FULL": 4.0}}), reason=reason.value)
    slow = (_ran(RanAs.FULL, 3.0),) * SURE
    assert calibrated((*slow, anew)).full == 3.0
    assert calibrated((anew, *slow)) == Calibration()
    assert calibrated((_ran(RanAs.DIFFERENTIAL, 1.0), anew, *slow)).full is None


def test_what_is_told_now_and_then_counts_half() -> None:
    recent = (_ran(RanAs.FULL, 1.0), *(_ran(RanAs.DIFFERENTIAL, 1.0),) * 18)
    assert calibrated((*recent, _entry(Calibration(4.0, 1.0)))).full == pytest.approx(2.0**FADING)
    assert calibrated((*recent[:1] * SURE, *recent, _entry(Calibration(4.0, 1.0)))).full == 1.0


def test_how_often_recomputing_has_been_cheaper_ends_with_what_was_not() -> None:
    cost = replace(_ran(RanAs.FULL, 1.0), reason=FullReason.COST)
    still, followed = _ran(RanAs.NO_CHANGE, 1.0), _ran(RanAs.DIFFERENTIAL, 1.0)
    again = replace(cost, reason=FullReason.COMPANION_BEHIND)
    assert recomputed((cost, still, cost, followed, cost)) == 2
    assert recomputed((still, cost, again, cost)) == 1
    assert recomputed((again, cost)) == recomputed(()) == 0
    oldest = replace(cost, metrics=_entry(Calibration(), 30).metrics)
    assert recomputed((cost, cost, oldest)) == 33
    assert recomputed((cost, followed, oldest)) == 1
