"""Random lives of a catalog. Whatever happens in whatever order: tokens never repeat, frontiers never go back,
versions have no gaps, and what is published is exactly what some holder of a valid lease staged."""

from __future__ import annotations

from collections import defaultdict

import pytest
from catalog_kit.clock import ManualClock
from catalog_kit.databases import empty
from catalog_kit.iceberg import Iceberg
from catalog_kit.samples import ITEMS, ORDERS, REVENUE, TOP, TTL, attempt, create, entry
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from headrace.catalog import (
    Catalog,
    FrontierMove,
    Lease,
    NewVersion,
    Observation,
    Publication,
    Swap,
    resource_of,
)
from headrace.errors import HeadraceError
from headrace.frontier import Frontier
from headrace.names import STAGING, TableName

STREAMS = (REVENUE, TOP)
STREAM_SETS = st.lists(st.sampled_from(STREAMS), min_size=1, max_size=2, unique=True)
OWNERS = st.sampled_from(["one", "two", "three"])


class Life(RuleBasedStateMachine):
    """The model keeps what it was told, and compares."""

    url = ""

    @initialize()
    def begin(self) -> None:
        empty(self.url)
        self.clock, self.iceberg = ManualClock(), Iceberg(self.url)
        self.catalog = Catalog.open(self.url, clock=self.clock)
        for stream in STREAMS:
            create(self.catalog, stream, ORDERS, ITEMS)
        self.catalog.observe([Observation(ORDERS, 0), Observation(ITEMS, 0)])
        self.heads = {ORDERS: [0], ITEMS: [0]}
        self.tokens: defaultdict[str, list[int]] = defaultdict(list)
        self.valid: dict[str, Lease] = {}
        self.held: dict[str, tuple[Lease, ...]] = {}
        self.shown: dict[TableName, str] = {}
        self.frontiers: dict[TableName, Frontier] = {}
        self.count = 0

    def teardown(self) -> None:
        if hasattr(self, "catalog"):
            self.catalog.close()

    @rule(seconds=st.sampled_from([1, 40, 90]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule(source=st.sampled_from([ORDERS, ITEMS]), snapshot=st.integers(0, 3))
    def a_source_moves_or_rolls_back(self, source: TableName, snapshot: int) -> None:
        seen = self.catalog.observe([Observation(source, snapshot)])[0]
        if self.heads[source][-1] != snapshot:
            self.heads[source].append(snapshot)
        assert seen.version == len(self.heads[source]) - 1

    @rule(owner=OWNERS, streams=STREAM_SETS)
    def somebody_acquires(self, owner: str, streams: list[TableName]) -> None:
        wanted = [resource_of(s) for s in streams]
        busy = [r for r in wanted if r in self.valid and self.valid[r].expires_at > self.clock.now()]
        leases = attempt(lambda: self.catalog.acquire(wanted, owner, TTL))
        if isinstance(leases, HeadraceError):
            assert (leases.code, bool(busy)) == ("LEASE_HELD", True)
            return
        assert not busy
        for lease in leases:
            assert lease.token > max(self.tokens[lease.resource], default=0)
            self.tokens[lease.resource].append(lease.token)
            self.valid[lease.resource] = lease
        self.held[owner] = leases

    @rule(owner=OWNERS)
    def somebody_sends_a_heartbeat(self, owner: str) -> None:
        good = self._good(owner)
        leases = attempt(lambda: self.catalog.heartbeat(self.held.get(owner, ()), TTL))
        if isinstance(leases, HeadraceError):
            assert (leases.code, good) == ("LEASE_LOST", False)
            return
        assert good
        self.held[owner] = leases
        self.valid |= {x.resource: x for x in leases}

    @rule(owner=OWNERS)
    def somebody_releases(self, owner: str) -> None:
        for lease in self.held.get(owner, ()):
            if self._is_valid(lease):
                del self.valid[lease.resource]
        self.catalog.release(self.held.get(owner, ()))

    @rule(owner=OWNERS, fail=st.sampled_from(["no", "no", "no", "version", "frontier", "expected"]))
    def somebody_refreshes(self, owner: str, fail: str) -> None:
        leases = self.held.get(owner, ())
        streams = [s for s in STREAMS if resource_of(s) in {x.resource for x in leases}]
        if not streams:
            return
        publication, staged = self._publication(streams, leases, fail)
        good = self._good(owner) and fail == "no"
        result = attempt(lambda: self.catalog.publish(publication))
        if isinstance(result, HeadraceError):
            assert not good, result
            assert result.code in ("LEASE_LOST", "PUBLICATION_INVALID", "FOREIGN_WRITER")
            return
        assert good
        assert self.catalog.publish(publication).uuid == publication.uuid
        self.shown |= staged
        self.frontiers |= {m.stream: m.frontier for m in publication.frontiers}

    @rule(owner=OWNERS)
    def somebody_recovers(self, owner: str) -> None:
        live = {r for r, x in self.valid.items() if x.expires_at > self.clock.now()}
        ours = {x.resource for x in self.held.get(owner, ()) if self._is_valid(x)}
        done = self.catalog.reset_staging(held=self.held.get(owner, ()))
        assert not {resource_of(n) for n in done} & (live - ours)
        for name in done:
            assert self.iceberg.pointer(name, STAGING) == self.shown.get(name)

    def _publication(
        self, streams: list[TableName], leases: tuple[Lease, ...], fail: str
    ) -> tuple[Publication, dict[TableName, str]]:
        self.count += 1
        staged = {s: f"{s.table}-{self.count}" for s in streams}
        for stream, location in staged.items():
            self.iceberg.commit(stream, location)
        heads = self.catalog.newest_versions()
        skip, beyond = (2 if fail == "version" else 1), (5 if fail == "frontier" else 0)
        frontier = Frontier({s: len(self.heads[s]) - 1 + beyond for s in (ORDERS, ITEMS)})
        expected = {s: "elsewhere" if fail == "expected" else self.shown.get(s) for s in streams}
        publication = Publication(
            swaps=tuple(Swap(s, expected[s], staged[s]) for s in streams),
            versions=tuple(NewVersion(s, (heads[s].version if s in heads else -1) + skip, 1) for s in streams),
            frontiers=tuple(FrontierMove(s, frontier, generation=1) for s in streams),
            history=tuple(entry(s) for s in streams),
            leases=leases,
        )
        return publication, staged

    def _is_valid(self, lease: Lease) -> bool:
        return lease.resource in self.valid and self.valid[lease.resource].token == lease.token

    def _good(self, owner: str) -> bool:
        return all(self._is_valid(x) for x in self.held.get(owner, ()))

    @invariant()
    def the_catalog_agrees(self) -> None:
        if not hasattr(self, "count"):
            return
        with self.catalog.reading() as reader:
            shown = {n: p.metadata_location for n, p in reader.pointers().items()}
            assert shown == self.shown
            assert reader.frontiers() == self.frontiers
            assert reader.foreign_writes() == ()
            versions = {s: [v.version for v in reader.versions(s)] for s in (*STREAMS, ORDERS, ITEMS)}
            publications = reader.publications()
        assert all(numbers == list(range(len(numbers))) for numbers in versions.values())
        ids = [p.id for p in publications]  # PostgreSQL's sequences leave gaps where a transaction failed
        assert ids == sorted(set(ids), reverse=True)


@pytest.mark.parametrize("backend", ["sqlite"], indirect=True)
def test_random_lives_on_sqlite(url: str) -> None:
    live(url, 10)


@pytest.mark.parametrize("backend", ["postgresql"], indirect=True)
def test_random_lives_on_postgresql(url: str) -> None:
    live(url, 5)


def live(url: str, examples: int) -> None:
    machine = type("LifeHere", (Life,), {"url": url})
    checks = [HealthCheck.too_slow, HealthCheck.data_too_large]
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples, stateful_step_count=25, deadline=None, derandomize=True, suppress_health_check=checks
        ),
    )
