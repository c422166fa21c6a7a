"""Schedules are read, and what is none is refused."""

import datetime as dt

import pytest

from headrace.errors import UserError
from headrace.schedule import Kind, parse_schedule, show_duration


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
    [
        "",
        " ",
        "soon",
        "1",
        "minute",
        "-1 minute",
        "1.5 hours",
        "0 seconds",
        "5 fortnights",
        "1 minute x",
        "400 days",
        pytest.param(5000 * "9" + " s", id="thousands of digits"),
    ],
)
def test_no_schedule(text):
    with pytest.raises(UserError) as caught:
        parse_schedule(text)
    assert caught.value.code == "INVALID_SCHEDULE"
    assert caught.value.hint


@pytest.mark.parametrize(
    ("text", "kind", "seconds"),
    [
        ("downstream", Kind.DOWNSTREAM, 0),
        (" MANUAL", Kind.MANUAL, 0),
        ("on change", Kind.ON_CHANGE, 1),
        ("ON CHANGE EVERY 1 minute 5s", Kind.ON_CHANGE, 65),
        ("@Hourly", Kind.CRON, 0),
        ("0 6 * * * utc", Kind.CRON, 0),
        ("0 6 * * MON-FRI Europe/Berlin", Kind.CRON, 0),
        ("*/15 * * * * *", Kind.CRON, 0),
    ],
)
def test_other_kinds(text, kind, seconds):
    schedule = parse_schedule(text)
    assert (schedule.kind, schedule.seconds) == (kind, seconds)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("61 * * * *", "bad minute"),
        ("0 0 30 2 *", "bad day-of-month"),  # no year has that day
        ("* * * LW 5 */7", "never comes"),  # the last working day of a month, if it is a Sunday
        ("* * * *", "no schedule"),
        ("0 0 * * * * *", "7 fields"),
        ("0 6 * * * Europe/Atlantis", "Europe/Atlantis"),
        ("0 6 * * * Atlantis", "Atlantis"),
        ("0 6 * * MOO", "bad day-of-week"),
        ("@fortnightly", "@hourly"),
        ("@hourly @daily", "nicknames"),
        ("ON CHANGE 5 s", "EVERY"),
        ("ON CHANGE EVERY", "no schedule"),
        ("ON CHANGE EVERY 0 s", "between"),
    ],
)
def test_what_is_wrong_is_said(text, words):
    with pytest.raises(UserError, match="INVALID_SCHEDULE") as caught:
        parse_schedule(text)
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("text", "after", "at"),
    [
        ("0 6 * * * Europe/Berlin", "2026-01-10T00:00", "2026-01-10T05:00"),
        ("0 6 * * * Europe/Berlin", "2026-07-10T00:00", "2026-07-10T04:00"),
        ("30 2 * * * Europe/Berlin", "2026-03-28T12:00", "2026-03-29T01:00"),  # the clock skips 2:30: right after
        ("30 2 * * * Europe/Berlin", "2026-10-25T00:45", "2026-10-26T01:30"),  # the clock has 2:30 twice: once
        ("30 2 * * * Europe/Berlin", "2026-10-25T01:10", "2026-10-26T01:30"),
        ("0 6 * * * Etc/GMT+1", "2026-01-10T00:00", "2026-01-10T07:00"),
        ("0 6 * * * CET", "2026-01-10T00:00", "2026-01-10T05:00"),
        ("0 6 * * MON-FRI EST5EDT", "2026-01-09T12:00", "2026-01-12T11:00"),
        ("@daily CET", "2026-01-10T00:00", "2026-01-10T23:00"),
        ("0 0 6 * * MON-FRI/2", "2026-01-09T12:00", "2026-01-12T06:00"),
        ("0 6 * * MON", "2026-01-09T12:00", "2026-01-12T06:00"),
        ("@monthly", "2026-01-01T00:00", "2026-02-01T00:00"),
        ("*/20 * * * * *", "2026-01-01T00:00:05", "2026-01-01T00:00:20"),
    ],
)
def test_cron_means_local_time(text, after, at):
    cron = parse_schedule(text).cron
    moment = dt.datetime.fromisoformat(after).replace(tzinfo=dt.UTC)
    assert cron.next_after(moment).isoformat() == dt.datetime.fromisoformat(at).replace(tzinfo=dt.UTC).isoformat()


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.25, "0.2 s"), (45, "45 s"), (90, "1 min 30 s"), (7200, "2 h"), (90061, "1 d 1 h")]
)
def test_durations_are_shown(seconds, text):
    assert show_duration(seconds) == text
