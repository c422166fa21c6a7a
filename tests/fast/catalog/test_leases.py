import datetime as dt
import threading

import pytest
from catalog_kit.clock import ManualClock
from catalog_kit.samples import REVENUE, TOP, TTL

from headrace.catalog import Catalog, resource_of
from headrace.errors import EnvironmentFault
from headrace.refresh.held_leases import holding_leases as waited_for

A, B, C = resource_of(REVENUE), resource_of(TOP), "c"


def held(catalog: Catalog) -> dict[str, tuple[str | None, int]]:
    return {x.resource: (x.owner, x.token) for x in catalog.leases()}


def test_all_or_none(catalog: Catalog) -> None:
    catalog.acquire([B], "one", TTL)
    with pytest.raises(EnvironmentFault) as caught:
        catalog.acquire([A, B, C], "two", TTL)
    assert (caught.value.code, caught.value.retryable) == ("LEASE_HELD", True)
    assert B in caught.value.message
    assert "one" in caught.value.message
    assert held(catalog) == {B: ("one", 1)}
    taken = catalog.acquire([C, A], "two", TTL)
    assert [(x.resource, x.owner, x.token) for x in taken] == [(C, "two", 1), (A, "two", 1)]
    assert catalog.acquire([], "two", TTL) == ()


def test_a_holder_cannot_take_its_own_again(catalog: Catalog) -> None:
    catalog.acquire([A], "one", TTL)
    with pytest.raises(EnvironmentFault, match="LEASE_HELD"):
        catalog.acquire([A], "one", TTL)


def test_tokens_grow_over_release(catalog: Catalog) -> None:
    for expected in (1, 2, 3):
        leases = catalog.acquire([A], f"owner{expected}", TTL)
        assert [x.token for x in leases] == [expected]
        catalog.release(leases)
    assert held(catalog) == {A: (None, 3)}


def test_an_expired_lease_is_taken_over_and_lost_for_its_owner(catalog: Catalog, clock: ManualClock) -> None:
    old = catalog.acquire([A, B], "one", TTL)
    clock.advance(TTL.total_seconds())
    new = catalog.acquire([A], "two", TTL)
    assert new[0].token == 2
    with pytest.raises(EnvironmentFault) as caught:
        catalog.heartbeat(old, TTL)
    assert (caught.value.code, caught.value.retryable) == ("LEASE_LOST", True)
    assert "two" in caught.value.message
    catalog.release(old)
    assert held(catalog) == {A: ("two", 2), B: (None, 1)}


def test_a_heartbeat_prolongs_even_an_expired_lease_that_nobody_took(catalog: Catalog, clock: ManualClock) -> None:
    leases = catalog.acquire([A], "one", TTL)
    clock.advance(TTL.total_seconds() + 5)
    prolonged = catalog.heartbeat(leases, TTL)
    assert [(x.token, x.expires_at, x.heartbeat_at) for x in prolonged] == [(1, clock.now() + TTL, clock.now())]
    with pytest.raises(EnvironmentFault, match="LEASE_HELD"):
        catalog.acquire([A], "two", TTL)


def test_an_owner_known_to_be_dead_is_not_waited_for(catalog: Catalog) -> None:
    catalog.acquire([A], "dead", TTL)
    catalog.acquire([B], "alive", TTL)
    with pytest.raises(EnvironmentFault, match="alive"):
        catalog.acquire([A, B], "new", TTL, is_dead=lambda owner: owner == "dead")
    assert catalog.acquire([A], "new", TTL, is_dead=lambda owner: owner == "dead")[0].token == 2


def test_a_released_lease_cannot_be_prolonged(catalog: Catalog) -> None:
    leases = catalog.acquire([A], "one", dt.timedelta(seconds=1))
    catalog.release(leases)
    catalog.release(leases)
    with pytest.raises(EnvironmentFault, match="LEASE_LOST"):
        catalog.heartbeat(leases, TTL)


def test_who_has_patience_gets_a_lease_when_it_is_given_back(catalog: Catalog) -> None:
    (lease,) = catalog.acquire([A], "one", TTL)
    with pytest.raises(EnvironmentFault, match="LEASE_HELD"), waited_for(catalog, [A], patience=0.15):
        pass
    threading.Timer(0.2, lambda: catalog.release([lease])).start()
    with waited_for(catalog, [A, B], patience=20) as leases:
        assert {x.resource for x in leases()} == {A, B}
