"""When watermarks agree, and what waits until they do."""

from __future__ import annotations

import datetime as dt

import pytest
from catalog_kit.samples import lake

from headrace.catalog import WatermarkGroup
from headrace.graph.dag import Dag
from headrace.refresh.cut.watermark_alignment import agrees, below, waiting

NOON = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
A, Z, OTHER = lake("s.a"), lake("s.z"), lake("s.other")
TABLES = {
    lake(f"s.{n}"): [lake(f"s.{r}") for r in reads] for n, reads in {"b": "a", "c": "z", "d": "bc", "e": "d"}.items()
}


def group(*minutes: int | None, tolerance: int = 5) -> WatermarkGroup:
    marks = [None if m is None else NOON + dt.timedelta(minutes=m) for m in minutes]
    return WatermarkGroup("loads", dt.timedelta(minutes=tolerance), dict(zip((A, Z, OTHER), marks, strict=False)))


@pytest.mark.parametrize(
    ("of", "agree"),
    [
        (group(0, 5), True),
        (group(5, 0), True),
        (group(0, 6), False),
        (group(0, 3, 6), False),
        (group(0, None), False),
        (group(None, None), False),
        (group(7, 7, tolerance=0), True),
    ],
)
def test_agreement(of: WatermarkGroup, agree: bool) -> None:
    assert agrees(of) is agree


def test_what_lies_below_two_sources_waits() -> None:
    dag = Dag(TABLES)
    assert below(group(0, 9), dag) == (lake("s.d"), lake("s.e"))
    assert set(waiting([group(0, 9)], dag, TABLES)) == {lake("s.d"), lake("s.e")}
    assert waiting([group(0, 0)], dag, TABLES) == {}
    assert below(group(0, 0, 0), Dag({lake("s.b"): [A]})) == ()
