"""What a publication shows in a REST catalog, and what a process or server killed in between leaves."""

from __future__ import annotations

import datetime as dt
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kit.rest_publisher import OWNER
from kit.rest_server import RestServer
from kit.staged_tables import StagedTables, defined, publication
from kit.surviving_spark import with_kit
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.rest import RestCatalog

from headrace.catalog import Catalog, Publication, resource_of
from headrace.errors import HeadraceError
from headrace.lake.rest.open_lake import open_lake
from headrace.lake.rest.table_changes import PUT_BACK
from headrace.lakes.lake_server import LakeServer
from headrace.lakes.lake_settings import LakeSettings
from headrace.names import LAKE, TableName


class Shop:
    """A catalog, its staged tables, and readers of the REST catalog alone."""

    def __init__(self, server: RestServer, folder: Path) -> None:
        self.url, self.folder = f"sqlite:///{folder / 'headrace.db'}", folder / "tables"
        self.server = server
        self.lake: LakeServer = open_lake(LakeSettings(server.uri))
        self.catalog = Catalog.open(self.url, lake=self.lake)
        self.staged = StagedTables(self.url, self.folder)
        self.reader: RestCatalog = load_catalog("reader", type="rest", uri=server.uri)  # type: ignore[assignment]

    def name(self, table: str) -> TableName:
        return TableName(LAKE, ("shop",), table)

    def rows(self, table: str) -> list[int] | None:
        """What a reader that knows the REST catalog only finds; None where there is no table."""
        if not self.reader.table_exists(("shop", table)):
            return None
        return sorted(self.reader.load_table(("shop", table)).scan().to_arrow()["x"].to_pylist())

    def publish(self, **tables: tuple[int, ...]) -> Publication:
        made = publication(self.catalog, self.staged, {self.name(t): rows for t, rows in tables.items()})
        self.catalog.publish(made)
        return made

    def agree(self) -> None:
        """Headrace knows what the REST catalog shows, staging is in step, and nobody wrote but Headrace."""
        assert self.catalog.foreign_writes() == ()
        self.catalog.reset_staging()
        assert self.catalog.dirty_staging() == ()


