"""Versions of sources that a refresh reads: of the cut, staged by its group, or aligned."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from headrace.catalog import Catalog, StreamTable, Version
from headrace.frontier import Frontier
from headrace.names import TableName
from headrace.refresh.cut.align_cut import (
    Alignment,
    aligned_heads,
    alignment,
    must_align,
    nothing_agrees,
    wants_alignment,
)
from headrace.refresh.cut.cut import Cut, Head
from headrace.refresh.gather_facts import TableState
from headrace.refresh.groups.grouping import Defaults
from headrace.results.refresh_results import Status


class Observation:
    """Looks at what stream tables read.

    Args:
        catalog: The catalog.
        defaults: What the project wants where a stream table says nothing.
    """

    def __init__(self, catalog: Catalog, defaults: Defaults) -> None:
        self.catalog = catalog
        self.defaults = defaults

    def has_moved(self, name: TableName, heads: Cut) -> bool:
        """Return whether a cheap look proves that a table's sources moved."""
        with self.catalog.reading() as reader:
            table, frontier = reader.stream_table(name), reader.frontier(name)
        return heads.passed(frontier) and not wants_alignment(table, self.defaults)

    def seen_by_all(
        self,
        names: Sequence[TableName],
        heads: Cut,
        tables: Mapping[TableName, StreamTable],
        *,
        later: Collection[TableName] = (),
    ) -> dict[TableName, Head]:
        """Observe, once for all members, the stream tables outside a group that they read.

        Args:
            names: The members.
            heads: The cut.
            tables: All stream tables.
            later: Those that are not looked at yet.
        """
        if len(names) == 1:
            return {}
        read = {s for n in names if n in tables for s in tables[n].sources}
        outside = [s for s in sorted(read.difference(later)) if s in tables and s not in names]
        newest = self.catalog.newest_versions(outside)
        outside = [s for s in outside if s in newest]
        return heads.of(outside, frozenset(outside))

    def of(
        self, state: TableState, heads: Cut, seen: Mapping[TableName, Head], *, aligned: bool = False
    ) -> dict[TableName, Head]:
        """Return the heads of what a stream table reads.

        Args:
            state: The stream table.
            heads: The cut.
            seen: Heads that are settled already, such as what members of its group have staged.
            aligned: Whether it reads versions that agree although it does not ask for that.
        """
        rest = [s for s in state.table.sources if s not in seen]
        found = {**heads.of(rest, frozenset(state.streams)), **seen}
        found = {s: found[s] for s in state.table.sources}
        wanted = aligned or wants_alignment(state.table, self.defaults)
        strict = aligned or must_align(state.table, self.defaults)
        return self._aligned(state, found, strict=strict) if wanted else found

    def is_current(self, state: TableState, heads: Cut, seen: Mapping[TableName, Head]) -> bool:
        """Return whether a stream table stands where it would be moved to; arguments as for `of`."""
        if state.newest is None or state.table.status is not Status.ACTIVE:
            return False
        if any(s in state.streams and state.frontier.get(s) is None for s in state.table.sources):
            return False
        observed = self.of(state, heads, seen)
        return state.frontier == Frontier({s: h.version.version for s, h in observed.items()})

    def _aligned(self, state: TableState, found: dict[TableName, Head], *, strict: bool) -> dict[TableName, Head]:
        """Return heads held at versions that agree.

        Staged heads are of one cut already and stay as they are.

        Args:
            state: The stream table.
            found: The newest heads.
            strict: Refuse a first load where no versions agree, rather than load from the newest.
        """
        if any(head.staged for head in found.values()):
            return found
        name, newest = state.table.name, {s: head.version.version for s, head in found.items()}

        def readable(version: Version) -> bool:
            return replace(found[version.relation], version=version).readable

        with self.catalog.reading() as reader:
            agreed = alignment(reader, name, state.streams, state.frontiers, newest, readable)
            if agreed.versions is None and not state.frontier:
                if strict:
                    raise nothing_agrees(name, state.table.sources)
                return found
            if agreed.versions is None:  # as the table is, it is right; it waits
                agreed = Alignment(state.frontier, agreed.tops)
            return aligned_heads(found, agreed, reader)
