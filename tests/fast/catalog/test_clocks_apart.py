"""Hosts whose clocks differ by minutes: leases, schedulers and fencing hold by the database server's clock."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator

import pytest
from catalog_kit.databases import Postgres
from catalog_kit.samples import REVENUE, create

from headrace.catalog import Catalog, resource_of
from headrace.clock import SystemClock
from headrace.errors import EnvironmentFault
from headrace.refresh import held_leases

RESOURCE = resource_of(REVENUE)
TTL = dt.timedelta(seconds=30)
SHORT = dt.timedelta(milliseconds=300)


class Apart(SystemClock):
    """The clock of a host that is not right.

    Args:
        minutes: By how much it is ahead.
    """

    def __init__(self, minutes: float) -> None:
        self._ahead = dt.timedelta(minutes=minutes)

    def now(self) -> dt.datetime:
        return super().now() + self._ahead


@pytest.fixture(params=[7, -7], ids=["ahead", "behind"])
def hosts(request: pytest.FixtureRequest, postgres: Postgres) -> Iterator[tuple[Catalog, Catalog]]:
    """A host whose clock is right, and one whose clock is not, on one catalog."""
    url = postgres.fresh()
    with Catalog.open(url) as right, Catalog.open(url, clock=Apart(request.param)) as wrong:
        yield right, wrong


def test_a_live_lease_is_live_for_all_and_expires_for_all(hosts: tuple[Catalog, Catalog]) -> None:
    for here, there in (hosts, hosts[::-1]):
        leases = here.acquire([RESOURCE], "here:1:a", TTL, is_dead=held_leases.owner_is_dead)
        with pytest.raises(EnvironmentFault, match="LEASE_HELD"):
            there.acquire([RESOURCE], "there:1:b", TTL, is_dead=held_leases.owner_is_dead)
        assert here.held_resources() == there.held_resources() == {RESOURCE}
        here.heartbeat(leases, SHORT)
        time.sleep(SHORT.total_seconds() * 2)
        assert here.held_resources() == there.held_resources() == frozenset()
        taken = there.acquire([RESOURCE], "there:1:b", TTL)
        assert taken[0].token == leases[0].token + 1
        with pytest.raises(EnvironmentFault, match="LEASE_LOST"):  # the first one slept through it: it is fenced off
            here.heartbeat(leases, TTL)
        there.release(taken)


def test_schedulers_know_of_each_other(hosts: tuple[Catalog, Catalog]) -> None:
    right, wrong = hosts
    right.register_scheduler("right", TTL)
    wrong.register_scheduler("wrong", TTL)
    for catalog in hosts:
        assert {s.owner for s in catalog.schedulers()} == {"right", "wrong"}
    assert {s.owner for s in wrong.scheduler_beat("wrong", SHORT)} == {"right", "wrong"}
    time.sleep(SHORT.total_seconds() * 2)
    for catalog in hosts:
        assert {s.owner for s in catalog.schedulers()} == {"right"}


def test_owners_of_other_hosts_are_never_taken_for_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = held_leases.new_owner()
    host, _, rest = owner.partition(":")
    gone = f"{host}:999999999:{rest.rpartition(':')[2]}"
    assert held_leases.owner_is_dead(gone)
    monkeypatch.setattr("socket.gethostname", lambda: f"{host}-b")
    assert not held_leases.owner_is_dead(gone)
    assert not held_leases.owner_is_dead(owner)


def test_a_failed_table_waits_for_its_next_try_on_all_hosts(hosts: tuple[Catalog, Catalog]) -> None:
    """Or two hosts would try it again at once, one after the other, until it is suspended."""
    create(hosts[0])
    for here, there in (hosts, hosts[::-1]):
        again = here.now() + dt.timedelta(seconds=20)
        here.note_failure([REVENUE], "X", "failed", lambda _, at=again: at)
        for host in (here, there):
            waits = host.scheduling_states()[REVENUE].retry_at
            assert waits is not None
            assert abs((waits - host.now()).total_seconds() - 20) < 15