@pytest.fixture
def shop(server: RestServer, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(server, tmp_path)
    yield made
    made.catalog.close()
    for table in ("a", "b", "c"):
        if made.reader.table_exists(("shop", table)):
            made.reader.drop_table(("shop", table))


def test_tables_are_made_moved_replaced_and_dropped(shop: Shop) -> None:
    defined(shop.catalog, shop.name("a"), shop.name("b"))
    shop.publish(a=(1,), b=(2,))
    assert (shop.rows("a"), shop.rows("b")) == ([1], [2])
    for numbers in ((1, 2), (1, 2, 3), ()):
        shop.publish(a=numbers, b=numbers)
        assert (shop.rows("a"), shop.rows("b")) == (sorted(numbers), sorted(numbers))
        shop.agree()
    was = shop.reader.load_table(("shop", "a")).metadata.table_uuid
    before = shop.catalog.pointers(LAKE, [shop.name("a")])[shop.name("a")].metadata_location
    shop.staged.write(shop.name("a"), 7, anew="-anew")
    made = publication(shop.catalog, shop.staged, {shop.name("a"): (7,)})
    assert made.swaps[0].expected == before
    shop.catalog.publish(made)
    assert shop.rows("a") == [7]
    assert shop.reader.load_table(("shop", "a")).metadata.table_uuid != was
    shop.catalog.publish(Publication(drops=(shop.name("b"),), deletes=(shop.name("b"),)))
    assert shop.rows("b") is None
    assert shop.rows("a") == [7]
    shop.agree()


def test_one_stale_table_lets_nothing_be_shown(shop: Shop) -> None:
    defined(shop.catalog, shop.name("a"), shop.name("b"))
    shop.publish(a=(1,), b=(2,))
    made = publication(shop.catalog, shop.staged, {shop.name("a"): (10,), shop.name("b"): (20,)})
    shop.reader.load_table(("shop", "b")).delete()  # another program, a moment before
    with pytest.raises(HeadraceError) as caught:
        shop.catalog.publish(made)
    assert caught.value.code == "FOREIGN_WRITER"
    assert (shop.rows("a"), shop.rows("b")) == ([1], [])
    time.sleep(1.1)  # a table of our own is believed for a second
    assert [w.name for w in shop.catalog.foreign_writes()] == [shop.name("b")]
    shop.catalog.restore_pointers(shop.catalog.foreign_writes(), held=())
    assert shop.rows("b") == [2]
    shop.agree()
    shop.publish(a=(3,), b=(4,))
    assert (shop.rows("a"), shop.rows("b")) == ([3], [4])


def test_a_table_of_somebody_else_is_not_replaced(shop: Shop) -> None:
    defined(shop.catalog, shop.name("a"), shop.name("c"))
    shop.publish(a=(1,))
    made = publication(shop.catalog, shop.staged, {shop.name("a"): (5,), shop.name("c"): (6,)})
    shop.reader.create_table(("shop", "c"), shop.reader.load_table(("shop", "a")).schema())
    with pytest.raises(HeadraceError) as caught:
        shop.catalog.publish(made)
    assert caught.value.code == "FOREIGN_WRITER"
    assert (shop.rows("a"), shop.rows("c")) == ([1], [])


STEPS = (
    "after intent",
    "before register",
    "after register",
    "before commit",
    "after commit",
    "before confirmation",
    "nowhere",
)
SHOWN = {"after commit", "before confirmation", "nowhere"}


@pytest.mark.parametrize("step", STEPS)
def test_a_publisher_killed_at_any_step_has_published_all_or_nothing(shop: Shop, step: str) -> None:
    names = [shop.name(table) for table in "abc"]
    defined(shop.catalog, *names)
    shop.publish(a=(1,), b=(2,))
    register = "register" in step
    child = [sys.executable, "-m", "kit.rest_publisher", shop.url, shop.server.uri, str(shop.folder), step]
    done = subprocess.run(child, capture_output=True, text=True, env=with_kit(), timeout=300, check=False)
    assert done.returncode == (0 if step == "nowhere" else -9), done.stderr
    published = len(shop.catalog.publications())
    # while the dead one's leases are believed, nobody decides for it
    assert len(shop.catalog.publications()) == published
    held = shop.catalog.acquire(
        [resource_of(n) for n in names], "next", dt.timedelta(hours=1), is_dead=lambda owner: owner == OWNER
    )
    shop.catalog.look(names)
    after = [1, 2, 3] if step in SHOWN else None
    assert (shop.rows("a"), shop.rows("b")) == ((after, after) if after else ([1], [2]))
    assert shop.rows("c") is None
    assert len(shop.catalog.publications()) == (2 if after else 1)
    shop.catalog.reset_staging(held=held)
    shop.agree()
    wanted = {name: (9,) for name in names[: 3 if register else 2]}
    shop.catalog.publish(publication(shop.catalog, shop.staged, wanted, held))
    assert [shop.rows(name.table) for name in wanted] == [[9]] * len(wanted)
    marks = [ref for ref in shop.reader.load_table(("shop", "a")).metadata.refs if ref.startswith(PUT_BACK)]
    assert marks == []
    shop.agree()


def test_a_publication_that_was_put_back_cannot_happen_any_more(shop: Shop) -> None:
    """A publisher that slept through the loss of its lease sends its commit when another has decided."""
    from headrace.catalog.remote_lake.remote_lake import RemoteLake

    defined(shop.catalog, shop.name("a"), shop.name("b"))
    shop.publish(a=(1,), b=(2,))
    leases = shop.catalog.acquire([resource_of(shop.name("a"))], "sleeper", dt.timedelta(hours=1))
    made = publication(shop.catalog, shop.staged, {shop.name("a"): (3,), shop.name("b"): (4,)}, leases)
    remote: RemoteLake | None = shop.catalog._remote
    assert remote is not None
    moves = remote._intend(made)
    assert isinstance(moves, tuple)
    shop.catalog.acquire([resource_of(shop.name("a"))], "next", dt.timedelta(hours=1), is_dead=lambda _: True)
    shop.catalog.look([shop.name("a")])  # decides, and marks
    with pytest.raises(HeadraceError) as caught:
        shop.lake.move(made.uuid, moves)
    assert caught.value.code == "FOREIGN_WRITER"
    assert (shop.rows("a"), shop.rows("b")) == ([1], [2])
    shop.catalog.reset_staging()
    shop.agree()


def test_a_publication_that_cannot_be_confirmed_any_more_is_somebody_elses(shop: Shop) -> None:
    """Between the crash and its discovery a stream table of it was dropped."""
    defined(shop.catalog, shop.name("a"), shop.name("b"))
    shop.publish(a=(1,), b=(2,))
    leases = shop.catalog.acquire([resource_of(shop.name("a"))], "dead", dt.timedelta(hours=1))
    made = publication(shop.catalog, shop.staged, {shop.name("a"): (3,), shop.name("b"): (4,)}, leases)
    remote = shop.catalog._remote
    assert remote is not None
    moves = remote._intend(made)
    assert isinstance(moves, tuple)
    shop.lake.move(made.uuid, moves)
    shop.catalog.drop_stream_table(shop.name("b"))
    shop.catalog.acquire([resource_of(shop.name("a"))], "next", dt.timedelta(hours=1), is_dead=lambda _: True)
    time.sleep(1.1)
    assert [write.name.table for write in shop.catalog.foreign_writes()] == ["a"]
    assert len(shop.catalog.publications()) == 1
    shop.catalog.restore_pointers(shop.catalog.foreign_writes(), held=())
    assert shop.rows("a") == [1]
    shop.catalog.reset_staging()
    shop.publish(a=(5,))
    assert shop.rows("a") == [5]


def test_a_server_killed_while_it_publishes_leaves_all_or_nothing_once_it_is_back(shop: Shop) -> None:
    """The fixture moves table after table, so that it may leave a half: what was moved decides, the rest follows."""
    defined(shop.catalog, shop.name("a"), shop.name("b"))
    shop.publish(a=(0,), b=(0,))
    randomly, outcomes = random.Random(25), list[str]()
    for number in range(1, 7):
        made = publication(shop.catalog, shop.staged, {shop.name("a"): (number,), shop.name("b"): (number,)})
        killer = threading.Timer(randomly.uniform(0.0, 0.3), shop.server.kill)
        killer.start()
        try:
            shop.catalog.publish(made)
            outcomes.append("published")
        except HeadraceError as error:
            outcomes.append(error.code)
        killer.join()
        shop.server.start()
        record = shop.catalog.settle(made.uuid)
        if record is None:
            shop.catalog.reset_staging()
        expected = [number] if record is not None else shop.rows("a")
        assert shop.rows("a") == shop.rows("b") == expected
        shop.agree()
    assert set(outcomes) <= {"published", "PUBLISH_OUTCOME_UNKNOWN", "LAKE_UNREACHABLE"}
