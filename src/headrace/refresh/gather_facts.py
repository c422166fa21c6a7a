"""Gathers the facts of a refresh from catalog, pointers and metadata, without a Spark job."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from headrace.algebra.schema import finding
from headrace.catalog import Catalog, Definition, HistoryEntry, RanAs, StreamTable, Version
from headrace.catalog.state.reader import Reader
from headrace.definitions.details import Details, SourceUse, from_json, to_json
from headrace.errors import UserError
from headrace.frontier import Frontier
from headrace.graph.dag import Dag
from headrace.lake.change_logs import complete_after, logged_rows
from headrace.lake.clock_table import clock_change_sql, clock_sql
from headrace.lake.metadata import TableMeta
from headrace.lake.tables import VERSION
from headrace.names import CLOCK, LAKE, WEIGHT, TableName, quote
from headrace.physical.facts import Facts, Obstacle, SourceFacts
from headrace.physical.shared_changes import common_change, followers, logged_change
from headrace.reasons import FullReason
from headrace.refresh.cut.cut import Head, metadata
from headrace.sources.lakehouse.change_plan import AppendRange, NotIncremental, plan_changes
from headrace.sources.lakehouse.changes_sql import changes_sql, rows_sql
from headrace.statistics.calibration import PACE_ENTRIES, calibrated, recomputed


@dataclass(frozen=True, slots=True)
class TableState:
    """A stream table and its surroundings, as the catalog has them at one moment.

    Args:
        table: The stream table.
        streams: All stream tables by name.
        frontier: Its frontier.
        frontiers: Those of it, of its readers, and of what else reads one of its sources.
        at_frontier: The version record of every source at the frontier.
        newest: Its own newest version.
        history: Its recent refreshes that ended well, newest first; failures, however many, tell nothing of its size.
        locations: Metadata files in `lake` of its stored tables and of the change logs it reads.
        logs: Change logs of the stream tables and mirrors that keep one.
        redefined: Why it is recomputed, where its definition is a new one.
    """

    table: StreamTable
    streams: Mapping[TableName, StreamTable]
    frontier: Frontier
    frontiers: Mapping[TableName, Frontier]
    at_frontier: Mapping[TableName, Version]
    newest: Version | None
    history: tuple[HistoryEntry, ...]
    locations: Mapping[TableName, str]
    logs: Mapping[TableName, TableName]
    redefined: FullReason | None = None


def known(catalog: Catalog, name: TableName) -> TableState:
    """Read one stream table's surroundings from one state of the catalog."""
    catalog.look_at_stream_table(name)
    with catalog.reading() as reader:
        return _known(reader, name)


def known_cycle(catalog: Catalog, name: TableName) -> dict[TableName, TableState]:
    """Read the surroundings of all members of a stream table's cycle from one catalog state.

    Args:
        catalog: The catalog.
        name: The stream table.

    Returns:
        The members, this one among them; it alone where it is in no cycle.
    """
    catalog.look_at_stream_table(name)
    with catalog.reading() as reader:
        state = _known(reader, name)
        cyclic = details_of(state.table).cyclic
        members = Dag({n: t.sources for n, t in state.streams.items()}).component(name) if cyclic else ()
        return {member: state if member == name else _known(reader, member) for member in members or (name,)}


def _known(reader: Reader, name: TableName) -> TableState:
    streams = {t.name: t for t in reader.stream_tables()}
    table = streams.get(name) or reader.stream_table(name)
    related = {name, *table.sources}
    frontiers = reader.frontiers([n for n, t in streams.items() if n == name or not related.isdisjoint(t.sources)])
    frontier = frontiers.get(name, Frontier())
    logs = {t.name: t.log for t in streams.values() if t.log is not None}
    logs |= {m.name: m.log for source in reader.sources() for m in source.mirrors}
    return TableState(
        table,
        streams,
        frontier,
        frontiers,
        reader.versions_at(frontier),
        reader.newest_version(name),
        reader.history(name, 4 * PACE_ENTRIES, succeeded=True),
        _locations(reader, table, logs),
        logs,
    )


def _locations(reader: Reader, table: StreamTable, logs: Mapping[TableName, TableName]) -> dict[TableName, str]:
    """Return metadata files of a table's stored tables, and of the change logs it reads."""
    names = [*table.stored, *(logs[s] for s in table.sources if s in logs)]
    return {n: p.metadata_location for n, p in reader.pointers(LAKE, names).items()}


