"""Reads from the catalog what alignment needs, and holds heads at versions that agree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from headrace.catalog import StreamTable, Version
from headrace.catalog.state.reader import Reader
from headrace.definitions.details import deployment_of
from headrace.errors import EnvironmentFault
from headrace.frontier import Frontier
from headrace.graph.dag import Dag
from headrace.graph.diamonds import tops as tops_of
from headrace.names import TableName
from headrace.refresh.cut.cut import Head, head_at
from headrace.refresh.cut.version_alignment import Past, State, aligned
from headrace.refresh.groups.grouping import Defaults
from headrace.schedule.options import Consistency, parse_options


@dataclass(frozen=True, slots=True)
class Alignment:
    """Versions that an aligned stream table may read.

    Args:
        versions: Of each source the version to read; None when no versions agree.
        tops: Where ways part that meet at the table; without any, nothing has to agree.
    """

    versions: Mapping[TableName, int] | None
    tops: frozenset[TableName]


def wants_alignment(table: StreamTable, defaults: Defaults) -> bool:
    """Return whether a stream table reads aligned versions; members of cycles do not.

    An atomic green does, too: public tables on ways that meet at it are never in its group.
    """
    wanted = parse_options(table.options).diamond_consistency or defaults.consistency
    across = wanted is Consistency.ATOMIC and bool(deployment_of(table.details))
    return not table.details.get("cyclic") and (wanted is Consistency.ALIGNED or across)


def must_align(table: StreamTable, defaults: Defaults) -> bool:
    """Return whether a stream table is not even loaded from versions that do not agree."""
    own = parse_options(table.options).diamond_consistency
    return (own or defaults.consistency) is Consistency.ALIGNED


def alignment(
    reader: Reader,
    name: TableName,
    tables: Mapping[TableName, StreamTable],
    frontiers: Mapping[TableName, Frontier],
    newest: Mapping[TableName, int],
    readable: Callable[[Version], bool] = lambda _: True,
) -> Alignment:
    """Find the newest versions of a table's sources that agree, none older than reflected.

    Args:
        reader: One state of the catalog.
        name: The stream table.
        tables: All stream tables.
        frontiers: Their frontiers.
        newest: The newest versions that may be read; relations that are missing cannot be read.
        readable: Whether the rows of a version are still kept.
    """
    graph = _above(name, tables)
    tops = tops_of(graph, name)
    sources = tables[name].sources
    if not tops or any(s not in newest for s in sources):
        return Alignment({s: newest[s] for s in sources if s in newest}, tops)
    concerned = [n for n in graph.upstream(name) if n in tables and any(t in tops for t in (n, *graph.upstream(n)))]
    own = frontiers.get(name, Frontier())
    candidates = {s: [newest[s]] for s in sources}
    for source in (s for s in sources if s in tops or s in concerned):
        later = reader.versions(source, after=own.get(source, 0) - 1)
        candidates[source] = _candidates([v for v in later if v.version <= newest[source]], own.get(source), readable)
    past = Past(tops, {n: _states(reader, n) for n in concerned})
    return Alignment(aligned(past, candidates), tops)


def aligned_heads(heads: Mapping[TableName, Head], found: Alignment, reader: Reader) -> dict[TableName, Head]:
    """Return heads, held back at the versions that agree."""
    older = {n: v for n, v in (found.versions or {}).items() if v < heads[n].version.version}
    at = reader.versions_at(older)
    return {n: head_at(head, at.get(n), aligned=True) for n, head in heads.items()}


def readable_later(
    reader: Reader,
    tables: Mapping[TableName, StreamTable],
    frontiers: Mapping[TableName, Frontier],
    defaults: Defaults,
) -> list[Version]:
    """Return versions that aligned tables may still read, those since their frontiers."""
    found: list[Version] = []
    for name, frontier in frontiers.items():
        if name in tables and wants_alignment(tables[name], defaults):
            graph = _above(name, tables)
            tops = tops_of(graph, name)
            for source, version in frontier.items():
                if source in tops or tops & set(graph.upstream(source)):
                    found += reader.versions(source, after=version)
    return found


def nothing_agrees(name: TableName, sources: Sequence[TableName]) -> EnvironmentFault:
    """Return the error for a table that cannot be loaded as no source versions agree."""
    return EnvironmentFault(
        "NOTHING_AGREES",
        f"No versions of what {name} reads agree on what they have in common; nothing was loaded.",
        hint=f"Refresh {', '.join(map(str, sources))} in one call: they then reflect one cut.",
        retryable=True,
    )


def _above(name: TableName, tables: Mapping[TableName, StreamTable]) -> Dag[TableName]:
    """Return the graph of a stream table and everything that it depends on."""
    reads: dict[TableName, tuple[TableName, ...]] = {}
    queue = [name]
    while queue:
        one = queue.pop()
        if one in tables and one not in reads:
            reads[one] = tables[one].sources
            queue += reads[one]
    return Dag(reads)


def _candidates(versions: Sequence[Version], reflected: int | None, readable: Callable[[Version], bool]) -> list[int]:
    """Return readable versions, oldest first: of the present table, and the reflected one."""
    uuid = versions[-1].table_uuid if versions else None
    return [v.version for v in versions if v.version == reflected or (v.table_uuid == uuid and readable(v))]


def _states(reader: Reader, name: TableName) -> tuple[State, ...]:
    """Return the version and frontier of each refresh of a stream table, oldest first."""
    return tuple(State(version, frontier) for version, frontier in reader.past_frontiers(name))
