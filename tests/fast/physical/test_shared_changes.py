"""Changes that are kept for several readers, and threads that come and go."""

from __future__ import annotations

import threading

from catalog_kit.samples import ORDERS, REVENUE

from headrace.names import TableName
from headrace.physical.facts import Common
from headrace.physical.shared_changes import MOST_BYTES, SharedChanges
from headrace.semantics import Semantics

FIRST, SECOND = (TableName("lake", ("shop",), name) for name in ("first", "second"))


def change(view: str) -> Common:
    return Common(view, "SELECT 1", f"SELECT * FROM {view}", frozenset({SECOND}))


class Views:
    """Temporary views; letting go of one gives others time to come in between."""

    def __init__(self, size: int | None = 1) -> None:
        self.there: set[str] = set()
        self.size = size
        self.others: dict[Semantics, Views] = {}
        self.letting_go = threading.Event()
        self.made_again = threading.Event()

    def materialize(self, view: str, _sql: str, _measures: object = None, *, local: bool = False) -> dict[str, int]:
        self.there.add(view)
        if self.letting_go.is_set():
            self.made_again.set()
        return {"rows": len(self.there)}

    def hold(self, view: str, _sql: str, _columns: object, semantics: Semantics | None = None) -> int | None:
        if self.size is not None:
            (self if semantics is None else self.under(semantics)).there.add(view)
        return self.size

    def under(self, semantics: Semantics) -> Views:
        return self.others.setdefault(semantics, Views(self.size))

    def release(self, view: str) -> None:
        self.letting_go.set()
        self.made_again.wait(0.3)
        self.there.discard(view)


def raced(second: str | None) -> Views:
    """`old` is let go, and read again by another thread at that moment."""
    views, changes = Views(), SharedChanges()
    changes.read(views, ORDERS, change("old"))
    changes.leave(views, "old", FIRST)

    def again() -> None:
        assert views.letting_go.wait(180)
        changes.read(views, ORDERS, change("old"))

    other = threading.Thread(target=again)
    other.start()
    if second is None:
        changes.clear()
    else:
        changes.read(views, ORDERS, change(second))
    other.join(180)
    return views


def test_a_change_that_is_read_again_while_it_is_let_go_stays() -> None:
    assert {"old", "new"} <= raced("new").there
    assert "old" in raced(None).there


def handed(views: Views, *, to: tuple[TableName, ...] = (FIRST, SECOND)) -> SharedChanges:
    views.made_again.set()  # no other thread is waited for
    changes = SharedChanges()
    changes.hand_over(views, ORDERS, "one", "SELECT 1", (), to)
    return changes


def test_the_last_consumer_lets_go_of_what_it_was_handed() -> None:
    views = Views()
    changes = handed(views)
    for reader, left in ((FIRST, {"one"}), (SECOND, set())):
        changes.read(views, ORDERS, change("one"))
        assert views.there == {"one"}
        changes.leave(views, "one", reader)
        assert views.there == changes.views == left


def test_what_was_handed_over_goes_when_it_is_outdated_but_not_under_its_readers() -> None:
    views = Views()
    changes = handed(views)
    changes.read(views, ORDERS, change("one"))
    changes.hand_over(views, ORDERS, "two", "SELECT 1", (), (FIRST,))
    assert views.there == {"one", "two"}
    changes.leave(views, "one", FIRST)
    changes.hand_over(views, ORDERS, "three", "SELECT 1", (), (FIRST,))
    assert views.there == changes.views == {"three"}


def test_what_was_handed_over_takes_so_much_room_and_no_more() -> None:
    views = Views(MOST_BYTES // 2)
    changes = handed(views)
    for number, source in enumerate((REVENUE, FIRST, SECOND)):
        changes.hand_over(views, source, f"{number}", "SELECT 1", (), (FIRST,))
    assert views.there == changes.views == {"1", "2"}


def test_it_is_handed_to_consumers_under_their_settings() -> None:
    views, elsewhere = Views(), Semantics("Asia/Tokyo")
    changes = SharedChanges()
    changes.hand_over(views, ORDERS, "one", "SELECT 1", (), (FIRST,), elsewhere)
    there = views.under(elsewhere)
    assert (views.there, there.there) == (set(), {"one"})
    there.made_again.set()
    changes.read(there, ORDERS, change("one"))
    changes.leave(there, "one", FIRST)
    assert there.there == changes.views == frozenset()


def test_what_is_not_known_is_not_handed_over() -> None:
    views = Views(None)
    assert handed(views).views == views.there == frozenset()


def test_every_reader_bears_an_equal_part_of_the_time() -> None:
    views, changes = Views(), SharedChanges()
    first, second = (changes.read(views, ORDERS, change("one"), measures={"rows": "count(*)"}) for _ in range(2))
    assert first == second
    assert first.measures == {"rows": 1}
    assert first.seconds > 0
