"""Changes that are kept for several readers, and threads that come and go."""

from __future__ import annotations

import threading

from catalog_kit.samples import ORDERS

from headrace.engine.common import CommonChanges


class Views:
    """Temporary views; letting go of one gives others time to come in between."""

    def __init__(self) -> None:
        self.there: set[str] = set()
        self.letting_go = threading.Event()
        self.made_again = threading.Event()

    def materialize(self, view: str, _sql: str, *, few: bool = False) -> None:
        self.there.add(view)
        if self.letting_go.is_set():
            self.made_again.set()

    def release(self, view: str) -> None:
        self.letting_go.set()
        self.made_again.wait(0.3)
        self.there.discard(view)


def raced(second: str | None) -> Views:
    """`old` is let go, and read again by another thread at that moment."""
    views, changes = Views(), CommonChanges()
    changes.read(views, ORDERS, "old", "SELECT 1")
    changes.leave(views, "old")

    def again() -> None:
        assert views.letting_go.wait(10)
        changes.read(views, ORDERS, "old", "SELECT 1")

    other = threading.Thread(target=again)
    other.start()
    if second is None:
        changes.clear()
    else:
        changes.read(views, ORDERS, second, "SELECT 2")
    other.join(10)
    return views


def test_a_change_that_is_read_again_while_it_is_let_go_stays() -> None:
    assert {"old", "new"} <= raced("new").there
    assert "old" in raced(None).there
