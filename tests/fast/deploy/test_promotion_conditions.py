"""Conditions as users write them: read, and refused with the choices there are."""

from __future__ import annotations

import datetime as dt

import pytest

from headrace.deploy.unattended.promotion_conditions import parse_conditions
from headrace.errors import UserError


def test_they_are_read() -> None:
    found = parse_conditions(
        {
            "Window": "22:30-02:00",
            "verify": "TRUE",
            "keep_fresh": "false",
            "lag_threshold": "1m30s",
            "check": "SELECT 1",
            "check_few": "SELECT 2",
            "watch": "1 hour",
            "on_trouble": "TELL",
        }
    )
    options = found.options
    assert (options.verify, options.force, options.keep_fresh, options.on_trouble) == (True, False, False, "tell")
    assert (options.lag_threshold, options.watch) == (dt.timedelta(seconds=90), dt.timedelta(hours=1))
    assert options.checks == {"check": "SELECT 1", "few": "SELECT 2"}
    at = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    opened = [found.window.is_open(at.replace(hour=h, minute=m)) for h, m in ((22, 0), (23, 0), (1, 59), (2, 0))]
    assert opened == [False, True, True, False]


@pytest.mark.parametrize(
    "texts",
    [
        {"windows": "02:00-04:00"},
        {"window": "tonight"},
        {"window": "02:00-02:00"},
        {"window": "26:00-27:00"},
        {"window": "/"},
        {"window": "2026-01-02T00:00Z/2026-01-01T00:00Z"},
        {"verify": "perhaps"},
        {"watch": "soon"},
        {"check_": "SELECT 1"},
        {"on_trouble": "panic"},
        {"watch": "2 days"},  # longer than what is kept
    ],
)
def test_what_makes_no_sense_is_refused(texts: dict[str, str]) -> None:
    with pytest.raises(UserError) as refused:
        parse_conditions(texts)
    assert refused.value.code == "INVALID_OPTION"
    assert refused.value.hint
