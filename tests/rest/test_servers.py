"""What every REST catalog must do: Iceberg's own test server, and Nessie as it is published."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from catalog_kit.stream_tables import drop_stream_table
from kit.nessie_server import Nessie
from kit.rest_shop import Shop, promotion
from kit.staged_tables import defined, publication

from headrace.catalog import Publication, resource_of
from headrace.errors import HeadraceError
from headrace.names import LAKE


@pytest.fixture(params=["iceberg", "nessie"])
def shop(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shop]:
    """A shop in Iceberg's own test server, and one in a product."""
    if request.param == "iceberg":
        made = Shop(request.getfixturevalue("server").uri, tmp_path)
    else:
        nessie: Nessie = request.getfixturevalue("nessie")
        made = Shop(nessie.uri, tmp_path, warehouse=f"{nessie.warehouse}/{tmp_path.name}", storage=nessie.storage)
    yield made
    made.close()


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
    drop_stream_table(shop.catalog, shop.name("b"))
    shop.catalog.acquire([resource_of(shop.name("a"))], "next", dt.timedelta(hours=1), is_dead=lambda _: True)
    time.sleep(1.1)
    assert [write.name.table for write in shop.catalog.foreign_writes()] == ["a"]
    assert len(shop.catalog.publications()) == 1
    shop.catalog.restore_pointers(shop.catalog.foreign_writes(), held=())
    assert shop.rows("a") == [1]
    shop.catalog.reset_staging()
    shop.publish(a=(5,))
    assert shop.rows("a") == [5]


def test_a_table_changes_its_name_with_the_rest_of_a_publication(shop: Shop) -> None:
    """As in a promotion: the public table a receives the rows of b, and b is called c from then on."""
    defined(shop.catalog, shop.name("a"), shop.name("b"))
    shop.publish(a=(1,), b=(2,))
    folder = shop.reader.load_table(("shop", "b")).location()
    shop.catalog.publish(promotion(shop))
    assert (shop.rows("a"), shop.rows("b"), shop.rows("c")) == ([2], None, [2])
    assert shop.reader.load_table(("shop", "c")).location() == folder
    shop.agree()
    shop.publish(a=(3,), c=(4,))
    assert (shop.rows("a"), shop.rows("b"), shop.rows("c")) == ([3], None, [4])
    shop.agree()
