"""Adds, drops and moves nodes of a source of several, while the others go on.

A node that is added, or is on another server now, is copied; what the others have is landed and published with it.
Until then the catalog knows nothing of it, so that a failure leaves the source as it was.
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
from headrace.landing.lander import Lander, not_active, untold
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
    return _begun(lander, name, change)[0]


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
    result, former = _begun(lander, name, change)
    _take_away(lander, former, node)
    return result


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
    former = _active(lander, name, change)

    def become(now: DatabaseSource) -> DatabaseSource:
        nonlocal former
        former = now
        return replace(now, options=change(now.options))

    result = lander.renew(name, lambda capture, now: capture.renew(now.position or {}, ()), become)
    _take_away(lander, former, node)
    return result


def _active(lander: Lander, name: str, change: Change) -> DatabaseSource:
    """Return a source that is landed and can be changed so; nothing has been told to begin yet."""
    source = lander.catalog.source(name)
    if source.status is not SourceStatus.ACTIVE:
        raise not_active(source, "Resume it, or take a new snapshot of a stopped one, and change its servers then.")
    change(source.options)
    return source


def _begun(lander: Lander, name: str, change: Change) -> tuple[LandingResult, DatabaseSource]:
    """Land a source of which some nodes begin; also return it as it was.

    What others have published of it meanwhile stays. What was installed is taken away where it fails.
    """
    former, installed = _active(lander, name, change), dict[str, DatabaseSource]()

    def become(now: DatabaseSource) -> DatabaseSource:
        nonlocal former
        former, options = now, change(now.options)
        at: Mapping[str, Any] = (now.position or {}).get(NODES, {})
        left = {node: of for node, of in at.items() if options[NODES].get(node) == now.options[NODES].get(node)}
        return replace(now, options=options, position={**(now.position or {}), NODES: left})

    def read(capture: Capture, now: DatabaseSource) -> Landing:
        begin = now.options[NODES].keys() - (now.position or {})[NODES].keys()
        installed.update(dict.fromkeys(begin, now))
        return capture.renew(now.position or {}, ())

    try:
        return lander.renew(name, read, become), former
    except BaseException:  # an interrupt, too, must not leave a slot that keeps write-ahead log for ever
        with suppress(Exception):  # the error that is told is the one that made it fail
            there = lander.catalog.source(name).options[NODES]
            for node, source in installed.items():
                if there.get(node) != source.options[NODES][node]:
                    _only(lander, source, node).remove()
        raise


def _take_away(lander: Lander, source: DatabaseSource, node: str) -> None:
    """Remove what captured a node that has left, or say that it is still there."""
    try:
        capture = _only(lander, source, node)
        capture.remove()
        capture.sweep(None)
    except HeadraceError as error:
        slot = source.options[NODES][node].get("slot")
        lander.events.emit(
            Notice(
                f"What captured shard {node} of source {source.name} is still on its server, slot, publication or "
                f"schema {slot}: drop it there. [{error.code}] {error.message}"
            )
        )


def _only(lander: Lander, source: DatabaseSource, node: str) -> Capture:
    """Return the capture of one node."""
    options = {**source.options, NODES: {node: source.options[NODES][node]}}
    return lander.open_capture(replace(source, options=options), untold)
