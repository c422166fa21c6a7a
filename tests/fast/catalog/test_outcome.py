"""A connection that breaks while publishing: the outcome is unknown at first, and then it is known for certain."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from catalog_kit.databases import Postgres, empty, sql
from catalog_kit.iceberg import Iceberg
from catalog_kit.proxy import BreakingProxy
from catalog_kit.samples import REVENUE, create, refresh, see
from kit.waiting import until

from headrace.catalog import Catalog, Publication
from headrace.catalog.records import PublicationRecord
from headrace.errors import EnvironmentFault


@pytest.fixture
def proxy(postgres: Postgres) -> Iterator[BreakingProxy]:
    proxy = BreakingProxy(postgres.socket_folder)
    yield proxy
    proxy.close()


@pytest.fixture
def far(postgres: Postgres, proxy: BreakingProxy) -> Iterator[Catalog]:
    """A catalog at the other end of the network."""
    empty(postgres.prepared)
    options = f"host=127.0.0.1&port={proxy.port}&sslmode=disable&gssencmode=disable"
    with Catalog.open(f"postgresql://postgres@/{postgres.prepared_name}?{options}") as catalog:
        yield catalog


@pytest.mark.parametrize(("moment", "happened"), [("before", False), ("after", True)])
def test_a_broken_commit_is_settled_afterwards(
    far: Catalog, postgres: Postgres, proxy: BreakingProxy, moment: str, happened: bool
) -> None:
    iceberg = Iceberg(postgres.prepared)
    publication = staged(far, iceberg)
    proxy.arm(moment)
    with pytest.raises(EnvironmentFault) as caught:
        far.publish(publication)
    assert (caught.value.code, caught.value.retryable) == ("PUBLISH_OUTCOME_UNKNOWN", True)
    proxy.arm("never")
    settled = far.settle(publication.uuid)
    assert (settled is not None) == happened
    assert iceberg.pointer(REVENUE) == ("revenue-1" if happened else None)
    record = far.publish(publication)
    assert settled in (None, record)
    assert len(far.publications()) == len(far.versions(REVENUE)) == len(far.history()) == 1


def test_whoever_asks_how_it_ended_is_told_of_a_publication_that_happened(
    far: Catalog, postgres: Postgres, proxy: BreakingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaking = far.publish

    def broken_once(publication: Publication) -> PublicationRecord:
        try:
            return breaking(publication)
        finally:
            proxy.arm("never")

    monkeypatch.setattr(far, "publish", broken_once)
    publication = staged(far, Iceberg(postgres.prepared))
    proxy.arm("before")
    with pytest.raises(EnvironmentFault, match="PUBLISH_OUTCOME_UNKNOWN"):
        far.publish_or_settle(publication)
    assert far.publications() == ()
    proxy.arm("after")
    record = far.publish_or_settle(publication)
    assert (record.uuid, len(far.publications())) == (publication.uuid, 1)


def test_a_connection_lost_before_the_commit_is_no_mystery(far: Catalog, postgres: Postgres) -> None:
    """The pool tests its connections, so one that the server closed meanwhile is replaced unnoticed."""
    publication = staged(far, Iceberg(postgres.prepared))
    with sql(postgres.url("postgres"), autocommit=True) as admin:
        ours = f"datname = '{postgres.prepared_name}'"
        admin.exec_driver_sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {ours}")
    assert far.publish(publication).id == 1


def test_a_connection_lost_between_statements_may_be_tried_again(far: Catalog, postgres: Postgres) -> None:
    create(far)
    with (
        ThreadPoolExecutor() as pool,
        sql(postgres.prepared) as other,
        sql(postgres.url("postgres"), autocommit=True) as admin,
    ):
        other.exec_driver_sql("LOCK TABLE hr_relation IN SHARE MODE")  # which holds up those who write
        seen = pool.submit(see, far)
        waiting = f"datname = '{postgres.prepared_name}' AND wait_event_type = 'Lock'"
        stop = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {waiting}"

        def stopped() -> bool:
            assert not seen.done()
            return bool(admin.exec_driver_sql(stop).all())

        until(stopped)
        with pytest.raises(EnvironmentFault) as caught:
            seen.result(30)
        other.rollback()
    assert (caught.value.code, caught.value.retryable) == ("CATALOG_UNREACHABLE", True)
    see(far)


def staged(catalog: Catalog, iceberg: Iceberg) -> Publication:
    create(catalog)
    see(catalog)
    return refresh(catalog, iceberg, 1, REVENUE)
