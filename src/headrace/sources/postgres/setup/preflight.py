"""Checks the requirements of capturing a source, each with the statement that meets it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from psycopg import sql

from headrace.errors import UserError
from headrace.sources.postgres.connection import Connection
from headrace.sources.postgres.remote_tables import RemoteTable, is_kept_back
from headrace.sources.postgres.server import Found, Partition, server, tables
from headrace.sources.postgres.setup.projection import Part, narrowed, objections
from headrace.sources.postgres.triggers.trigger_requirements import fitness
from headrace.sources.postgres.wal.server_promotion import FAILOVER_SLOTS
from headrace.sources.source_kind import Check

OLDEST = 140000
"""PostgreSQL 14, by `server_version_num`."""
CAPTURABLE = ("r", "p")
SYSTEM_SCHEMAS = ("pg_catalog", "information_schema")


_ROLE = """
SELECT current_user, rolreplication OR rolsuper OR EXISTS (SELECT FROM pg_roles g
        WHERE g.rolname IN ('rds_replication', 'azure_pg_admin', 'cloudsqlsuperuser') AND pg_has_role(g.oid, 'MEMBER')),
    has_database_privilege(current_database(), 'CREATE'), current_database(),
    current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_replication_slots),
    current_setting('max_wal_senders')::int - (SELECT count(*) FROM pg_stat_replication),
    current_setting('max_slot_wal_keep_size'), current_setting('idle_replication_slot_timeout', true),
    greatest(20, current_setting('max_replication_slots')::int + 10),
    greatest(20, current_setting('max_wal_senders')::int + 10)
FROM pg_roles WHERE rolname = current_user
"""


def check_server(connection: Connection, failover: bool = False) -> tuple[Check, ...]:
    """Check version, settings and the role's privileges.

    Args:
        connection: To the server.
        failover: Whether replicas are to keep the slot, which needs more.
    """
    now = server(connection)
    row = connection.execute(_ROLE).fetchone()
    assert row is not None, "the current role exists"
    role, replication, creator, database, slots, senders, kept, idle, more_slots, more_senders = row
    return (
        Check("version", now.version >= OLDEST, f"PostgreSQL {now.version // 10000}", None),
        Check(
            "wal_level",
            now.wal_level == "logical",
            f"wal_level is {now.wal_level}",
            "ALTER SYSTEM SET wal_level = 'logical'; -- then restart; on RDS and Aurora: parameter group, "
            "rds.logical_replication = 1; on Cloud SQL: flag cloudsql.logical_decoding; or capture by triggers, which "
            "need none of this: capture = 'trigger'",
        ),
        Check(
            "slots",
            int(str(slots)) > 0,
            f"{slots} replication slots are free",
            f"ALTER SYSTEM SET max_replication_slots = {more_slots}; -- then restart; or drop slots that nobody uses",
        ),
        Check(
            "senders",
            int(str(senders)) > 0,
            f"{senders} WAL senders are free",
            f"ALTER SYSTEM SET max_wal_senders = {more_senders}; -- then restart",
        ),
        Check(
            "replication",
            bool(replication),
            f"role {role} may {'' if replication else 'not '}use replication slots",
            _text("ALTER ROLE {} REPLICATION; -- on RDS: GRANT rds_replication TO {}", role, role),
        ),
        Check(
            "create",
            bool(creator),
            f"role {role} may {'' if creator else 'not '}create publications",
            _text("GRANT CREATE ON DATABASE {} TO {};", database, role),
        ),
        Check(
            "kept log",
            True,
            "max_slot_wal_keep_size is not limited: a source that is not landed can fill the server's disk"
            if kept == "-1"
            else f"max_slot_wal_keep_size is {kept}: the slot is lost when what is not landed needs more",
        ),
        *_idling(idle),
        *((_failover(now.version),) if failover else ()),
    )


def _failover(version: int) -> Check:
    finding = f"failover slots need PostgreSQL 17, and this is {version // 10000}"
    return Check("failover", version >= FAILOVER_SLOTS, finding if version < FAILOVER_SLOTS else "slots can fail over")


def _idling(timeout: object) -> tuple[Check, ...]:
    """Check PostgreSQL 18's limit for idle slots."""
    if timeout is None or timeout == "0":
        return ()
    found = f"idle_replication_slot_timeout is {timeout}: a source that is not landed for so long loses its slot"
    return (Check("idle slots", True, found),)


