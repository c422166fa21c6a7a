"""PostgreSQL as a kind of database source: its grammar, options and entry points.

    FROM POSTGRES 'url' TABLES (table, …) [TEXT COLUMNS (column, …)]
        [WITH (capture = 'wal' | 'trigger' | 'auto', failover = true | false)]
    FROM POSTGRES SHARDS ('url' [AS name] [CAPTURE way], …) TABLES (…) [SHARD COLUMN name] …
        [WITH (…, availability = 'partial' | 'strict', same_key = 'error' | 'allowed')]

What may follow the name of a table is in `source_tables`. Every command imports this module: whatever takes time to
import is imported by the method that uses it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.errors import UserError
from headrace.sources.nodes.mirror_shapes import NODES
from headrace.sources.postgres.option_names import (
    AVAILABILITY,
    CAPTURE,
    FAILOVER,
    SAME_KEY,
    SHARD_COLUMN,
    SHARDS,
    TEXT_COLUMNS,
)

if TYPE_CHECKING:
    from headrace.names import TableName
    from headrace.sources.capture import Capture
    from headrace.sources.source_kind import (
        Check,
        Json,
        KeptSource,
        Outlook,
        ServerHealth,
        SourceRequest,
        TableChanges,
        Tables,
        Told,
    )
    from headrace.sql.reader.syntax.statement_cursor import StatementCursor

KIND = "postgres"


class Postgres:
    """See `SourceKind`."""

    name = KIND
    create_form = """  CREATE SOURCE [IF NOT EXISTS] name FROM POSTGRES 'postgresql://user@host:5432/database'
    TABLES (schema.table [COLUMNS (column, …)] [WHERE (condition)] [AS mirror], …)
    [TEXT COLUMNS (schema.table.column, …)]
    [WITH (capture = 'wal' | 'trigger' | 'auto', failover = true | false)]
  CREATE SOURCE [IF NOT EXISTS] name FROM POSTGRES
    SHARDS ('postgresql://user@host:5432/database' [AS name] [CAPTURE WAL | TRIGGER | AUTO], …)
    TABLES (…) [SHARD COLUMN name] [TEXT COLUMNS (…)]
    [WITH (…, availability = 'partial' | 'strict', same_key = 'error' | 'allowed')]"""
    add_form = """  ALTER SOURCE name ADD TABLES (schema.table [COLUMNS (column, …)] [WHERE (condition)] [AS mirror], …)
    [TEXT COLUMNS (schema.table.column, …)]"""
    stopping = frozenset({"SOURCE_CHANGED", "SLOT_LOST", "CAPTURE_REMOVED"})

    # ---- what users write

    def read_request(self, cursor: StatementCursor) -> SourceRequest:
        """Read `{'url' | SHARDS (…)} TABLES (…) [TEXT COLUMNS (…)] [WITH (…)]`."""
        from headrace.sources.source_kind import SourceRequest

        said: dict[str, Any] = {}
        url = ""
        if cursor.take("SHARDS"):
            said[SHARDS] = self.read_shards(cursor)
        else:
            url = cursor.string("A connection string")
        cursor.need("TABLES")
        tables = cursor.texts()
        if SHARDS in said and cursor.take("SHARD"):
            cursor.need("COLUMN")
            said[SHARD_COLUMN] = cursor.name("A name for the column")
        if cursor.take("TEXT"):
            cursor.need("COLUMNS")
            said[TEXT_COLUMNS] = cursor.texts()
        properties = cursor.properties() if cursor.take("WITH") else {}
        own = (CAPTURE, FAILOVER, *((AVAILABILITY, SAME_KEY) if SHARDS in said else ()))
        if unknown := sorted(properties.keys() - set(own)):
            raise cursor.fail(f"A source has no property {unknown[0]}")
        if (failover := properties.get(FAILOVER, "false").lower()) not in ("true", "false"):
            raise cursor.fail("failover is true or false")
        said |= {name: properties[name] for name in own if name in properties and name != FAILOVER}
        if failover == "true":
            said[FAILOVER] = True
        return SourceRequest(url, tables, said)

    def read_shards(self, cursor: StatementCursor) -> Sequence[object]:
        """Read `('url' [AS name] [CAPTURE way], …)`."""
        from headrace.sources.postgres.shards.shard_options import read_shards

        return read_shards(cursor.texts(), cursor.form)

    def mirror_names(self, tables: Tables) -> tuple[str, ...]:
        """Name the mirrors of tables."""
        from headrace.sources.postgres.source_tables import by_mirror

        return tuple(by_mirror(tables))

    def check(self, request: SourceRequest) -> tuple[Check, ...]:
        """Check whether tables can be captured."""
        from headrace.sources.postgres.health.server_health import check
        from headrace.sources.postgres.setup.projection import parts_of
        from headrace.sources.postgres.source_tables import by_mirror, names_of

        options = self.options("source", request)  # refuses what `options` would
        if SHARDS in request.options:
            from headrace.sources.postgres.shards.shard_checks import check_shards

            return check_shards(options)
        tables = by_mirror(request.tables)
        names = names_of(tables)
        parts = {names[mirror]: part for mirror, part in parts_of(tables).items()}
        capture = str(request.options.get(CAPTURE, "wal"))
        return check(request.address, tuple(names.values()), parts=parts, capture=capture)

    # ---- options that the catalog keeps

    def options(self, name: str, request: SourceRequest) -> Json:
        """Make the options of a new source."""
        from headrace.sources.postgres.setup.open_capture import options_of
        from headrace.sources.postgres.setup.projection import parts_of
        from headrace.sources.postgres.source_tables import by_mirror, names_of

        tables = by_mirror(request.tables)
        if SHARDS in request.options:
            return _sharded(name, request, names_of(tables), parts_of(tables))
        said = _known(request.options, TEXT_COLUMNS, CAPTURE, FAILOVER)
        return options_of(
            name,
            request.address,
            names_of(tables),
            _as_text(said),
            parts_of(tables),
            capture=said.get(CAPTURE, "wal"),
            failover=bool(said.get(FAILOVER, False)),
        )

    def with_tables(self, options: Json, tables: Tables, said: Json) -> Json:
        """Add tables to options."""
        from headrace.sources.postgres.setup.open_capture import with_tables
        from headrace.sources.postgres.setup.projection import parts_of
        from headrace.sources.postgres.source_tables import by_mirror, names_of

        as_text = _as_text(_known(said, TEXT_COLUMNS))
        wanted = by_mirror(tables)
        return with_tables(options, names_of(wanted), as_text, parts_of(wanted))

    def without_tables(self, options: Json, mirrors: Sequence[str]) -> Json:
        """Take the tables of some mirrors out of options."""
        from headrace.sources.postgres.setup.open_capture import without_tables

        return without_tables(options, mirrors)

    def named_mirrors(self, source: KeptSource, tables: Sequence[str]) -> tuple[str, ...]:
        """Find mirrors by their own names or by those of their tables."""
        from headrace.sources.postgres.setup.open_capture import mirrors_of

        return mirrors_of(source.name, source.options, tables)

    def changes(self, source: KeptSource, declared: SourceRequest) -> TableChanges:
        """Compare a source with what is declared."""
        from headrace.sources.postgres.setup.declared_changes import changes
        from headrace.sources.source_kind import SourceRequest

        said = _known(declared.options, TEXT_COLUMNS, CAPTURE, FAILOVER, SHARDS, SHARD_COLUMN, AVAILABILITY, SAME_KEY)
        wanted = SourceRequest(declared.address, declared.tables, {**said, TEXT_COLUMNS: _as_text(said)})
        return changes(source, wanted)

    def said_of(self, tables: Tables, said: Json) -> Json:
        """Pick the columns to keep as text that are columns of these tables."""
        from headrace.sources.postgres.source_tables import by_mirror, names_of
        from headrace.sources.postgres.table_syntax import split_column

        owners = set(names_of(by_mirror(tables)).values())
        own = [column for column in said.get(TEXT_COLUMNS, ()) if split_column(column)[:2] in owners]
        return {TEXT_COLUMNS: own}

    def address(self, options: Json) -> str:
        """Return the connection string, or those of all shards; they hold no password."""
        if NODES in options:
            return ", ".join(f"{name} {of['url']}" for name, of in options[NODES].items())
        return str(options["url"])

    def captured(self, source: KeptSource) -> dict[str, tuple[str, ...]]:
        """Return captured tables, by connection string, quoted as PostgreSQL writes names."""
        declared = (tuple(of) for of in source.options["tables"].values())
        renamed = (tuple(name.split(".", 1)) for name in self.followed(source).values())
        names = tuple(".".join('"' + part.replace('"', '""') + '"' for part in of) for of in (*declared, *renamed))
        nodes = source.options.get(NODES)
        urls = [str(source.options["url"])] if nodes is None else [str(of["url"]) for of in nodes.values()]
        return dict.fromkeys(urls, names)

    def position_text(self, position: Json | None) -> str | None:
        """Write a position as text: in the log, the snapshot landed up to, or the cut of a cluster."""
        of = position or {}
        if "cut" in of:
            return f"cut {of['cut']}"
        if NODES in of:
            return ", ".join(f"{name} {self.position_text(at)}" for name, at in of[NODES].items())
        lsn = of.get("lsn")
        return of.get("snapshot") if lsn is None else f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"

    def followed(self, source: KeptSource) -> dict[str, str]:
        """Find mirrors whose table was renamed."""
        from headrace.sources.postgres.table_names import followed

        if NODES in source.options:
            from headrace.sources.postgres.shards.shard_health import followed_by_shard

            return followed_by_shard(source)
        oids = {m.name: int(m.details["oid"]) for m in source.mirrors if m.details and not m.gone}
        declared = {n: ".".join(source.options["tables"][n.table]) for n in oids}
        return {str(mirror): name for mirror, name in followed(source.position, oids, declared)}

    # ---- shards

    def read_node(self, cursor: StatementCursor) -> object:
        """Read `'url' [AS name] [CAPTURE way]`."""
        from headrace.sources.postgres.shards.shard_options import read_shard

        return read_shard(cursor)

    def with_node(self, source: str, options: Json, node: object) -> Json:
        """Add a server to options."""
        from headrace.sources.postgres.shards.shard_options import require_shards, shards_of, with_shard_as_others

        require_shards(source, options, [])
        [shard] = shards_of([node])
        return with_shard_as_others(source, options, shard)

    def moved_node(self, source: str, options: Json, node: str, address: str) -> Json:
        """Put another server in place of a shard's."""
        from headrace.sources.postgres.shards.shard_options import moved_shard

        return moved_shard(source, options, node, address)

    def without_node(self, source: str, options: Json, node: str) -> Json:
        """Remove a server from options."""
        from headrace.sources.postgres.shards.shard_options import without_shard

        return without_shard(source, options, node)

    def require_nodes(self, source: str, options: Json, nodes: Collection[str]) -> None:
        """Refuse names that no shard has."""
        from headrace.sources.postgres.shards.shard_options import require_shards

        require_shards(source, options, nodes)

    # ---- at the server

    def open_capture(self, source: KeptSource, folder: str, told: Told, landings: int = 0) -> Capture:
        """Open the capture of a source."""
        from headrace.sources.postgres.setup.open_capture import open_capture

        if NODES in source.options:
            from headrace.sources.postgres.shards.open_shards import open_shards

            return open_shards(source, folder, told, landings, self.stopping)
        mirrors: dict[TableName, Mapping[str, Any] | None] = {
            m.name: None if m.gone else m.details for m in source.mirrors
        }
        gone = [m.name for m in source.mirrors if m.gone]
        return open_capture(
            source.options, mirrors, folder, gone=gone, position=source.position, told=told, landings=landings
        )

    def health(self, source: KeptSource, folder: str) -> ServerHealth:
        """Find out how a source stands."""
        from headrace.sources.postgres.health.source_status import status

        if NODES in source.options:
            from headrace.sources.postgres.shards.shard_health import status_of_shards

            return status_of_shards(source, folder)
        return status(source, folder)

    def look(self, source: KeptSource, *, landed: bool) -> Json | None:
        """Look at the slot of a source; one that is landed counts as read."""
        from headrace.sources.postgres.health.server_health import look

        if NODES in source.options:
            from headrace.sources.postgres.shards.shard_health import look_at_shards

            return look_at_shards(source, landed=landed)
        return look(source.options, source.position, keep_from_idling=landed)

    def outlook(self, source: KeptSource, look: Json) -> Outlook:
        """Estimate whether the slot will be lost soon."""
        from headrace.sources.postgres.health.source_status import outlook_of

        if NODES in source.options:
            from headrace.sources.postgres.shards.shard_health import outlook_of_shards

            return outlook_of_shards(source, look)
        return outlook_of(source, look)


