"""Adds, drops and moves nodes of a source of several, while the others go on.

A node that is added, or is on another server now, is copied; what the others have is landed and published with it.
Until then the catalog only notes what is installed, so that a failure leaves the source as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from headrace.catalog import DatabaseSource, SourceStatus
from headrace.catalog.records import Json
from headrace.errors import HeadraceError
from headrace.events import Notice
from headrace.landing.lander import Lander, not_active
from headrace.landing.left_captures import note_captures, remove_left, told_of
from headrace.results.source_results import LandingResult
from headrace.sources.capture import Capture, Landing
from headrace.sources.nodes.mirror_shapes import NODES

Change = Callable[[Json], Json]
"""Gives a source's options as they are from now on."""


def add_node(lander: Lander, name: str, change: Change) -> LandingResult:
    """Capture a further node of a source, and add its rows to the mirrors.

    Args:
        lander: Lands.
        name: The source.
        change: Puts the node into its options.

    Raises:
        HeadraceError: `SOURCE_NOT_ACTIVE`, `SHARDS_DIFFER` and the like; nothing was changed then.
    """
    return _changed(lander, name, change)


def move_node(lander: Lander, name: str, change: Change, node: str) -> LandingResult:
    """Go on with a node on another server; stream tables receive the difference only.

    Args:
        lander: Lands.
        name: The source.
        change: Puts the server into its options.
        node: The node.

    Raises:
        HeadraceError: `SOURCE_NOT_ACTIVE`, `SHARDS_DIFFER` and the like; nothing was changed then.
    """
    return _changed(lander, name, change)


def drop_node(lander: Lander, name: str, change: Change, node: str) -> LandingResult:
    """Take a node out of a source, its rows out of the mirrors, and its capture off the server.

    Args:
        lander: Lands.
        name: The source.
        change: Takes the node out of its options.
        node: The node.

    Raises:
        HeadraceError: `SOURCE_NOT_ACTIVE` and the like; nothing was changed then.
    """
    return _changed(lander, name, change)


def _require_active(lander: Lander, name: str, change: Change) -> None:
    """Refuse a source that is not landed, or a change to it, before anything begins."""
    source = lander.catalog.source(name)
    if source.status is not SourceStatus.ACTIVE:
        raise not_active(source, "Resume it, or take a new snapshot of a stopped one, and change its servers then.")
    change(source.options)


def _changed(lander: Lander, name: str, change: Change) -> LandingResult:
    """Land a source of which nodes begin or leave.

    What others have published of it meanwhile stays. What captured a node that left is taken away then, and what was
    installed where it fails; by somebody else later where this process is killed.
    """
    _require_active(lander, name, change)
    former: Mapping[str, Json] = {}

    def become(now: DatabaseSource) -> DatabaseSource:
        nonlocal former
        former, options = now.options[NODES], change(now.options)
        at: Mapping[str, Any] = (now.position or {}).get(NODES, {})
        stay = {node: of for node, of in at.items() if options[NODES].get(node) == former.get(node)}
        return replace(now, options=options, position={**(now.position or {}), NODES: stay})

    def read(capture: Capture, now: DatabaseSource) -> Landing:
        nodes = now.options[NODES]
        begin = [(node, own) for node, own in nodes.items() if own != former.get(node)]
        leave = [(node, own) for node, own in former.items() if own != nodes.get(node)]
        note_captures(lander.catalog, name, [*begin, *leave])
        return capture.renew(now.position or {}, ())

    try:
        result = lander.renew(name, read, become)
    except BaseException:  # an interrupt, too, must not leave a slot that keeps write-ahead log for ever
        with suppress(Exception):  # the error that is told is the one that made it fail
            _take_away(lander, name)
        raise
    _take_away(lander, name)
    return result


def _take_away(lander: Lander, name: str) -> None:
    """Remove what captures no node, or say that it is still there, to be removed later."""
    with suppress(HeadraceError):
        failures = remove_left(lander.catalog, lander.open_capture, name, lander.patience)
        source = lander.catalog.source(name)
        for slot, error in failures.items():
            lander.events.emit(Notice(told_of(source, slot, error)))
