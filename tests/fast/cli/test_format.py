import datetime as dt
from decimal import Decimal

import pytest

from headrace.cli.render import format as fmt


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "–"),
        (0.0, "0 ms"),
        (0.0312, "31 ms"),
        (0.9994, "999 ms"),
        (0.9999, "1.00 s"),
        (1.254, "1.25 s"),
        (59.994, "59.99 s"),
        (59.996, "1 min 00 s"),
        (125.2, "2 min 05 s"),
    ],
)
def test_durations(seconds: float | None, text: str) -> None:
    assert fmt.seconds(seconds) == text


def test_counts_have_separators() -> None:
    assert fmt.count(6001215) == "6,001,215"
    assert fmt.count(None) == "–"
    assert fmt.signed(1200, 3) == "+1,200 −3"


@pytest.mark.parametrize(
    ("passed", "text"),
    [(0, "0 s ago"), (59, "59 s ago"), (60, "1 min ago"), (7200, "2 h ago"), (172_800, "2 d ago"), (-5, "0 s ago")],
)
def test_how_long_ago(passed: float, text: str) -> None:
    now = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)
    assert fmt.ago(now - dt.timedelta(seconds=passed), now) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "NULL"),
        (True, "true"),
        (Decimal("1.50"), "1.50"),
        (b"\x01\xff", "X'01FF'"),
        ([1, None], "[1, NULL]"),
        ({"a": 1}, "{a: 1}"),
    ],
)
def test_values_of_rows(value: object, text: str) -> None:
    assert fmt.cell(value) == text