POSTGRES = Postgres()


def _known(said: Json, *names: str) -> Json:
    """Return what was said of a source.

    Raises:
        UserError: `INVALID_OPTION` for anything else.
    """
    if unknown := sorted(said.keys() - set(names)):
        raise UserError(
            "INVALID_OPTION",
            f"Sources of kind {KIND} have no option {unknown[0]} here.",
            hint=f"They have {', '.join(names)}.",
        )
    return said


def _sharded(
    name: str, request: SourceRequest, tables: Mapping[str, tuple[str, str]], parts: Mapping[str, Any]
) -> Json:
    """Make the options of a new source with shards.

    Raises:
        UserError: `INVALID_OPTION`, `SHARD_TWICE` and the like.
    """
    from headrace.sources.postgres.shards.shard_options import shard_options, shards_of

    own = (SHARD_COLUMN, AVAILABILITY, SAME_KEY)
    said = _known(request.options, TEXT_COLUMNS, CAPTURE, FAILOVER, SHARDS, *own)
    if request.address:
        raise UserError(
            "INVALID_OPTION",
            "A source has one connection string, or shards, not both.",
            hint="Write each server among the shards.",
        )
    chosen = {option: said[option] for option in own if option in said}
    return shard_options(
        name,
        shards_of(said[SHARDS]),
        tables,
        _as_text(said),
        parts,
        capture=said.get(CAPTURE, "wal"),
        failover=bool(said.get(FAILOVER, False)),
        **{{SHARD_COLUMN: "column"}.get(option, option): value for option, value in chosen.items()},
    )


def _as_text(said: Json) -> tuple[str, ...]:
    """Return the columns to keep as text, as options have them: `schema.table.column`.

    Raises:
        UserError: `INVALID_NAME`.
    """
    from headrace.sources.postgres.table_syntax import split_column

    return tuple(".".join(split_column(column)) for column in said.get(TEXT_COLUMNS, ()))