NOT_LOGGED = "its changes are not in the write-ahead log"
NOT_SEEN = "a crash of the server empties it, which no trigger sees"
"""Reasons why unlogged tables are not captured, from the log and by triggers."""


def check_table(found: Found, role: str, unlogged: str = NOT_LOGGED) -> tuple[Check, ...]:
    """Check kind, identity and privileges of one table.

    Args:
        found: The table as the server has it.
        role: The role that captures it.
        unlogged: Why an unlogged one is not captured.

    Returns:
        What was checked; later checks are left out where an earlier one failed.
    """
    table = found.table
    name, label = (table.schema, table.name), str(table)
    if found.kind not in CAPTURABLE:
        kinds = {"v": "a view", "m": "a materialized view", "f": "a foreign table", "S": "a sequence", "i": "an index"}
        return (Check(label, False, f"is {kinds.get(found.kind, 'no table')}"),)
    if table.schema in SYSTEM_SCHEMAS:
        return (Check(label, False, "is a table of PostgreSQL itself, whose changes are not captured"),)
    if found.sharded:
        finding = (
            f"is {found.sharded}: its rows are in shards, which are captured from all nodes, with capture = 'wal', by "
            "a source that begins with such a table. Create another source for it"
        )
        return (Check(label, False, finding),)
    if found.persistence == "t":
        return (Check(label, False, "is temporary: only the session that made it sees its rows"),)
    if found.persistence != "p":
        remedy = _text("ALTER TABLE {} SET LOGGED;", name)
        return (Check(label, False, f"is unlogged: {unlogged}", remedy),)
    if not table.columns:
        return (Check(label, False, "has no column that could be captured"),)
    checks = [_identity(found, name, label), *_partitions(found, label)]
    if found.without:
        checks.append(Check(label, True, found.without))
    if not found.owned:
        checks.append(_owner(found, role))
    if not found.readable:
        grant = _text("GRANT USAGE ON SCHEMA {} TO {}; GRANT SELECT ON {} TO {};", table.schema, role, name, role)
        checks.append(Check(label, False, f"cannot be read by role {role}", grant))
    if found.row_security:
        checks.append(Check(label, False, "has row security that hides rows", _text("ALTER ROLE {} BYPASSRLS;", role)))
    clash = _clash([c.name for c in table.columns])
    if clash:
        checks.append(Check(label, False, f"has columns that the lake cannot tell apart: {clash}"))
    if own := [c.name for c in table.columns if is_kept_back(c.name)]:
        renamed = "; ".join(_text("ALTER TABLE {} RENAME {} TO {}", name, c, f"own{c}") for c in own)
        finding = f"has columns with names that the lake has for its own: {', '.join(own)}"
        checks.append(Check(label, False, finding, f"{renamed}; -- or leave them out: {label} COLUMNS (…)"))
    return tuple(checks)


def _owner(found: Found, role: str) -> Check:
    """Return the failed check of a table that the role cannot publish."""
    name, label = (found.table.schema, found.table.name), str(found.table)
    if not found.superuser:
        remedy = _text("GRANT {} TO {}; -- only owners can publish a table", found.owner, role)
        return Check(label, False, f"does not belong to role {role}", remedy)
    finding = (
        f"does not belong to role {role}, but to {found.owner}, whose rights are a superuser's: that role must not be "
        "granted. Give the table to another owner, or capture by triggers, which need none: capture = 'trigger'"
    )
    return Check(label, False, finding, _text("ALTER TABLE {} OWNER TO {};", name, role))


