"""When failed refreshes are tried again."""

import datetime as dt

import pytest

from headrace.error_codes.outages import OUTAGES
from headrace.error_codes.table import SECTIONS
from headrace.errors import EnvironmentFault
from headrace.scheduler.policy.backoff import retry_policy

NOW = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
LIMIT = 5


def policy(code):
    return retry_policy(EnvironmentFault(code, "It failed.", retryable=True), NOW, LIMIT)


@pytest.mark.parametrize(
    "code", ["CATALOG_UNREACHABLE", "CATALOG_LOCKED", "STORE_UNAVAILABLE", "DISK_FULL", "LAKE_UNREACHABLE"]
)
def test_an_outage_is_tried_again_for_ever_and_within_a_minute(code):
    again = [policy(code)(failures) for failures in (1, LIMIT, 1000)]
    assert all(at is not None and at - NOW < dt.timedelta(minutes=1) for at in again)


@pytest.mark.parametrize("code", ["COMMIT_CONFLICT", "SPARK_LOST", "EXECUTOR_LOST"])
def test_what_a_table_may_cause_itself_suspends_it_in_the_end(code):
    assert policy(code)(LIMIT - 1) is not None
    assert policy(code)(LIMIT) is None


def test_an_outage_may_pass():
    assert not [c.code for section in SECTIONS for c in section.codes if c.code in OUTAGES and c.retry == "no"]
