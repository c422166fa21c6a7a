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
from kit.rest_proxy import Request, rest_proxy
from kit.rest_publisher import OWNER
from kit.rest_server import RestServer
from kit.rest_shop import Shop
from kit.staged_tables import defined, publication
from kit.surviving_spark import with_kit

from headrace.catalog import resource_of
from headrace.errors import HeadraceError
from headrace.lake.rest.table_changes import PUT_BACK


@pytest.fixture
def shop(server: RestServer, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(server.uri, tmp_path)
    yield made
    made.close()


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
    child = [sys.executable, "-m", "kit.rest_publisher", shop.url, shop.uri, str(shop.folder), step]
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


@pytest.mark.parametrize("table", "ab")
@pytest.mark.parametrize("happened", [False, True])
def test_putting_a_publication_back_goes_on_where_it_was_interrupted(
    server: RestServer, tmp_path: Path, table: str, happened: bool
) -> None:
    def marks(request: Request) -> bool:
        return request[1].endswith(f"/tables/{table}")

    with rest_proxy(server.uri) as proxy:
        shop = Shop(proxy.uri, tmp_path, readers=server.uri)
        names = [shop.name("a"), shop.name("b")]
        defined(shop.catalog, *names)
        shop.publish(a=(1,), b=(2,))
        made = publication(shop.catalog, shop.staged, {names[0]: (3,), names[1]: (4,)})
        proxy.before = lambda request: 0 if request[1].endswith("/transactions/commit") else None
        with pytest.raises(HeadraceError) as caught:
            shop.catalog.publish(made)
        assert caught.value.code == "PUBLISH_OUTCOME_UNKNOWN"
        proxy.after = lambda request: 0 if marks(request) else None
        proxy.before = lambda request: 503 if marks(request) and not happened else None
        with pytest.raises(HeadraceError) as caught:
            shop.catalog.settle(made.uuid)
        assert caught.value.code == "LAKE_UNREACHABLE"
        proxy.before = proxy.after = lambda _: None
        assert shop.catalog.settle(made.uuid) is None
        time.sleep(1.1)  # a table of our own is believed for a second
        shop.catalog.look(names)
        shop.agree()
        assert (shop.rows("a"), shop.rows("b")) == ([1], [2])
        shop.publish(a=(5,), b=(6,))
        assert (shop.rows("a"), shop.rows("b")) == ([5], [6])
        shop.agree()
        shop.close()


def test_tables_whose_requests_a_proxy_repeats_are_published(server: RestServer, tmp_path: Path) -> None:
    with rest_proxy(server.uri) as proxy:
        shop = Shop(proxy.uri, tmp_path, readers=server.uri)
        names = [shop.name("a"), shop.name("b")]
        defined(shop.catalog, *names)
        proxy.twice = lambda _: True
        shop.publish(a=(1,), b=(2,))
        shop.publish(a=(3,), b=(4,))
        assert (shop.rows("a"), shop.rows("b")) == ([3], [4])
        shop.agree()
        shop.close()


def test_a_server_killed_while_it_publishes_leaves_all_or_nothing_once_it_is_back(
    shop: Shop, server: RestServer
) -> None:
    """The fixture moves table after table, so that it may leave a half: what was moved decides, the rest follows."""
    defined(shop.catalog, shop.name("a"), shop.name("b"))
    shop.publish(a=(0,), b=(0,))
    randomly, outcomes = random.Random(25), list[str]()
    for number in range(1, 7):
        made = publication(shop.catalog, shop.staged, {shop.name("a"): (number,), shop.name("b"): (number,)})
        killer = threading.Timer(randomly.uniform(0.0, 0.3), server.kill)
        killer.start()
        try:
            shop.catalog.publish(made)
            outcomes.append("published")
        except HeadraceError as error:
            outcomes.append(error.code)
        killer.join()
        server.start()
        record = shop.catalog.settle(made.uuid)
        if record is None:
            shop.catalog.reset_staging()
        expected = [number] if record is not None else shop.rows("a")
        assert shop.rows("a") == shop.rows("b") == expected
        shop.agree()
    assert set(outcomes) <= {"published", "PUBLISH_OUTCOME_UNKNOWN", "LAKE_UNREACHABLE"}
