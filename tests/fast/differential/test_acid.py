"""Histories that are known to be hard; each is a text of the same name in `acid/`."""

from __future__ import annotations

from pathlib import Path

import pytest
from kit.case import Case
from kit.duck import DuckExecutor
from kit.fixture import parse, shown
from kit.long_tests import one_in
from kit.maintained import Maintained, replay

EXECUTOR = DuckExecutor()
FIXTURES = sorted((Path(__file__).parent / "acid").glob("*.txt"))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda path: path.stem)
def test_acid(path: Path) -> None:
    fixture = parse(path.read_text())
    view = Maintained(EXECUTOR, fixture.case)
    for window, expected in zip(fixture.case.windows, fixture.expected, strict=True):
        assert shown(view.step(window)) == expected


@pytest.mark.parametrize("path", one_in(2, FIXTURES), ids=lambda path: path.stem)
def test_acid_backwards(path: Path) -> None:
    """The same history, undone window by window, takes back exactly what it gave."""
    case = parse(path.read_text()).case
    view = Maintained(EXECUTOR, case, companion_rows=1_000_000)
    given = [view.step(window) for window in case.windows]
    for window, change in zip(reversed(case.windows), reversed(given), strict=True):
        undone = view.step({name: tuple((-w, row) for w, row in rows[::-1]) for name, rows in window.items()})
        assert undone == type(change)({row: -weight for row, weight in change.items()})


@pytest.mark.parametrize("path", one_in(2, FIXTURES, 1), ids=lambda path: path.stem)
def test_acid_in_one_window(path: Path) -> None:
    """The windows of a history as one."""
    case = parse(path.read_text()).case
    joined: dict[str, tuple[tuple[int, tuple[object, ...]], ...]] = {}
    for window in case.windows:
        for name, rows in window.items():
            joined[name] = joined.get(name, ()) + rows
    replay(EXECUTOR, Case(case.query, case.tables, (joined,)))


SUMS = [path for path in FIXTURES if "DECIMAL" in path.read_text()]


@pytest.mark.parametrize("path", SUMS, ids=lambda path: path.stem)
def test_acid_without_ansi_mode(path: Path) -> None:
    """Where a sum may become NULL by outgrowing its type, groups with such a sum are looked at again."""
    fixture = parse(path.read_text())
    view = Maintained(EXECUTOR, fixture.case, ansi=False)
    for window, expected in zip(fixture.case.windows, fixture.expected, strict=True):
        assert shown(view.step(window)) == expected
