"""A copy of a catalog in PostgreSQL can be looked at; it works on nothing of the original's until it is confirmed."""

from __future__ import annotations

import datetime as dt
import threading
from collections.abc import Callable, Collection
from typing import cast

import pytest
import sqlalchemy as sa
from catalog_kit import older
from catalog_kit.databases import Postgres, sql
from catalog_kit.samples import ORDERS, REVENUE, TTL, create, see

from headrace.catalog import Catalog, Publication, resource_of
from headrace.catalog.publishing.pointers import key_of
from headrace.catalog.remote_lake import intents
from headrace.errors import UserError
from headrace.events import Events
from headrace.lakes.lake_server import Key, LakeMove, LakeServer
from headrace.refresh.groups.grouping import Defaults
from headrace.refresh.maintenance import maintain
from headrace.scheduler.membership import Membership
from headrace.scheduler.policy.slot_shares import Slots

IDENTITY = "SELECT identity FROM hr_own_database"


def taken(catalog: Catalog) -> None:
    catalog.release(catalog.acquire([resource_of(REVENUE)], "me:1:x", TTL))


def identity(url: str) -> str | None:
    with sql(url) as connection:
        return connection.exec_driver_sql(IDENTITY).scalar()


def rows(url: str) -> list[tuple[object, ...]]:
    with sql(url) as connection:
        kept = []
        for table in ("iceberg_tables", "hr_publication", "hr_scheduler", "hr_lease", "hr_stream_table", "hr_relation"):
            kept += [(table, *row) for row in connection.exec_driver_sql(f"SELECT * FROM {table} ORDER BY 1")]
        return kept


@pytest.fixture
def original(postgres: Postgres) -> str:
    url = postgres.fresh()
    with Catalog.open(url) as catalog:
        see(catalog, ORDERS, 1)
        create(catalog)
        taken(catalog)
    return url


def test_a_new_catalog_knows_its_database(fresh_url: str) -> None:
    with Catalog.open(fresh_url) as catalog:
        assert catalog.copied() is None
        taken(catalog)
    if fresh_url.startswith("sqlite"):
        assert str(identity(fresh_url)).partition(":")[2] == fresh_url.removeprefix("sqlite:///")
        return
    with sql(fresh_url) as connection:
        server, number = str(identity(fresh_url)).split("/")
        found = "SELECT system_identifier::text, (SELECT oid FROM pg_database WHERE datname = current_database())"
        assert connection.exec_driver_sql(f"{found} FROM pg_control_system()").one() == (server, int(number))


def test_an_older_catalog_learns_its_database(postgres: Postgres) -> None:
    url = postgres.fresh()
    older.make(url, "0023")
    with Catalog.open(url) as catalog:
        assert catalog.copied() is None
    assert identity(url) is not None
    with Catalog.open(postgres.copy(url)) as catalog:
        assert catalog.copied() is not None


def test_a_catalog_that_does_not_know_learns_it_when_it_works(original: str) -> None:
    with sql(original) as connection:
        connection.exec_driver_sql("DELETE FROM hr_own_database")
    with Catalog.open(original) as catalog:
        assert (catalog.copied(), identity(original)) == (None, None)
        taken(catalog)
    assert identity(original) is not None


WORK: dict[str, Callable[[Catalog], object]] = {
    "lease": taken,
    "publish": lambda catalog: catalog.publish(Publication(drops=(REVENUE,))),
    "scheduler": lambda catalog: catalog.register_scheduler("me:1:x", TTL),
    "beat": lambda catalog: catalog.scheduler_beat("me:1:x", TTL),
    "maintain": lambda catalog: maintain(
        catalog,
        None,  # nobody asks for Spark
        older_than=dt.timedelta(),
        orphans_older_than=dt.timedelta(days=1),
        dry_run=False,
        defaults=Defaults(),
    ),
}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_a_copy_is_looked_at_and_not_worked_on(
    original: str, postgres: Postgres, work: Callable[[Catalog], object]
) -> None:
    copy = postgres.copy(original)
    before = rows(copy)
    with Catalog.open(copy, create=False) as catalog:
        assert catalog.stream_table(REVENUE).sources == (ORDERS,)
        with pytest.raises(UserError) as caught:
            work(catalog)
        error = caught.value
        assert (error.code, error.retryable) == ("CATALOG_COPIED", False)
        assert "move-catalog --here" in str(error.hint)
        numbers = [str(identity(original)).split("/")[1], str(identity(copy)).split("/")[1]]
        assert all(number in str(error.detail) for number in numbers)
        assert catalog.copied() is not None
    assert rows(copy) == before


