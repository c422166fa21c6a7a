"""Whether a process is ready that runs schedules."""

from __future__ import annotations

import datetime as dt

import pytest

from headrace.graph.dag import Dag
from headrace.observability.metrics.project_state import ProjectState
from headrace.refresh.held_leases import new_owner
from headrace.serve.monitoring.readiness import readiness


@pytest.mark.parametrize(
    ("schedulers", "ready"),
    [
        ({}, False),
        ({"another-host:17:0a1b2c3d": False}, False),
        ({"another-host:17:0a1b2c3d": True, new_owner(): False}, True),
        ({"another-host:17:0a1b2c3d": False, new_owner(): True}, False),
    ],
)
def test_the_scheduler_of_this_process_counts(schedulers: dict[str, bool], ready: bool) -> None:
    """Where one of two pods runs no schedules, the other's scheduler does not make it ready."""
    state = ProjectState(at=dt.datetime.now(dt.UTC), version="0", schedulers=schedulers)
    assert readiness(state, Dag({}), owner=True)[0] is ready
    assert readiness(state, Dag({}), owner=False)[0]