def _identity(found: Found, name: tuple[str, str], label: str) -> Check:
    table = found.table
    if table.identity in "fn" or table.key:
        kind = {"f": "FULL", "n": "NOTHING: INSERT and TRUNCATE only"}.get(table.identity, ", ".join(table.key))
        return Check(label, True, f"replica identity {kind}")
    return Check(
        label,
        False,
        "has no primary key, so publishing it would make its UPDATEs and DELETEs fail",
        _text("ALTER TABLE {} REPLICA IDENTITY FULL; -- or NOTHING, to allow INSERT and TRUNCATE only", name),
    )


def _partitions(found: Found, label: str) -> tuple[Check, ...]:
    """Return partitions whose changes the log would not give, or not as the table's."""
    foreign = [p for p in found.partitions if p.kind == "f"]
    unlogged = [p for p in found.partitions if p.kind != "f" and p.persistence != "p"]
    strange = [p for p in found.partitions if p.kind != "f" and not p.tells(found.table)]
    whole = "DEFAULT" if found.table.identity == "d" else "FULL"
    return tuple(
        Check(label, False, f"{finding}: {', '.join(map(str, of))}", remedy and _each(remedy, of))
        for of, finding, remedy in (
            (foreign, "has partitions that are foreign tables, whose changes are not in the write-ahead log", None),
            (
                unlogged,
                "has unlogged partitions, whose changes are not in the write-ahead log",
                "ALTER TABLE {} SET LOGGED;",
            ),
            (
                strange,
                "has partitions with another replica identity than its own, which PostgreSQL goes by for their changes",
                f"ALTER TABLE {{}} REPLICA IDENTITY {whole};",
            ),
        )
        if of
    )


def _each(template: str, partitions: Sequence[Partition]) -> str:
    return "\n".join(_text(template, (p.schema, p.name)) for p in partitions)


def check_apart(found: Collection[Found]) -> tuple[Check, ...]:
    """Check that no table is captured beside a partition of its own.

    A publication reports a partition's changes as its table's only.
    """
    names = {f.table.oid: str(f.table) for f in found}
    both = [(str(f.table), names[oid]) for f in found for oid in sorted(f.ancestors & names.keys())[:1]]
    return tuple(
        Check(
            label,
            False,
            f"is a partition of {above}, which is captured, too: PostgreSQL tells its changes as those of {above} "
            "only. Capture one of both, or each by a source of its own",
        )
        for label, above in both
    )


def _clash(names: Sequence[str]) -> str:
    seen: dict[str, str] = {}
    for name in names:
        if name.lower() in seen:
            return f"{seen[name.lower()]}, {name}"
        seen[name.lower()] = name
    return ""


def check(
    connection: Connection,
    names: Sequence[tuple[str, str]],
    as_text: Collection[str],
    known: Mapping[int, RemoteTable] | None = None,
    parts: Mapping[tuple[str, str], Part] | None = None,
    failover: bool = False,
) -> tuple[tuple[Check, ...], tuple[Found, ...]]:
    """Check all requirements; return the checks, and the tables as they were found.

    Args:
        connection: The connection.
        names: Schema and name of each table.
        as_text: As for `tables`.
        known: As for `tables`.
        parts: What is wanted of them, by schema and name; all of those that are not there.
        failover: As for `check_server`.
    """
    checks = check_server(connection, failover)
    now = server(connection)
    found = tables(connection, now.version, names=names, as_text=as_text, known=known)
    row = connection.execute("SELECT current_user::text").fetchone()
    role = str(row[0]) if row else ""
    by_name = {(f.table.schema, f.table.name): f for f in found}
    for name in names:
        if name in by_name:
            part = (parts or {}).get(name, Part())
            by_name[name] = narrowed(by_name[name], part)
            wrong = objections(by_name[name], part, now.version)
            checks += tuple(Check(".".join(name), False, finding) for finding in wrong)
            checks += () if wrong else check_table(by_name[name], role)
        else:
            checks += (Check(".".join(name), False, "does not exist, or its schema cannot be seen"),)
    return (*checks, *check_apart(by_name.values())), tuple(by_name.values())


