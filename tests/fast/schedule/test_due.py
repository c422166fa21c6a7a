"""Due-ness: a table is refreshed neither too late for its target, nor for nothing."""

import datetime as dt

import pytest

from headrace.schedule import parse_schedule
from headrace.schedule.due import Standing, due_at

NOON = dt.datetime(2026, 3, 2, 12, tzinfo=dt.UTC)


def ago(seconds):
    return NOON - dt.timedelta(seconds=seconds)


def due(schedule, standing, **more):
    moment = due_at(parse_schedule(schedule), standing, NOON, **more)
    return None if moment is None else (moment - NOON).total_seconds()


@pytest.mark.parametrize("schedule", ["1 minute", "@hourly", "ON CHANGE", "MANUAL", "DOWNSTREAM"])
def test_what_reflects_everything_is_never_due(schedule):
    assert due(schedule, Standing(True, None, ago(100_000))) is None


@pytest.mark.parametrize("schedule", ["1 minute", "@hourly", "ON CHANGE"])
def test_what_was_never_loaded_is_due_now(schedule):
    assert due(schedule, Standing(False, None)) == 0


@pytest.mark.parametrize("schedule", ["MANUAL", "DOWNSTREAM"])
def test_what_waits_for_others_is_not_due_by_itself(schedule):
    assert due(schedule, Standing(True, ago(9999))) is None
    assert due(schedule, Standing(False, None)) is None


@pytest.mark.parametrize(
    ("behind", "expected", "factor", "wait"),
    [
        (0, 0, 1, 60),  # a change of this moment may wait the whole minute
        (50, 0, 1, 10),
        (90, 0, 1, -30),  # overdue
        (0, 10, 1, 40),  # a refresh of 10 s begins early enough, twice over
        (0, 45, 1, 30),  # a slow one waits half the target all the same
        (0, 0, 4, 240),
    ],
)
def test_a_target_lag(behind, expected, factor, wait):
    assert due("1 minute", Standing(True, ago(behind), ago(500), expected), factor=factor) == wait


def test_on_change_keeps_its_pause():
    assert due("ON CHANGE EVERY 10 seconds", Standing(True, ago(3), ago(4))) == 6
    assert due("ON CHANGE EVERY 10 seconds", Standing(True, ago(3), ago(400))) == -3
    assert due("ON CHANGE", Standing(True, ago(3))) == -2


def test_cron_counts_from_the_last_refresh():
    assert due("0 * * * *", Standing(True, ago(60), ago(120))) == 0
    assert due("0 * * * *", Standing(True, ago(60), ago(7200 + 60))) == -7200  # missed points are one refresh
    assert due("30 12 * * *", Standing(True, ago(60), ago(120))) == 1800


def test_cron_counts_from_when_a_table_was_lined_up_and_a_pause_from_the_last_refresh():
    waited = Standing(True, ago(1800), ago(60), lined_up=ago(7200))
    assert due("30 * * * *", waited) == -5400
    assert due("ON CHANGE EVERY 1 hour", waited) == 3540


@pytest.mark.parametrize("schedule", ["30 * * * *", "ON CHANGE EVERY 10 minutes"])
def test_a_refresh_by_a_clock_that_was_ahead_silences_nothing(schedule):
    assert due(schedule, Standing(True, ago(3600), ago(-86400 * 365))) < 0


def test_lag_is_the_age_of_what_is_missing():
    assert Standing(True, ago(5)).lag(NOON) == 5
    assert Standing(True, None).lag(NOON) == 0
    assert Standing(True, NOON + dt.timedelta(seconds=1)).lag(NOON) == 0  # clocks differ