def redefined(state: TableState, definition: Definition, reason: FullReason) -> TableState:
    """Return a table's state under a new definition: no frontier, the next generation.

    Its surroundings are those of the new definition, too, for which versions agree is found out from them.
    """
    table = defined_as(state.table, definition)
    return replace(
        state,
        table=table,
        streams={**state.streams, table.name: table},
        frontier=Frontier(),
        frontiers={name: frontier for name, frontier in state.frontiers.items() if name != table.name},
        at_frontier={},
        redefined=reason,
    )


def among(state: TableState, anew: Mapping[TableName, Definition]) -> TableState:
    """Return the state beside stream tables whose new definitions are published with it.

    Args:
        state: What the catalog says.
        anew: The new definitions.
    """
    streams = {n: defined_as(state.streams[n], definition) for n, definition in anew.items() if n in state.streams}
    logs = {name: table.log for name, table in streams.items() if table.log is not None}
    return replace(
        state,
        streams={**state.streams, **streams},
        frontiers={name: frontier for name, frontier in state.frontiers.items() if name not in anew},
        logs={**state.logs, **logs},
    )


def defined_as(table: StreamTable, definition: Definition) -> StreamTable:
    """Return a stream table as it is once a new definition of it is published."""
    return replace(
        table,
        query=definition.query,
        sources=definition.sources,
        refresh_mode=definition.refresh_mode,
        schedule=definition.schedule,
        details=definition.details,
        companion=definition.companion,
        log=definition.log,
        options=table.options if definition.options is None else definition.options,
        generation=table.generation + 1,
        companion_behind=False,
    )


def outside(state: TableState, cycle: Collection[TableName]) -> TableState:
    """Return the state without sources in the table's own cycle."""
    return replace(state, table=replace(state.table, sources=tuple(s for s in state.table.sources if s not in cycle)))


def still_read(state: TableState, heads: Mapping[TableName, Head]) -> TableState:
    """Return the state with only the sources and columns that the new definition still reads.

    What changed in them can be told although the definition does not hold any more.

    Args:
        state: What the catalog says under the definition that is given up.
        heads: Heads of what the new definition reads.
    """
    details = from_json(state.table.details)
    uses = tuple(_still_there(use, heads[use.name].meta) for use in details.sources if use.name in heads)
    names = tuple(use.name for use in uses)
    return replace(state, table=replace(state.table, sources=names, details=to_json(replace(details, sources=uses))))


def _still_there(use: SourceUse, meta: TableMeta) -> SourceUse:
    there = {(c.name.lower(), c.type) for c in meta.columns}
    return replace(use, columns=tuple(c for c in use.columns if (c.name.lower(), c.type) in there), ids=())


def gather(state: TableState, heads: Mapping[TableName, Head], *, forced: bool, tag: str) -> Facts:
    """Build the facts.

    Args:
        state: What the catalog says.
        heads: Heads of the table's sources.
        forced: The user asked for FULL.
        tag: Suffix for temporary names.

    Raises:
        UserError: `SOURCE_SCHEMA_CHANGED` when a used column is gone or has another type.
    """
    details = from_json(state.table.details)
    uses = {use.name: use for use in details.sources}
    sources = tuple(_source(state, uses[name], heads[name]) for name in state.table.sources)
    loaded = len(state.frontier) > 0 or (not state.table.sources and state.redefined is None)
    return Facts(
        name=state.table.name,
        details=details,
        refresh_mode=state.table.refresh_mode,
        sources=sources,
        state_rows=state.newest.row_count if state.newest else None,
        companion=state.table.companion,
        log=state.table.log,
        version=state.newest.version if state.newest else None,
        readers=_readers(state),
        state_at=_published(state, state.table.name),
        companion_at=_published(state, state.table.companion),
        companion_rows=_rows(state, state.table.companion),
        companion_behind=state.table.companion is not None and state.table.companion_behind,
        calibration=calibrated(state.history),
        recomputed=recomputed(state.history),
        refused=_refused(state.history),
        forced=forced,
        obstacle=None if loaded or state.newest is None else _redefined(state),
        renewed=_renewed(state, details, heads),
        tag=tag,
    )


def _refused(history: tuple[HistoryEntry, ...]) -> str | None:
    """Return what Spark refused of the last refresh that computed something."""
    last = next((entry for entry in history if entry.mode is not RanAs.NO_CHANGE), None)
    return last.reason_detail if last is not None and last.reason == FullReason.STATEMENT_REFUSED else None


