"""Random queries and histories: after every refresh, maintained equals recomputed.

A failing case is printed, reduced to the smallest, as a script that runs on its own. HEADRACE_EXAMPLES=20 looks at
twenty times as many, and so do the long tests.
"""

from __future__ import annotations

import os
from contextlib import suppress

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis.errors import UnsatisfiedAssumption
from kit.case import Case
from kit.duck import DuckExecutor
from kit.long_tests import LONG
from kit.maintained import Maintained, replay
from kit.queries import cases

EXECUTOR = DuckExecutor()
TIMES = int(os.environ.get("HEADRACE_EXAMPLES", "20" if LONG else "1"))
FAST = settings(deadline=None, suppress_health_check=list(HealthCheck), print_blob=False)


def check(case: Case) -> None:
    try:
        replay(EXECUTOR, case)
    except Exception:
        note(case.script())
        raise


@settings(FAST, max_examples=9 * TIMES)
@given(cases(depth=1))
def test_shallow_queries(case: Case) -> None:
    check(case)


@settings(FAST, max_examples=5 * TIMES)
@given(cases(depth=3, windows=2))
def test_deep_queries(case: Case) -> None:
    check(case)


@settings(FAST, max_examples=6 * TIMES)
@given(cases(depth=2, windows=3))
def test_one_window_or_many_come_to_the_same(case: Case) -> None:
    """Refreshing less often changes what consumers see in between, not what they see in the end."""
    joined: dict[str, tuple[tuple[int, tuple[object, ...]], ...]] = {}
    for window in case.windows:
        for name, rows in window.items():
            joined[name] = joined.get(name, ()) + rows
    try:
        view = Maintained(EXECUTOR, case)
        for window in case.windows:
            view.step(window)
        once = Maintained(EXECUTOR, case, companion_rows=1_000_000)
        once.step(joined)
        assert once.state == view.state
        added, removed = once.split() if once.moved else (once.moved, once.moved)
        assert added == +once.moved
        assert removed == -once.moved
        assert not once.difference()
    except Exception:
        note(case.script())
        raise


def test_a_failing_case_is_printed_as_a_script_that_fails_likewise(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reduced case of a broken rule runs on its own, and is short."""
    from headrace.algebra.relations import Join
    from headrace.compiler import derive
    from headrace.ivm.change import Change, arrange
    from headrace.ivm.rules import registry

    def forgetful(join: Join, change: Change) -> object:
        side = join.left if change.touches(join.left) else join.right
        others = {join.left: change.after(join.left), join.right: change.after(join.right), side: change.of(side)}
        return arrange(join.with_inputs(others[join.left], others[join.right]), join.columns)

    monkeypatch.setattr(derive, "RULES", {**registry.RULES, Join: forgetful})
    found: list[str] = []

    @settings(
        FAST,
        max_examples=400,
        phases=[Phase.generate],
        derandomize=True,
        database=None,
        report_multiple_bugs=False,  # the first will do
    )
    @given(cases(depth=0, windows=2))
    def hunt(case: Case) -> None:
        try:
            replay(EXECUTOR, case)
        except UnsatisfiedAssumption:  # not maintained, and rightly so
            raise
        except Exception:
            found.append(case.script())
            raise

    with suppress(Exception):
        hunt()
    assert found
    script = min(found, key=len)
    compile(script, "case.py", "exec")
    with pytest.raises(Exception, match=r"missing|STATE_DIVERGED|is read|disagree"):
        exec(script.replace("DuckExecutor()", "EXECUTOR"), {"EXECUTOR": EXECUTOR})


@settings(FAST, max_examples=10 * TIMES)
@given(cases(depth=1))
def test_rows_that_only_come_need_no_second_look(case: Case) -> None:
    """Windows that only add rows take the way for gained rows."""
    gains = tuple(
        {name: tuple((w, row) for w, row in rows if w > 0) for name, rows in window.items()} for window in case.windows
    )
    check(Case(case.query, case.tables, gains))
