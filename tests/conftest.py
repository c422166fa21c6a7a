"""What several tiers need."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from catalog_kit.databases import Postgres, postgres_server
from hypothesis import settings
from kit.long_tests import LONG
from kit.turns import TURN, is_played

# No command of a test leaves a server with a JVM behind; tests of servers turn this off.
os.environ.setdefault("HEADRACE_NO_SERVE", "1")

# What `make test` says of a commit must hold tomorrow: its random cases are the same each time, and change with the
# generators only. Cases never seen before are what `make test-long` and HEADRACE_EXAMPLES look at.
settings.register_profile("repeatable", derandomize=True, deadline=None)
if not os.environ.keys() & {"HEADRACE_TEST_LONG", "HEADRACE_EXAMPLES"}:
    settings.load_profile("repeatable")

# A shell that starts the suite in the background has it ignore Ctrl-C, which tests send.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Plans and syntax trees are many small objects in no cycles: looking for cycles among them takes a fifth of the time.
gc.set_threshold(50_000, 20, 50)


def pytest_configure() -> None:
    """Refuse a turn that is none."""
    if TURN not in ("", "all") and not TURN.isdecimal():
        raise pytest.UsageError(f"HEADRACE_TEST_TURN is {TURN}; it is a number, or all.")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave tests that are marked `long` to `make test-long`, and those of other turns to other commits."""
    chosen, left = list[pytest.Item](), list[pytest.Item]()
    for item in items:
        due = (LONG or not item.get_closest_marker("long")) and is_played(item.nodeid)
        (chosen if due else left).append(item)
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = chosen


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """A real PostgreSQL, started once per session and only when a test asks for it."""
    with postgres_server() as server:
        yield server


_SECONDS: dict[str, float] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Add up what a test took, its fixtures included."""
    _SECONDS[report.nodeid] = _SECONDS.get(report.nodeid, 0.0) + report.duration


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Append how long each test took to the file that `make test` names; `scripts/slowest-tests` reads it."""
    if session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED and TURN not in ("", "all"):
        session.exitstatus = pytest.ExitCode.OK  # a tier of one test, which has its turn another time
    file = os.environ.get("HEADRACE_TEST_DURATIONS")
    if not file or hasattr(session.config, "workerinput"):  # workers report to their controller
        return
    with Path(file).open("a", encoding="utf-8") as lines:
        lines.writelines(f"{seconds:.3f}\t{name}\n" for name, seconds in _SECONDS.items())