def _renewed(state: TableState, details: Details, heads: Mapping[TableName, Head]) -> Details | None:
    """Return the details over tables that were created again since; None where none was.

    Ids of columns are of one table: those of its successor would be compared with nothing.
    """
    now = tuple(u.of_table(heads[u.name].meta) if _is_of_former_table(state, u, heads) else u for u in details.sources)
    return None if now == details.sources else replace(details, sources=now)


def _is_of_former_table(state: TableState, use: SourceUse, heads: Mapping[TableName, Head]) -> bool:
    """Return whether a user's table is another one than a definition was made over."""
    is_users = use.name in heads and use.name not in state.streams
    return is_users and use.uuid not in (None, heads[use.name].meta.uuid)


def of_contents(state: TableState, details: Details, rows_before: str, tag: str) -> Facts:
    """Build the facts of a table that takes over contents from elsewhere.

    Args:
        state: What the catalog says of it.
        details: The definition that its contents then satisfy.
        rows_before: Table expression of its published rows, with that definition's columns.
        tag: Suffix for temporary names.
    """
    return Facts(
        name=state.table.name,
        details=replace(details, keys=()),  # the rows it has need not satisfy keys of those that come
        refresh_mode=state.table.refresh_mode,
        sources=(),
        state_rows=state.newest.row_count if state.newest else None,
        companion=None,
        log=state.table.log,
        version=state.newest.version if state.newest else None,
        state_at=rows_before,
        tag=tag,
    )


def _readers(state: TableState) -> frozenset[TableName]:
    if state.newest is None or state.table.log is None:
        return frozenset()
    return followers(state.table.name, state.newest.version, state.streams, state.frontiers)


def _published(state: TableState, table: TableName | None) -> str | None:
    if table is None or table not in state.locations:
        return None
    meta = metadata(state.locations[table])
    return rows_sql(table, meta, meta.current_snapshot_id)


def _rows(state: TableState, table: TableName | None) -> int:
    if table is None or table not in state.locations:
        return 0
    return metadata(state.locations[table]).row_count or 0


def _redefined(state: TableState) -> Obstacle:
    reason = state.redefined or FullReason.DEFINITION_CHANGED
    return Obstacle(reason, reason.sentence)


def _source(state: TableState, use: SourceUse, head: Head) -> SourceFacts:
    name, now = use.name, head.version
    check_schema(state.table.name, by_name(use) if name in state.streams else use, head.meta)
    if head.newer and not head.readable:
        raise gone(state.table.name, name, aligned=head.aligned)
    facts = SourceFacts(
        name=name,
        before=None,
        after=rows_sql(head.found_at(name), head.meta, now.snapshot_id),
        version=now.version,
        rows=now.row_count,
        columns=use.held_to(head.meta.columns),
        names=frozenset(column.name for column in head.meta.columns),
    )
    old = state.at_frontier.get(name)
    if old is None:
        return facts if not state.frontier else _with(facts, obstacle=_redefined(state))
    recreated = bool(old.table_uuid) and old.table_uuid != head.meta.uuid
    if recreated or _is_of_former_table(state, use, {name: head}):
        detail = f"{name} was dropped and created again"
        return _with(facts, obstacle=Obstacle(FullReason.SOURCE_RECREATED, detail))
    if name in state.streams and not head.meta.has_kept((c.name for c in use.columns), old.snapshot_id):
        detail = f"{name} has lost columns and gained others of the same names"
        return _with(facts, obstacle=Obstacle(FullReason.SCHEMA_CHANGED, detail))
    if old.version == now.version:
        return _with(facts, before=facts.after)
    if name == CLOCK:
        change = clock_change_sql(old.snapshot_id, now.snapshot_id)
        return _with(facts, before=clock_sql(old.snapshot_id), change=change, change_rows=2)
    if name in state.streams or name in state.logs:
        return _stream_change(facts, state, use, old, head)
    return _table_change(facts, state, use, old, head)


def gone(table: TableName, source: TableName, *, aligned: bool) -> UserError:
    """Return the error for a held-back source whose held state is no longer kept."""
    gate, together = f"Open its gate: `headrace gate open {source}`", f"Refresh the sources of {table} in one call"
    return UserError(
        "HISTORY_EXPIRED",
        f"{source} cannot be read any more as of when it was held back, so {table} cannot be refreshed.",
        hint=f"{together if aligned else gate}; and keep snapshots longer: headrace maintain --older-than.",
    )


