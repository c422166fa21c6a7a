"""The time that moving filters read: one for all that is refreshed together, a version of its own in the catalog."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from catalog_kit.clock import ManualClock
from catalog_kit.ready import ready_catalog, ready_project
from kit.pipelines import full
from kit.watched import details

from headrace.api.facade import Headrace
from headrace.catalog import Catalog, Definition, Publication
from headrace.clock import TICK
from headrace.lake.clock_table import moment_of
from headrace.names import CLOCK
from headrace.observability.status import standings
from headrace.refresh.cut.cut import ASTRAY, Cut, Head


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def catalog(tmp_path: Path, clock: ManualClock) -> Iterator[Catalog]:
    with Catalog.open(ready_catalog(tmp_path / "headrace.db"), clock=clock) as opened:
        yield opened


def look(catalog: Catalog, tick: float | None = None) -> Head:
    cut = Cut(catalog, lambda _: None) if tick is None else Cut(catalog, lambda _: None, tick)
    (version,) = cut.versions([CLOCK]).values()
    head = cut.of([CLOCK], frozenset())[CLOCK]
    assert head.version.version == version
    return head


def test_each_cut_takes_the_time_once(catalog: Catalog, clock: ManualClock) -> None:
    cut = Cut(catalog, lambda _: None)
    first = cut.of([CLOCK], frozenset())[CLOCK]
    assert first.version.snapshot_id == moment_of(clock.now())
    clock.advance(5)
    assert cut.of([CLOCK], frozenset())[CLOCK] == first
    later = look(catalog)
    assert (later.version.version, later.version.snapshot_id) == (1, moment_of(clock.now()))


def test_schedulers_see_it_move_once_a_minute(catalog: Catalog, clock: ManualClock) -> None:
    first = look(catalog, TICK).version
    clock.advance(TICK - 1)
    assert look(catalog, TICK).version == first
    clock.advance(1)
    assert look(catalog, TICK).version.version == first.version + 1


@pytest.mark.parametrize(("behind", "goes_back"), [(5, False), (ASTRAY - 1, False), (ASTRAY + 1, True)])
def test_it_goes_back_only_from_where_no_clock_should_be(
    catalog: Catalog, clock: ManualClock, behind: float, goes_back: bool
) -> None:
    first = look(catalog).version
    clock.advance(-behind)
    found = look(catalog).version
    assert (found.snapshot_id == first.snapshot_id) is not goes_back
    assert found.version == first.version + goes_back


def test_users_see_the_time_and_no_table_of_it(tmp_path: Path) -> None:
    with Headrace(ready_project(tmp_path / "shop")) as hr:
        reads = (CLOCK, full("a"))
        recent = Definition(full("recent"), "SELECT k", reads, details=details("SELECT k", reads))
        hr._catalog.publish(Publication(definitions=(recent,)))
        assert set(hr.graph().names) == {full("a"), full("recent")}
        with hr._catalog.reading() as reader:
            (seen,) = standings(reader, {CLOCK: 3, full("a"): 0}, None).lines(eventual=False)
    assert seen.behind == ("the time", "s.a")
