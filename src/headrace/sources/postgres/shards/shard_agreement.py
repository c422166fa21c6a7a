"""Checks, before anything is installed, that servers with shards of a table agree.

A server that is captured already is asked for its tables by identity, whatever they are called by now; those that are
gone there are not asked for.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headrace.errors import HeadraceError, UserError
from headrace.names import TableName
from headrace.sources.interruption import side_by_side
from headrace.sources.nodes.mirror_shapes import NODES, Shape
from headrace.sources.nodes.nodes_capture import AT_ONCE, named
from headrace.sources.postgres.citus.cluster_catalog import COORDINATOR
from headrace.sources.postgres.connection import connected
from headrace.sources.postgres.option_names import SHARD_COLUMN
from headrace.sources.postgres.remote_tables import RemoteTable, from_json
from headrace.sources.postgres.server import server, tables
from headrace.sources.postgres.setup.projection import Part, as_before, narrowed
from headrace.sources.postgres.shards.shard_options import node_options, shard_twice
from headrace.sources.source_kind import Check, Json


@dataclass(frozen=True, slots=True)
class Seen:
    """A server as it is found.

    Args:
        version: Its major version.
        database: Its identity and that of the database: those of no other are the same.
        tables: Its tables by mirror.
        spared: Mirrors of which it need not have a table.
    """

    version: int
    database: tuple[str, str]
    tables: Mapping[str, RemoteTable]
    spared: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class Kept:
    """The tables of one server as the catalog keeps them.

    Args:
        tables: As they were landed, by mirror.
        gone: Mirrors whose table was dropped there.
        system: The server's identity.
        begins: The server is captured anew.
    """

    tables: Mapping[str, RemoteTable] = field(default_factory=dict)
    gone: Collection[str] = ()
    system: str | None = None
    begins: bool = True


def kept_tables(details: Mapping[TableName, Json | None], gone: Collection[TableName], position: Json | None) -> Kept:
    """Return what the catalog keeps of the tables of one server.

    Args:
        details: Of each mirror, what is kept of the server's table.
        gone: Mirrors whose table was dropped there.
        position: The server's.
    """
    landed = {mirror.table: from_json(of) for mirror, of in details.items() if of is not None}
    at = position or {}
    system = at.get("system") or at.get(NODES, {}).get(str(COORDINATOR), {}).get("system")
    return Kept(landed, {mirror.table for mirror in gone}, system)


def seen(options: Json, mirrors: Collection[str], kept: Mapping[str, Kept]) -> dict[str, Seen]:
    """Look at all servers of a source.

    Args:
        options: The source's options.
        mirrors: The mirrors whose tables are looked at.
        kept: What the catalog keeps of servers.

    Raises:
        HeadraceError: `SOURCE_UNREACHABLE`, `SOURCE_IN_RECOVERY` and the like, with the shard.
    """

    def one(name: str) -> Seen:
        try:
            return _seen(node_options(options, name), mirrors, kept.get(name, Kept()))
        except HeadraceError as error:
            raise named(error, f"Shard {name}") from error

    return side_by_side(one, options[NODES], AT_ONCE)


def _seen(options: Json, mirrors: Collection[str], kept: Kept) -> Seen:
    names = {mirror: (of[0], of[1]) for mirror, of in options["tables"].items() if mirror in mirrors}
    parts = {m: Part(tuple(p["columns"]), p["where"]) for m, p in options.get("parts", {}).items()}
    with connected(options["url"]) as connection:
        now = server(connection)
        row = connection.execute("SELECT oid::text FROM pg_database WHERE datname = current_database()").fetchone()
        same = kept.system == now.system or not kept.begins  # elsewhere identities mean nothing
        known = {t.oid: t for t in kept.tables.values()} if same else {}
        by_oid = {
            f.table.oid: f for f in tables(connection, now.version, oids=known, as_text=options["as_text"], known=known)
        }
        followed = {m: as_before(by_oid[t.oid], t).table for m, t in kept.tables.items() if t.oid in by_oid}
        here = {m: table for m, table in followed.items() if m in mirrors}
        left = {m: of for m, of in names.items() if m not in here and (kept.begins or m not in kept.gone)}
        found = tables(connection, now.version, names=list(left.values()), as_text=options["as_text"])
    by_name = {(f.table.schema, f.table.name): f for f in found if f.table.oid not in by_oid}
    here |= {m: narrowed(by_name[of], parts.get(m, Part())).table for m, of in left.items() if of in by_name}
    spared = {*kept.gone, *(() if kept.begins else kept.tables)}  # what is dropped later is followed
    return Seen(now.version // 10000, (now.system, str(row[0]) if row else ""), here, spared)


def agreement(options: Json, found: Mapping[str, Seen], mirrors: Collection[str]) -> tuple[Check, ...]:
    """Compare servers; one check for databases, one for versions, one a table.

    Args:
        options: The source's options.
        found: Its servers.
        mirrors: The mirrors whose tables are compared.
    """
    versions = ", ".join(f"{name}: PostgreSQL {of.version}" for name, of in found.items())
    checks = [_apart(found), Check("versions", True, versions)]
    for mirror, of in options["tables"].items():
        if mirror in mirrors:
            checks.append(_alike(mirror, ".".join(of), options[SHARD_COLUMN], found))
    return tuple(checks)


def _apart(found: Mapping[str, Seen]) -> Check:
    names: dict[tuple[str, str], str] = {}
    for name, of in found.items():
        if of.database in names:
            return Check("databases", False, f"shards {names[of.database]} and {name} are the same database")
        names[of.database] = name
    return Check("databases", True, f"{len(found)} databases, each of its own")


def _alike(mirror: str, table: str, column: str, found: Mapping[str, Seen]) -> Check:
    shapes = {name: _shape(of.tables[mirror]) for name, of in found.items() if mirror in of.tables}
    if missing := [name for name, of in found.items() if name not in shapes and mirror not in of.spared]:
        return Check(table, False, f"shard {missing[0]} has no such table")
    model = next(iter(shapes), "")
    for name, shape in shapes.items():
        if column.lower() in {c.lower() for c, _ in shape.columns}:
            finding = f"has a column {column} on shard {name} already, as the shard column would be called"
            return Check(table, False, f"{finding}. Give that one another name: SHARD COLUMN …")
        if shape != shapes[model]:
            how = shapes[model].difference(shape)
            return Check(table, False, f"on shard {name} is not like on shard {model}: {how}")
    return Check(table, True, f"the same columns and key on {len(shapes)} shards")


def _shape(table: RemoteTable) -> Shape:
    columns = frozenset((c.name, c.type) for c, _ in table.typed)
    return Shape(columns, tuple(sorted(table.key)) if table.key else None)


def shapes_on(options: Json, kept: Kept, mirrors: Collection[TableName], name: str) -> dict[TableName, Shape]:
    """Return the shapes that tables have now on a server that is captured.

    Args:
        options: The source's options.
        kept: What the catalog keeps of the server.
        mirrors: The mirrors of the tables.
        name: The server.
    """
    found = _seen(node_options(options, name), {m.table for m in mirrors}, replace(kept, begins=False)).tables
    return {mirror: _shape(found[mirror.table]) for mirror in mirrors if mirror.table in found}


def require_agreement(
    options: Json, kept: Mapping[str, Kept], mirrors: Collection[TableName], begins: Collection[str]
) -> None:
    """Refuse servers that do not fit together.

    Args:
        options: The source's options.
        kept: What the catalog keeps of its servers.
        mirrors: The mirrors whose tables are compared.
        begins: Servers that are captured anew.

    Raises:
        UserError: `SHARD_TWICE`, `SHARDS_DIFFER`.
        HeadraceError: Of a server that cannot be looked at.
    """
    compared = {mirror.table for mirror in mirrors}
    found = seen(options, compared, {name: replace(of, begins=name in begins) for name, of in kept.items()})
    databases: dict[tuple[str, str], str] = {}
    for name, of in found.items():
        if of.database in databases:
            raise shard_twice(name, databases[of.database], "their server and database have one identity")
        databases[of.database] = name
    if bad := _wrong(agreement(options, found, compared)):
        raise UserError(
            "SHARDS_DIFFER",
            f"The shards do not fit together: {'; '.join(f'{c.name} {c.finding}' for c in bad)}.",
            hint="Make the tables alike on all servers; the order of their columns does not matter.",
        )


def tables_again(options: Json, name: str, gone: Collection[TableName]) -> list[TableName]:
    """Return the mirrors, of those whose table is gone on a server, that have one again there.

    Raises:
        HeadraceError: Of a server that cannot be looked at.
    """
    there = _seen(node_options(options, name), {mirror.table for mirror in gone}, Kept()).tables
    return [mirror for mirror in gone if mirror.table in there]


def _wrong(checks: Sequence[Check]) -> list[Check]:
    return [check for check in checks if not check.ok]