def _stream_change(facts: SourceFacts, state: TableState, use: SourceUse, old: Version, head: Head) -> SourceFacts:
    kept = state.logs.get(use.name)
    location = state.locations.get(kept) if kept is not None else None
    log = head.log or (metadata(location) if location is not None else None)
    if kept is None:
        detail = f"{use.name} keeps no change log"
        return _with(facts, obstacle=Obstacle(FullReason.SOURCE_NOT_INCREMENTAL, detail))
    begins = complete_after(log) if log is not None else 0
    if old.version < begins:
        detail = f"the change log of {use.name} begins after version {begins}, and version {old.version} was read"
        return _with(facts, obstacle=Obstacle(FullReason.HISTORY_EXPIRED, detail))
    columns = tuple(column.name for column in use.columns)
    listed = ", ".join((*map(quote, columns), WEIGHT))
    entries = f"FROM {head.found_at(kept).sql} WHERE {VERSION} > {old.version} AND {VERSION} <= {head.version.version}"
    before = rows_sql(head.found_at(use.name), head.meta, old.snapshot_id)
    rows = _logged(old, head, log)
    common = log and logged_change(
        state.table.name,
        use.name,
        (old, head.version),
        columns=columns,
        log=log,
        sql=entries,
        rows=rows,
        streams=state.streams,
        frontiers=state.frontiers,
    )
    change = f"SELECT {listed} {entries}"
    return _with(facts, before=before, change=change, change_rows=rows, logged=True, common=common)


def _logged(old: Version, head: Head, log: TableMeta | None) -> int | None:
    if log is None:
        return None
    now, kept = head.version, head.meta.snapshots
    since, until = (kept.get(each.snapshot_id or 0) for each in (old, now))
    return logged_rows(log, now.version - old.version, head.newer, since, until if head.newer else None)


def _table_change(facts: SourceFacts, state: TableState, use: SourceUse, old: Version, head: Head) -> SourceFacts:
    plan = plan_changes(head.meta, old.snapshot_id, head.version.snapshot_id, uuid=old.table_uuid)
    if isinstance(plan, NotIncremental):
        return _with(facts, obstacle=Obstacle(plan.reason, plan.detail))
    before = rows_sql(use.name, head.meta, old.snapshot_id)
    columns = tuple(c.name for c in use.columns)
    change = changes_sql(use.name, head.meta, plan, columns)
    appended = all(isinstance(part, AppendRange) for part in plan.parts)
    common = common_change(
        state.table.name,
        use.name,
        columns,
        (old, head.version),
        meta=head.meta,
        plan=plan,
        streams=state.streams,
        frontiers=state.frontiers,
    )
    return _with(
        facts,
        before=before,
        change=change,
        change_rows=plan.rows,
        carried=plan.carried,
        appended=appended,
        common=common,
    )


def _with(facts: SourceFacts, **changes: object) -> SourceFacts:
    return replace(facts, **changes)  # type: ignore[arg-type]


def check_schema(table: TableName, use: SourceUse, meta: TableMeta) -> None:
    """Refuse a source whose used columns are not what the query was defined over.

    Raises:
        UserError: `SOURCE_SCHEMA_CHANGED`.
    """
    found = finding((c.name, c.type) for c in meta.columns)
    ids = meta.nested_ids_of(c.name for c in use.columns) if use.uuid == meta.uuid else ()
    for place, column in enumerate(use.columns):
        type_ = found(column.name)
        known = use.ids[place] if use.ids else ()
        same = not ids or ids[place][: len(known)] == known
        if type_ == column.type and same:
            continue
        what = "was dropped or renamed" if type_ is None else f"has type {type_} now, not {column.type}"
        if not same:
            nested = ids[place][0] == known[0]
            what = "has another field now, of the same name" if nested else "is another column now, of the same name"
        raise UserError(
            "SOURCE_SCHEMA_CHANGED",
            f"{table} is stopped: column {column.name} of {use.name} {what}.",
            hint=f"Undo the change of {use.name}, or define the stream table again: "
            f"CREATE OR REPLACE STREAM TABLE {table} AS …",
        )


def by_name(use: SourceUse) -> SourceUse:
    """Return the use of a stream table, whose columns are known by name and type.

    A promotion, and what takes it back, may drop one and add it again; its values are those of its query all the same.
    """
    return replace(use, ids=(), uuid=None)


def details_of(table: StreamTable) -> Details:
    """Return the engine's facts of a stream table."""
    return from_json(table.details)
