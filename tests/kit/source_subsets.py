"""Histories in which only some sources change: each by itself, and sets of them where they are few."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from kit.case import Case, Row, Table, Weighted, Window
from kit.long_tests import LONG

MOST = 4
"""Up to so many sources sets of them change by themselves: each set, but of the most sources without those of three."""


ROWS = 3
"""So many rows of a table are taken away, and put back the next time."""


def one_by_one(windows: Sequence[Window]) -> Iterator[Window]:
    """The same history with one changed source a window; the first one takes turns."""
    for number, window in enumerate(windows):
        names = sorted(window)
        turn = number % len(names) if names else 0
        for name in (*names[turn:], *names[:turn]):
            yield {name: window[name]}


def subsets(tables: Sequence[Table]) -> Iterator[Window]:
    """Windows in which each set of sources loses some rows, or gets them back, as they are before any history.

    Each source changes by itself twice: groups and partners come and go for it. Of up to three sources every other set
    changes once, in which some sources lose rows while others gain them; of four, pairs and all together. The long
    tests go through all sets, both ways.
    """
    # the clock has a row at all times; histories move it
    toggles = {table.name: _Toggle(table) for table in tables if table.rows and table.name != "clock"}
    sizes: Sequence[int] = range(1, len(toggles) + 1) if len(toggles) <= MOST else (1,)
    if len(toggles) == MOST and not LONG:
        sizes = (1, 2, MOST)
    chosen = [names for size in sizes for names in combinations(sorted(toggles), size)]
    again = chosen if LONG else [names for names in chosen if len(names) == 1]
    for names in (*chosen, *(reversed(again) if len(toggles) <= MOST else ())):
        yield {name: toggles[name].change() for name in names}


class _Toggle:
    """Takes rows of a table away, and puts them back."""

    def __init__(self, table: Table) -> None:
        self._rows = list(table.rows)
        self._gone: list[Row] = []
        self._turn = 0

    def change(self) -> tuple[Weighted, ...]:
        if self._gone:
            back, self._gone = self._gone, []
            self._rows += back
            return tuple((1, row) for row in back)
        start = self._turn % len(self._rows)
        self._turn += ROWS
        self._gone = [self._rows[(start + i) % len(self._rows)] for i in range(min(ROWS, len(self._rows)))]
        for row in self._gone:
            self._rows.remove(row)
        return tuple((-1, row) for row in self._gone)


def histories(case: Case) -> Iterator[Case]:
    """A case's own history, a source at a time; and the sets of its sources."""
    if case.windows:
        yield Case(case.query, case.tables, tuple(one_by_one(case.windows)))
    yield Case(case.query, case.tables, tuple(subsets(case.tables)))
