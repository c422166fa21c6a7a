"""How fast a table has been is told by its own part of what it read together with others."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest
from catalog_kit.samples import REVENUE, START

from headrace.catalog import HistoryEntry, RanAs
from headrace.engine.facts import MACHINES
from headrace.engine.pace import MODEL, SHARED, SURE, WARM, pace
from headrace.reasons import FullReason


@pytest.mark.parametrize(("seconds", "shared", "ratio"), [(4.0, 0.0, 2.0), (4.0, -2.0, 1.0), (1.0, 1.0, 1.0)])
def test_who_reads_for_others_is_no_slower_than_they(seconds: float, shared: float, ratio: float) -> None:
    metrics = {"estimate": 2.0, "model": MODEL, "session": WARM, SHARED: shared}
    entry = HistoryEntry(REVENUE, START, START + dt.timedelta(seconds=seconds), RanAs.DIFFERENTIAL, metrics=metrics)
    assert pace((entry,) * SURE).differential == ratio
    assert pace((entry,) * SURE).full is None


@pytest.mark.parametrize("metrics", [{"model": MODEL - 1}, {"session": WARM - 1}, {"estimate": None}])
def test_what_says_nothing_about_the_estimate_corrects_nothing(metrics: dict[str, object]) -> None:
    metrics = {"estimate": 2.0, "model": MODEL, "session": WARM, **metrics}
    entry = HistoryEntry(REVENUE, START, START + dt.timedelta(seconds=4), RanAs.FULL, metrics=metrics)
    assert pace((entry,)).full is None


def test_a_first_load_says_nothing() -> None:
    metrics = {"estimate": 2.0, "model": MODEL, "session": WARM}
    entry = HistoryEntry(REVENUE, START, START + dt.timedelta(seconds=4), RanAs.FULL, metrics=metrics)
    assert pace((entry,) * SURE).full == 2.0
    assert pace((entry,)).full == MACHINES  # one slow sample is not believed
    assert pace((replace(entry, reason=FullReason.FIRST_LOAD.value),)).full is None
