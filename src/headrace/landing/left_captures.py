"""Removes what captured nodes that a source has not, or not any more.

It is noted in the catalog before it is installed, or before its node leaves, and forgotten once it is removed: a
process may be killed in between, and a slot that nobody knows of keeps its server's log for ever. What is noted is left
over where no node of the source uses it and nobody holds the source's lease.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from headrace.catalog import Catalog, DatabaseSource
from headrace.catalog.records import Json
from headrace.errors import HeadraceError
from headrace.landing.landing_attempt import Open
from headrace.landing.source_leases import source_resource
from headrace.refresh.held_leases import holding_leases
from headrace.sources.interruption import is_interrupted
from headrace.sources.nodes.mirror_shapes import NODES

_SLOT = "slot"
"""In a node's options: the name of what captures it, which no other node ever has."""


def note_captures(catalog: Catalog, name: str, nodes: Iterable[tuple[str, Json]]) -> None:
    """Note what captures nodes that begin or leave.

    Args:
        catalog: The catalog.
        name: The source, whose lease is held.
        nodes: The nodes, with their own options.
    """
    noted = {str(own[_SLOT]): {"node": node, "options": dict(own)} for node, own in nodes}
    catalog.note_source_captures(name, noted)


def left_captures(source: DatabaseSource) -> dict[str, Json]:
    """Return what is noted and not used, by its name on the server: `node`, and its `options`."""
    used = _used(source)
    return {slot: of for slot, of in source.captures.items() if slot not in used}


def remove_left(catalog: Catalog, open_capture: Open, name: str, patience: float = 0.0) -> dict[str, HeadraceError]:
    """Remove what is left over of a source; return errors, by the name of what stays.

    Args:
        catalog: The catalog.
        open_capture: Opens captures.
        name: The source.
        patience: Seconds to wait for others who land it.

    Raises:
        HeadraceError: `LEASE_HELD`, `SOURCE_UNKNOWN`.
    """
    with holding_leases(catalog, [source_resource(name)], patience=patience, given_up=is_interrupted):
        return remove_under_lease(catalog, open_capture, catalog.source(name))


def remove_under_lease(catalog: Catalog, open_capture: Open, source: DatabaseSource) -> dict[str, HeadraceError]:
    """Remove what is left over of a source whose lease is held; see `remove_left`."""
    failures: dict[str, HeadraceError] = {}
    for slot, of in left_captures(source).items():
        node, alone = of["node"], {**source.options, NODES: {of["node"]: of["options"]}}
        try:
            capture = open_capture(replace(source, options=alone, position=None), lambda _: None)
            capture.remove()
            if node not in source.options[NODES]:  # else the files are of the node that has its name now
                capture.sweep(None)
        except HeadraceError as error:
            failures[slot] = error
    if over := source.captures.keys() - failures.keys():
        catalog.note_source_captures(source.name, {}, over)
    return failures


def told_of(source: DatabaseSource, slot: str, error: HeadraceError) -> str:
    """Return the notice for something that could not be removed."""
    node: Any = source.captures[slot]["node"]
    return (
        f"What captured shard {node} of source {source.name} is still on its server: slot, publication or schema "
        f"{slot}. It is removed once that can be reached; where it never can again, nothing needs to be done. "
        f"[{error.code}] {error.message}"
    )


def _used(source: DatabaseSource) -> set[str]:
    return {str(own[_SLOT]) for own in source.options.get(NODES, {}).values()}