_MAKER = "SELECT current_user::text, has_database_privilege(current_database(), 'CREATE'), current_database()::text"


def check_for_triggers(
    connection: Connection,
    names: Sequence[tuple[str, str]],
    as_text: Collection[str],
    known: Mapping[int, RemoteTable] | None = None,
    parts: Mapping[tuple[str, str], Part] | None = None,
) -> tuple[tuple[Check, ...], tuple[Found, ...]]:
    """Check all requirements for capture by triggers.

    Args:
        connection: To the server.
        names: Schema and name of each table.
        as_text: Columns to be kept as text, as `schema.table.column`.
        known: Tables that are captured already, by oid.
        parts: Columns and condition of tables that are not captured whole.

    Returns:
        What was checked, and the tables as the server has them.
    """
    now = server(connection)
    row = connection.execute(_MAKER).fetchone()
    assert row is not None, "a query without FROM has one row"
    role, database = str(row[0]), str(row[2])
    checks: tuple[Check, ...] = (
        Check("version", now.version >= OLDEST, f"PostgreSQL {now.version // 10000}", None),
        Check(
            "create",
            row[1] is True,
            f"role {role} may {'' if row[1] else 'not '}create a schema for change tables",
            _text("GRANT CREATE ON DATABASE {} TO {};", database, role),
        ),
    )
    found = tables(connection, now.version, names=names, as_text=as_text, known=known)
    by_name = {(f.table.schema, f.table.name): f for f in found}
    for name in names:
        if name in by_name:
            part = (parts or {}).get(name, Part())
            by_name[name] = narrowed(by_name[name], part)
            wrong = objections(by_name[name], part, now.version, triggers=True)
            checks += tuple(Check(".".join(name), False, finding) for finding in wrong)
            checks += () if wrong else check_table_for_triggers(connection, by_name[name], role)
        else:
            checks += (Check(".".join(name), False, "does not exist, or its schema cannot be seen"),)
    return checks, tuple(by_name.values())


def check_table_for_triggers(connection: Connection, found: Found, role: str) -> tuple[Check, ...]:
    """Check a table for capture by triggers, which need neither identity nor ownership.

    Args:
        connection: To the server.
        found: The table as the server has it.
        role: The role that captures it.
    """
    table = found.table
    as_if = replace(found, table=replace(table, identity="f"), owned=True, partitions=())
    checks = check_table(as_if, role, NOT_SEEN)
    if found.kind not in CAPTURABLE or not checks[0].ok:
        return checks
    fit = fitness(connection, [table.oid])[table.oid]
    name, label = (table.schema, table.name), str(table)
    always = "" if fit.owned else "; not where session_replication_role is replica: only owners can have that"
    seen = Check(label, fit.against is None, fit.against or f"triggers see every change{always}")
    grants = " ".join(
        _text("GRANT TRIGGER ON {} TO {};", of, role) for of in ((name, *fit.partitions) if not fit.allowed else ())
    )
    lacking = Check(label, False, f"role {role} may not put triggers on it", grants)
    return (seen, *(c for c in checks[1:]), *(() if fit.allowed else (lacking,)))


def require(checks: Sequence[Check]) -> None:
    """Refuse when something is not as it must be.

    Raises:
        UserError: `SOURCE_NOT_READY` with every finding and the statements that mend them.
    """
    wrong = [c for c in checks if not c.ok]
    if not wrong:
        return
    remedies = "\n".join(c.remedy for c in wrong if c.remedy)
    raise UserError(
        "SOURCE_NOT_READY",
        "The source cannot be captured as it is; nothing was changed on the server.",
        detail="\n".join(f"{c.name}: {c.finding}." for c in wrong),
        hint=f"Run there, as a role that may:\n{remedies}" if remedies else "Capture other tables, or change these.",
    )


def _text(template: str, *names: object) -> str:
    """Return a statement with quoted names, as text."""
    parts = [sql.Identifier(*n) if isinstance(n, tuple) else sql.Identifier(str(n)) for n in names]
    return sql.SQL(template).format(*parts).as_string(None)
