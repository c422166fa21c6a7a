"""Thousands of histories: after every refresh, maintained equals recomputed."""

from __future__ import annotations

from hypothesis import HealthCheck, given, note, settings

from kit.case import Case
from kit.duck import DuckExecutor
from kit.maintained import replay
from kit.queries import cases

_EXECUTOR = DuckExecutor()


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck), print_blob=False)
@given(cases())
def test_maintained_equals_recomputed(case: Case) -> None:
    try:
        replay(_EXECUTOR, case)
    except Exception:
        note(case.script())
        raise
