"""Checks, before anything is installed, that servers with shards of a table agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from headrace.errors import HeadraceError, UserError
from headrace.sources.nodes.mirror_shapes import NODES, Shape
from headrace.sources.nodes.nodes_capture import AT_ONCE, named
from headrace.sources.postgres.connection import connected
from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.server import server, tables
from headrace.sources.postgres.setup.projection import Part, narrowed
from headrace.sources.postgres.shards.shard_options import SHARD_COLUMN, node_options, shard_twice
from headrace.sources.source_kind import Check, Json


@dataclass(frozen=True, slots=True)
class Seen:
    """A server as it is found.

    Args:
        version: Its major version.
        database: Its identity and that of the database: those of no other are the same.
        tables: Its tables by mirror.
    """

    version: int
    database: tuple[str, str]
    tables: Mapping[str, RemoteTable]


def seen(options: Json) -> dict[str, Seen]:
    """Look at all servers of a source.

    Raises:
        HeadraceError: `SOURCE_UNREACHABLE`, `SOURCE_IN_RECOVERY` and the like, with the shard.
    """

    def one(name: str) -> Seen:
        try:
            return _seen(node_options(options, name))
        except HeadraceError as error:
            raise named(error, f"Shard {name}") from error

    with ThreadPoolExecutor(AT_ONCE, thread_name_prefix="headrace-node") as pool:
        return dict(zip(options[NODES], pool.map(one, options[NODES]), strict=True))


def _seen(options: Json) -> Seen:
    names = {mirror: (of[0], of[1]) for mirror, of in options["tables"].items()}
    parts = {m: Part(tuple(p["columns"]), p["where"]) for m, p in options.get("parts", {}).items()}
    with connected(options["url"]) as connection:
        now = server(connection)
        row = connection.execute("SELECT oid::text FROM pg_database WHERE datname = current_database()").fetchone()
        found = tables(connection, now.version, names=list(names.values()), as_text=options["as_text"])
    by_name = {(f.table.schema, f.table.name): f for f in found}
    here = {m: narrowed(by_name[of], parts.get(m, Part())).table for m, of in names.items() if of in by_name}
    return Seen(now.version // 10000, (now.system, str(row[0]) if row else ""), here)


def agreement(options: Json, found: Mapping[str, Seen]) -> tuple[Check, ...]:
    """Compare servers; one check for databases, one for versions, one a table.

    Args:
        options: The source's options.
        found: Its servers.
    """
    versions = ", ".join(f"{name}: PostgreSQL {of.version}" for name, of in found.items())
    checks = [_apart(found), Check("versions", True, versions)]
    for mirror, of in options["tables"].items():
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
    if missing := [name for name in found if name not in shapes]:
        return Check(table, False, f"shard {missing[0]} has no such table")
    model = next(iter(shapes))
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


def require_agreement(options: Json) -> None:
    """Refuse servers that do not fit together.

    Raises:
        UserError: `SHARD_TWICE`, `SHARDS_DIFFER`.
        HeadraceError: Of a server that cannot be looked at.
    """
    found = seen(options)
    databases: dict[tuple[str, str], str] = {}
    for name, of in found.items():
        if of.database in databases:
            raise shard_twice(name, databases[of.database], "their server and database have one identity")
        databases[of.database] = name
    if bad := _wrong(agreement(options, found)):
        raise UserError(
            "SHARDS_DIFFER",
            f"The shards do not fit together: {'; '.join(f'{c.name} {c.finding}' for c in bad)}.",
            hint="Make the tables alike on all servers; the order of their columns does not matter.",
        )


def _wrong(checks: Sequence[Check]) -> list[Check]:
    return [check for check in checks if not check.ok]
