"""The past of a table that is written all the time is kept more and more coarsely."""

from __future__ import annotations

import dataclasses
import datetime as dt

from headrace.lake.metadata import Snapshot, TableMeta
from headrace.lake.snapshot_retention import EVERY, Density, is_time, superfluous

BEGIN = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)
STATES = 5 * 3600


def table(count: int) -> TableMeta:
    """Each second has a state and, before it, a step towards it; the last one is not published yet."""
    times = [BEGIN + (n // 2) * SECOND for n in range(count)]
    snapshots = {
        n + 1: Snapshot(n + 1, n or None, n + 1, "append", int(at.timestamp() * 1000), 0, {})
        for n, at in enumerate(times)
    }
    return TableMeta("m", "u", "l", 3, count, snapshots, {0: ()}, {0: ()}, 0, {"named": 7})


META = table(2 * STATES + 2)
PUBLISHED = {2 * n + 2: BEGIN + n * SECOND for n in range(STATES)}
SHOWN = 2 * STATES
NOW = BEGIN + (STATES - 1) * SECOND


def kept(needed: frozenset[int] = frozenset(), busy_since: dt.datetime | None = None) -> set[int]:
    gone = superfluous(
        META, shown=SHOWN, published=PUBLISHED, needed=needed, now=NOW, busy_since=busy_since, density=Density()
    )
    assert list(gone) == sorted(gone)
    return META.snapshots.keys() - set(gone)


def test_few_are_left_of_many() -> None:
    left = kept()
    assert {SHOWN, SHOWN + 1, SHOWN + 2, 7} <= left
    assert 1_100 < len(left) < 1_200
    recent = {s for s, at in PUBLISHED.items() if NOW - at < Density().whole}
    assert recent <= left
    assert not {s - 1 for s in recent} & left - {7}


def test_ends_of_minutes_and_hours_can_still_be_read() -> None:
    left = kept()
    for minutes in range(75, 5 * 60):
        assert _state(BEGIN + minutes * 60 * SECOND) in left
    assert _state(BEGIN + 3600 * SECOND) in left
    assert _state(BEGIN + 30 * 60 * SECOND) not in left


def test_what_is_needed_or_may_be_read_stays() -> None:
    assert {100, 200} <= kept(frozenset({100, 200}))
    since = BEGIN + 3_000 * SECOND
    assert {s for s, at in PUBLISHED.items() if at >= since} <= kept(busy_since=since)


def test_a_second_time_nothing_goes() -> None:
    left = {n: META.snapshots[n] for n in kept()}
    meta = dataclasses.replace(META, snapshots=left)
    assert superfluous(meta, shown=SHOWN, published=PUBLISHED, needed=set(), now=NOW, density=Density()) == ()


def test_a_table_that_is_seldom_written_keeps_all() -> None:
    few = table(Density().few)
    assert superfluous(few, shown=few.current_snapshot_id, published={}, needed=set(), now=NOW, density=Density()) == ()


def test_it_is_time_every_so_many_commits() -> None:
    times = [is_time(table(n), table(n + 1)) for n in range(1, 3 * EVERY)]
    assert sum(times) == 3
    assert is_time(table(EVERY - 1), table(EVERY + 5))


def _state(at: dt.datetime) -> int:
    """What was published last at a time."""
    return max(s for s, published in PUBLISHED.items() if published <= at)
