"""What is told of stream tables whose refresh comes to nothing."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from catalog_kit.samples import lake

from headrace.clock import SystemClock
from headrace.errors import EnvironmentFault, HeadraceError
from headrace.events import Event, Events, RefreshFailed, RefreshGivenUp
from headrace.names import TableName
from headrace.refresh.groups.group_refresh import GroupRefresh, Order
from headrace.refresh.publishing import Publishing

A, B = lake("s.a"), lake("s.b")


@pytest.mark.parametrize("names", [(A, B), (A,)])
@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (EnvironmentFault("DISK_FULL", "There is no room."), {"s.a": [RefreshFailed], "s.b": [RefreshGivenUp]}),
        (EnvironmentFault("LEASE_HELD", "Others have it."), {"s.a": [RefreshGivenUp], "s.b": [RefreshGivenUp]}),
        (EnvironmentFault("INPUT_NOT_READY", "It is not."), {"s.a": [RefreshGivenUp], "s.b": [RefreshGivenUp]}),
        (KeyboardInterrupt(), {"s.a": [RefreshGivenUp], "s.b": [RefreshGivenUp]}),
    ],
)
def test_each_member_ends_once(
    error: BaseException, expected: dict[str, list[type[Event]]], names: tuple[TableName, ...]
) -> None:
    events, told = Events(), dict[str, list[type[Event]]]()
    events.subscribe(lambda event: told.setdefault(event.table, []).append(type(event)))  # type: ignore[attr-defined]
    group = _group(names, events, lambda *_, **__: ())
    with pytest.raises(HeadraceError, match="STREAM_TABLE_NOT_FOUND"):  # it has the leases by then
        group.begin()
    group.give_up(error)
    assert told == {str(name): expected[str(name)] for name in names}


@pytest.mark.parametrize("error", [EnvironmentFault("LEASE_HELD", "Others have it."), KeyboardInterrupt()])
def test_who_only_waited_for_leases_ends_no_refresh_of_who_has_them(error: BaseException) -> None:
    def refused(*_: object, **__: object) -> None:
        raise error

    events, told = Events(), list[Event]()
    events.subscribe(told.append)
    with pytest.raises(type(error)):
        _group((A, B), events, refused).run()
    assert told == []


def _group(names: tuple[TableName, ...], events: Events, acquire: Callable[..., object]) -> GroupRefresh:
    """A group of tables that turn out to be gone once their leases are taken."""
    catalog: Any = SimpleNamespace(
        record=lambda _: None,
        find_stream_table=lambda _: None,
        stream_table=lambda _: SimpleNamespace(stored=()),
        stream_tables=lambda: (),
        acquire=acquire,
        release=lambda _: None,
    )
    attempt = SimpleNamespace(started=SystemClock().now(), mode=None, stages={})
    preparation: Any = SimpleNamespace(attempt=lambda: attempt)
    nobody: Any = None
    order = Order(names=names, heads=nobody, full=names)
    return GroupRefresh(catalog, preparation, nobody, Publishing(catalog, events, SystemClock()), nobody, order)
