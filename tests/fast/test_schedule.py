"""Schedules are read, and what is none is refused."""

import pytest

from headrace.errors import UserError
from headrace.schedule import parse_schedule


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1 minute", 60),
        ("30 seconds", 30),
        ("90s", 90),
        (" 1h30m ", 5400),
        ("1 Hour 5 MINUTES", 3900),
        ("2 days", 172800),
        ("1w", 604800),
        ("5 mins", 300),
    ],
)
def test_a_duration(text, seconds):
    schedule = parse_schedule(text)
    assert (schedule.text, schedule.seconds) == (text.strip(), seconds)


@pytest.mark.parametrize(
    "text",
    ["", " ", "soon", "1", "minute", "-1 minute", "1.5 hours", "0 seconds", "5 fortnights", "1 minute x", "400 days"],
)
def test_no_duration(text):
    with pytest.raises(UserError) as caught:
        parse_schedule(text)
    assert caught.value.code == "INVALID_SCHEDULE"
    assert caught.value.hint
