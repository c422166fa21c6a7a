"""Atomic diamonds on Spark: together or not at all, each member reading what the others have staged."""

from __future__ import annotations

import datetime as dt
import threading

import pytest
from kit.waiting import until

from headrace.api.facade import Headrace
from headrace.catalog import resource_of
from headrace.errors import HeadraceError
from headrace.events import Event, StageStarted

DIAMOND = """
CREATE TABLE {ns}.a (k BIGINT, g BIGINT, v BIGINT) USING iceberg;
INSERT INTO {ns}.a VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30);
CREATE STREAM TABLE {ns}.b REFRESH MODE DIFFERENTIAL AS SELECT k, g, v FROM {ns}.a WHERE v > -1;
CREATE STREAM TABLE {ns}.c REFRESH MODE DIFFERENTIAL
    AS SELECT g, count(*) AS n, sum(1000 DIV v) AS parts FROM {ns}.a GROUP BY g;
CREATE STREAM TABLE {ns}.d REFRESH MODE DIFFERENTIAL {options}
    AS SELECT b.k, c.n, 1000 DIV (b.v - 77) AS x FROM {ns}.b JOIN {ns}.c ON b.g = c.g
"""


@pytest.fixture
def diamond(hr: Headrace, ns: str) -> tuple[str, ...]:
    hr.sql(DIAMOND.format(ns=ns, options=""))
    return tuple(f"{ns}.{name}" for name in "bcd")


def versions(hr: Headrace, names: tuple[str, ...]) -> list[int | None]:
    return [t.version for t in hr.status(names)]


def test_a_group_is_published_in_one_transaction(hr: Headrace, ns: str, diamond: tuple[str, ...]) -> None:
    (group,) = [g for g in hr.diamond_groups() if g.name == f"{ns}.d"]
    assert (group.members, group.converge, group.epoch) == (diamond, (f"{ns}.d",), 0)
    past: dict[int, list[int | dt.datetime]] = {}
    for rows, number in ((4, 100), (5, 101)):
        hr.sql(f"INSERT INTO {ns}.a VALUES ({number}, 2, {number})")
        assert hr.refresh(f"{ns}.b").rows_inserted == 1  # whoever asks for one member refreshes the group
        last = hr.history(limit=3)
        assert {row.name for row in last} == set(diamond)
        assert len({row.publication for row in last}) == 1
        assert {row.mode.value for row in last} == {"DIFFERENTIAL"}
        assert {row.epoch for row in last} == {rows - 3}
        past[rows] = [last[0].publication or 0, dt.datetime.now(dt.UTC)]
    for rows, moments in past.items():  # the whole pipeline as it was then, its source included
        counts = "(SELECT count(*) FROM {ns}.a), (SELECT count(*) FROM {ns}.b), (SELECT sum(n) FROM {ns}.c), "
        counts += "(SELECT count(*) FROM {ns}.d)"
        for moment in moments:
            assert tuple(hr.at(moment).sql(f"SELECT {counts.format(ns=ns)}").first() or ()) == 4 * (rows,), moment
    assert all(v.ok for v in hr.verify(diamond))
    assert next(g for g in hr.diamond_groups() if g.name == f"{ns}.d").epoch == 2
    assert [info.epoch for info in hr.status(diamond)] == [2, 2, 2]
    assert all(r.mode.value == "NO_CHANGE" for r in hr.refresh(diamond))


@pytest.mark.parametrize(("failing", "value"), [("c", 0), ("d", 77)])
def test_when_a_member_fails_nothing_is_seen_of_any(
    hr: Headrace, ns: str, diamond: tuple[str, ...], failing: str, value: int
) -> None:
    before = versions(hr, diamond)
    hr.sql(f"INSERT INTO {ns}.a VALUES (9, 1, {value})")
    with pytest.raises(HeadraceError) as caught:
        hr.refresh(diamond)
    assert caught.value.code == "ARITHMETIC_ERROR"
    assert versions(hr, diamond) == before
    assert hr._catalog.dirty_staging() == ()
    failed, *others = hr.history(limit=1 + "bcd".index(failing))
    assert failed.name == f"{ns}.{failing}"
    assert {(row.name, row.ok, row.error_code) for row in others} == {
        (name, False, "ROLLED_BACK") for name in diamond[: "bcd".index(failing)]
    }
    assert all(f"as {failed.name} of its group failed" in (row.error_message or "") for row in others)
    hr.sql(f"DELETE FROM {ns}.a WHERE k = 9; INSERT INTO {ns}.a VALUES (4, 2, 40)")
    assert sum(r.rows_inserted for r in hr.refresh(diamond)) > 0
    assert all(v.ok for v in hr.verify(diamond))


def test_a_failure_in_the_last_step_publishes_nothing(hr: Headrace, ns: str, diamond: tuple[str, ...]) -> None:
    before = versions(hr, diamond)
    hr.sql(f"INSERT INTO {ns}.a VALUES (4, 2, 40)")
    resource, taken = resource_of(hr._name(f"{ns}.b")), []

    def steal(event: Event) -> None:
        if isinstance(event, StageStarted) and event.table == f"{ns}.d" and not taken:
            lease = hr._catalog.acquire([resource], "thief", dt.timedelta(seconds=60), is_dead=lambda _: True)
            taken.extend(lease)

    unsubscribe = hr.events.subscribe(steal)
    with pytest.raises(HeadraceError) as caught:
        hr.refresh(diamond)
    unsubscribe()
    assert caught.value.code == "LEASE_LOST"
    assert versions(hr, diamond) == before
    hr._catalog.release(taken)
    assert len(hr.refresh(diamond)) == 3
    assert all(v.ok for v in hr.verify(diamond))


def test_schedules_run_on_threads_of_one_session(hr: Headrace, ns: str, diamond: tuple[str, ...]) -> None:
    hr.sql(f"CREATE STREAM TABLE {ns}.e SCHEDULE 'ON CHANGE' AS SELECT g, max(k) AS k FROM {ns}.a GROUP BY g")
    hr.sql(f"CREATE STREAM TABLE {ns}.f SCHEDULE 'ON CHANGE' AS SELECT k + 1 AS k FROM {ns}.e")
    hr.sql(f"ALTER STREAM TABLE {ns}.d SET SCHEDULE 'ON CHANGE', SET PROPERTIES (pool = 'finance')")
    hr.pause(f"{ns}.e")
    (waits,) = hr.status([f"{ns}.f"])
    assert (waits.held_up, waits.target, waits.lag) == (f"{ns}.e is paused", None, 0.0)
    hr.resume(f"{ns}.e")
    stopping, names = threading.Event(), (*diamond, f"{ns}.e", f"{ns}.f")
    runner = threading.Thread(target=lambda: hr.run(stopping=stopping, max_concurrent=3))
    runner.start()
    try:
        for number in range(3):
            hr.sql(f"INSERT INTO {ns}.a VALUES ({50 + number}, {number}, {number + 1})")
            until(lambda: not any(t.behind for t in hr.status(names)))
    finally:
        stopping.set()
        runner.join(60)
    assert not runner.is_alive()
    assert all(v.ok for v in hr.verify(names))
    assert {e.event for e in hr.event_log(limit=1000)} >= {"scheduler_started", "refresh_finished", "group_published"}