def test_a_scheduler_does_not_wait_in_a_copy(original: str, postgres: Postgres) -> None:
    """Where nobody else is registered, it would wait for nobody to fall silent."""
    with Catalog.open(postgres.copy(original)) as catalog, pytest.raises(UserError) as caught:
        Membership(catalog, "me:1:x", Slots(1), 0.01).join(threading.Event(), Events())
    assert caught.value.code == "CATALOG_COPIED"


def test_a_copy_that_is_confirmed_works_and_the_original_goes_on(original: str, postgres: Postgres) -> None:
    copy = postgres.copy(original)
    former = identity(original)
    with Catalog.open(copy) as catalog, Catalog.open(copy) as other:
        assert catalog.confirm_database(dry_run=True)[0] == former
        with pytest.raises(UserError):
            taken(other)
        was, found = catalog.confirm_database()
        assert (was, found) == (former, identity(copy))
        assert found != former
        assert catalog.confirm_database() == (found, found)
        for each in (catalog, other):
            assert each.copied() is None
            taken(each)
    with Catalog.open(original) as catalog:
        taken(catalog)
    assert identity(original) == former


def test_a_renamed_database_is_the_same(original: str, postgres: Postgres) -> None:
    name = original.partition("?")[0].rpartition("/")[2]
    postgres._admin(f"ALTER DATABASE {name} RENAME TO {name}_renamed")
    with Catalog.open(postgres.url(f"{name}_renamed")) as catalog:
        taken(catalog)


def test_a_role_that_is_not_told_is_not_refused(original: str, postgres: Postgres) -> None:
    role = "headrace_untold"
    copy = postgres.copy(original)
    with sql(copy) as connection:
        connection.exec_driver_sql("REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC")
        connection.exec_driver_sql(f"CREATE ROLE {role} LOGIN")
        connection.exec_driver_sql(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {role}")
        connection.exec_driver_sql(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {role}")
    with Catalog.open(copy.replace("postgres@", f"{role}@")) as catalog:
        assert catalog.copied() is None
        taken(catalog)
        assert catalog.confirm_database() == (identity(original), None)
    assert identity(copy) == identity(original)
    with Catalog.open(copy) as catalog:  # who may ask, knows
        assert catalog.copied() is not None


def test_an_ordinary_role_is_told(original: str, postgres: Postgres) -> None:
    with sql(original) as connection:
        connection.exec_driver_sql("CREATE ROLE headrace_ordinary LOGIN")
        connection.exec_driver_sql("GRANT SELECT ON ALL TABLES IN SCHEMA public TO headrace_ordinary")
    copy = postgres.copy(original)
    with Catalog.open(copy.replace("postgres@", "headrace_ordinary@")) as catalog:
        assert catalog.copied() is not None


def test_once_for_each_connection(original: str, postgres: Postgres) -> None:
    asked: list[str] = []
    with Catalog.open(original) as catalog:
        taken(catalog)

        def listen(*given: object) -> None:
            asked.extend(str(each) for each in given if isinstance(each, str) and "own_database" in each)

        sa.event.listen(catalog._database.engine, "before_cursor_execute", listen)
        for _ in range(3):
            taken(catalog)
    assert asked == []


class Server:
    """A catalog server that shows nothing, and notes which publications it is asked about."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def names(self) -> set[Key]:
        return set()

    def moved(self, uuid: str, _moves: Collection[LakeMove]) -> bool:
        self.asked.append(uuid)
        return False

    def put_back(self, uuid: str, _moves: Collection[LakeMove]) -> dict[Key, str]:
        return {}


def test_publications_that_were_under_way_are_the_originals_to_decide(original: str, postgres: Postgres) -> None:
    begun = Publication(deletes=(ORDERS,))
    with Catalog.open(original) as catalog, catalog._database.write() as connection:
        long_ago = dt.datetime(2025, 1, 1, tzinfo=dt.UTC)
        intents.add(connection, begun, [LakeMove(key_of(ORDERS), "was", None)], long_ago)
    copy = postgres.copy(original)
    for url, asked in ((copy, []), (original, [begun.uuid])):
        server = Server()
        with Catalog.open(url, lake=cast(LakeServer, server)) as catalog:
            assert catalog.pointers() == {}
            assert catalog.reset_staging() == ()
        assert server.asked == asked
