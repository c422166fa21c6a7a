"""Publication and slot: made, read, moved and dropped.

The slot is read by *peeking* (`pg_logical_slot_peek_binary_changes`, streamed through COPY), not by the replication
protocol: it gives whole committed transactions in commit order up to a position, spills on the server, holds nothing
while a batch is applied, needs no keep-alives, and moves only when it is told to. The price is that each peek decodes
again what the oldest open transaction has written since it began.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from psycopg import sql

from headrace.errors import InternalError
from headrace.sources.postgres.connection import Connection, connected
from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.server import STORED_GENERATED
from headrace.sources.postgres.setup.projection import check_conditions, check_syntax, condition, reading
from headrace.sources.postgres.snapshot.open_transactions import Told, telling_whom
from headrace.sources.postgres.wal.pgoutput import Begin, decode
from headrace.sources.postgres.wal.pgoutput_columns import Bytes

_SIGNATURE = b"PGCOPY\n\xff\r\n\0"
_HEADER = len(_SIGNATURE) + 8
_LEADING, _TRAILER = 6, b"\xff\xff"
"""Of binary COPY: before the only field of a row there are so many bytes, the last four of them its length."""


@dataclass(frozen=True, slots=True)
class Slot:
    """A replication slot as the server has it.

    Args:
        confirmed: Position up to which it was acknowledged.
        status: `wal_status`: `reserved`, `extended`, `unreserved` or `lost`.
        reason: Why it was invalidated, where the server says (16 and newer).
        kept: Bytes of write-ahead log the server keeps for it.
        safe: Bytes until it may be lost; None without a limit.
    """

    confirmed: int
    status: str | None
    reason: str | None
    kept: int
    safe: int | None

    @property
    def endangered(self) -> bool:
        """Return whether three quarters of the log that may be kept are used up."""
        return self.status == "unreserved" or (self.safe is not None and self.safe < self.kept // 3)

    @property
    def lost(self) -> bool:
        """Return whether the server has discarded log that the slot needs."""
        return self.status == "lost" or self.reason is not None


_SLOT = """
SELECT confirmed_flush_lsn - '0/0', wal_status, to_jsonb(s) ->> 'invalidation_reason',
    coalesce(pg_current_wal_flush_lsn() - restart_lsn, 0), safe_wal_size
FROM pg_replication_slots s WHERE slot_name = %s AND database = current_database()
"""


def find_slot(connection: Connection, name: str) -> Slot | None:
    """Return the slot of that name in this database, or None."""
    row = connection.execute(_SLOT, (name,)).fetchone()
    if row is None:
        return None
    confirmed, status, reason, kept, safe = row
    number = int(str(safe)) if safe is not None else None
    return Slot(int(str(confirmed or 0)), _text(status), _text(reason), int(str(kept)), number)


@dataclass(frozen=True, slots=True)
class SlotUse:
    """The reader of a slot, and the log and disk that the slot costs the server.

    Args:
        by: Who reads it now, in words; None when nobody does.
        idle: Seconds since somebody last did; None while somebody does, and on servers before 17.
        spilled: Bytes of large transactions that decoding has put on disk since the server's statistics began.
        patience: `idle_replication_slot_timeout` in seconds; None where there is none.
    """

    by: str | None
    idle: float | None
    spilled: int
    patience: float | None


_USE = """
SELECT CASE WHEN s.active_pid IS NOT NULL THEN concat_ws(', ',
        'process ' || s.active_pid, nullif(a.application_name, ''), 'role ' || a.usename, 'from ' || host(a.client_addr)
    ) END,
    extract(epoch FROM clock_timestamp() - (to_jsonb(s) ->> 'inactive_since')::timestamptz)::float8, t.spill_bytes,
    nullif(extract(epoch FROM current_setting('idle_replication_slot_timeout', true)::interval), 0)::float8
FROM pg_replication_slots s LEFT JOIN pg_stat_activity a ON a.pid = s.active_pid
    LEFT JOIN pg_stat_replication_slots t ON t.slot_name = s.slot_name
WHERE s.slot_name = %s AND s.database = current_database()
"""


def slot_use(connection: Connection, name: str) -> SlotUse | None:
    """Read a slot's use in this database; None when there is no such slot."""
    row: tuple[Any, ...] | None = connection.execute(_USE, (name,)).fetchone()
    if row is None:
        return None
    by, idle, spilled, patience = row
    return SlotUse(by, None if idle is None else max(0.0, idle), int(spilled or 0), patience)


def touch(connection: Connection, name: str) -> None:
    """Make the server count the slot as read, without moving it."""
    connection.execute(
        "SELECT pg_replication_slot_advance(slot_name, confirmed_flush_lsn) FROM pg_replication_slots "
        "WHERE slot_name = %s AND active_pid IS NULL",
        (name,),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)


@contextmanager
def exported(
    url: str,
    name: str,
    *,
    temporary: bool,
    patience: str | None = None,
    failover: bool = False,
    told: Told = lambda _: None,
) -> Iterator[tuple[int, str]]:
    """Make a slot; inside the block its snapshot can be used.

    Args:
        url: The connection string.
        name: The slot's name.
        temporary: It ends with the block: only its snapshot is wanted.
        patience: How long to wait for each transaction that is open, as PostgreSQL writes times; None for as long as
            for any lock.
        failover: Replicas keep the slot in step (17 and newer); not with `temporary`.
        told: Told whom the slot waits for.

    Yields:
        The position where the slot begins, and the snapshot that has exactly what was committed before it.
    """
    with connected(url, replication=True) as connection:
        if patience is not None:
            connection.execute(f"SET lock_timeout = '{patience}'")
        kind = "TEMPORARY " if temporary else ""
        options = "(SNAPSHOT 'export', FAILOVER)" if failover and not temporary else "EXPORT_SNAPSHOT"
        with telling_whom(url, connection.info.backend_pid, told):
            row = connection.execute(f'CREATE_REPLICATION_SLOT "{name}" {kind}LOGICAL pgoutput {options}').fetchone()
        assert row is not None, "the command returns a row"
        yield position_of(str(row[1])), str(row[2])


def position_of(lsn: str) -> int:
    """Return a position as a number: `16/B374D848`."""
    high, _, low = lsn.partition("/")
    return int(high, 16) << 32 | int(low, 16)


def lsn_of(position: int) -> str:
    """Return a position as PostgreSQL writes it."""
    return f"{position >> 32:X}/{position & 0xFFFFFFFF:X}"


def drop_slot(connection: Connection, name: str) -> None:
    """Drop a slot if it exists."""
    connection.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE slot_name = %s", (name,)
    )


_COMPLETE = """
SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate AND pubviaroot
    AND to_jsonb(p) ->> 'pubgencols' IS DISTINCT FROM 'n'
FROM pg_publication p WHERE pubname = %s
"""


def publish_tables(
    connection: Connection, name: str, tables: Sequence[RemoteTable], version: int, *, anew: bool = False
) -> None:
    """Make the publication, or make it hold these tables and no others; none leave it as it is.

    Those that it holds already stay as they are, and are never out of it.

    Args:
        connection: A connection, not in a transaction.
        name: The publication.
        tables: The tables.
        version: The server's version.
        anew: Make it anew, whatever there is.

    Raises:
        UserError: `SOURCE_FILTER_INVALID`.
    """
    for table in tables:
        check_syntax(connection, table)
    with reading(*tables), connection.transaction():
        if tables:
            _publish(connection, name, tables, version, anew)
            check_conditions(connection, name, tables)


def _publish(connection: Connection, name: str, tables: Sequence[RemoteTable], version: int, anew: bool) -> None:
    if not anew and connection.execute(_COMPLETE, (name,)).fetchone() == (True,):
        held = {int(oid) for oid in published(connection, name)}
        withdraw(connection, name, held - {t.oid for t in tables})
        if added := [t for t in tables if t.oid not in held]:
            statement = sql.SQL("ALTER PUBLICATION {} ADD TABLE {}")
            connection.execute(statement.format(sql.Identifier(name), _listed(added)))
        return
    drop_publication(connection, name)
    generated = sql.SQL(", publish_generated_columns = stored" if version >= STORED_GENERATED else "")
    connection.execute(
        sql.SQL("CREATE PUBLICATION {} FOR TABLE {} WITH (publish_via_partition_root = true{})").format(
            sql.Identifier(name), _listed(tables), generated
        )
    )


def _listed(tables: Sequence[RemoteTable]) -> sql.Composable:
    """Return tables of a publication with their column lists and conditions."""
    items = []
    for table in tables:
        item = sql.SQL("ONLY {}").format(sql.Identifier(table.schema, table.name))
        if table.listed:
            columns = sql.SQL(", ").join(sql.Identifier(c.name) for c in table.columns)
            item = sql.SQL("{} ({})").format(item, columns)
        items.append(item if table.filter is None else sql.SQL("{} WHERE {}").format(item, condition(table)))
    return sql.SQL(", ").join(items)


_HELD = """
SELECT n.nspname, c.relname FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
    JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE p.pubname = %s AND c.oid = ANY(%s)
"""


def withdraw(connection: Connection, name: str, oids: Collection[int]) -> None:
    """Remove tables from the publication; it is no error where it has none of them.

    Args:
        connection: To the server.
        name: The publication.
        oids: The tables.
    """
    if names := connection.execute(_HELD, (name, list(oids))).fetchall():
        listed = sql.SQL(", ").join(sql.SQL("ONLY {}").format(sql.Identifier(*map(str, of))) for of in names)
        connection.execute(sql.SQL("ALTER PUBLICATION {} DROP TABLE {}").format(sql.Identifier(name), listed))


def drop_publication(connection: Connection, name: str) -> None:
    """Drop a publication if it exists."""
    connection.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(name)))


_PUBLISHED = """
SELECT r.prrelid::text, r.oid || ':' || p.xmin FROM pg_publication_rel r JOIN pg_publication p ON p.oid = r.prpubid
WHERE p.pubname = %s
"""


def published(connection: Connection, name: str) -> dict[str, str]:
    """Return the tables of a publication, each with a mark.

    A table that leaves and comes back, or comes to have another row filter or column list, has another row in
    `pg_publication_rel`; other operations, or no longer the root of partitions, another publication's `xmin`.

    Args:
        connection: To the server.
        name: The publication.

    Returns:
        Marks by oid; another mark than before says that changes may be missing.
    """
    return {str(oid): str(mark) for oid, mark in connection.execute(_PUBLISHED, (name,)).fetchall()}


def what_happened(connection: Connection, name: str, table: str, before: str | None, now: str | None) -> str:
    """Return, for people, what became of a table's place in the publication.

    Args:
        connection: To the server.
        name: The publication.
        table: The table.
        before: Its mark when it was last landed.
        now: Its mark now; None where it is not there.
    """
    if connection.execute("SELECT FROM pg_publication WHERE pubname = %s", (name,)).fetchone() is None:
        return f"The publication {name} was dropped or renamed."
    if now is None:
        return f"Table {table} was taken out of the publication {name}."
    (place, options), (place_now, options_now) = ((before or ":").split(":"), now.split(":"))
    if place == place_now:
        return (
            f"The options of the publication {name} were altered, perhaps for a while: what it publishes, and as whose."
        )
    if options != options_now:
        return f"The publication {name} was dropped and made again, or altered as a whole."
    return (
        f"Table {table} was taken out of the publication {name} and put back, or was given another row filter or "
        "column list there."
    )


BLOCK, BLOCK_BYTES = 32_768, 4 << 20
"""Messages that are given together, and their bytes, about."""


def peek(
    connection: Connection, slot: str, publication: str, until: int, limit: int | None, *, messages: bool = False
) -> Iterator[Bytes]:
    """Yield blocks of messages of what was committed up to a position; the slot stays.

    Args:
        connection: A connection, not in a transaction.
        slot: The slot.
        publication: The publication.
        until: Nothing that begins at this position or later is read; the last transaction may.
        limit: Stop after the transaction with which so many messages are reached; None for no limit.
        messages: Also those that are about no table (`pg_logical_emit_message`).

    Raises:
        InternalError: `COPY_UNREADABLE`: the server answered in another form than binary COPY has.
    """
    query = sql.SQL(
        "COPY (SELECT data FROM pg_logical_slot_peek_binary_changes({}, {}, {}, 'proto_version', '1', "
        "'publication_names', {}, 'messages', {})) TO STDOUT (FORMAT binary)"
    ).format(*map(sql.Literal, (slot, lsn_of(until), limit, _quoted(publication), str(messages).lower())))
    with connection.cursor() as cursor, cursor.copy(query) as copy:
        first = bytes(copy.read())
        if first[: len(_SIGNATURE)] != _SIGNATURE:
            raise _unreadable("begins with an unknown signature")
        pieces: list[bytes | memoryview] = [first[_HEADER:]]
        held = len(first)
        read, take = copy.read, pieces.append
        while piece := read():
            take(piece)  # type: ignore[arg-type]
            held += len(piece)
            if held >= BLOCK_BYTES or len(pieces) >= BLOCK:
                yield _fields(pieces)
                pieces.clear()
                held = 0
        yield _fields(pieces)


def _fields(pieces: list[bytes | memoryview]) -> Bytes:
    """Return the single field of every row in pieces of binary COPY, one piece a row."""
    if pieces and bytes(pieces[-1]) == _TRAILER:
        pieces.pop()
    pieces = [piece for piece in pieces if piece] if pieces and not pieces[0] else pieces
    found = Bytes.of(pieces, leading=_LEADING)
    if (found.numbers(found.starts - 4) != found.ends - found.starts).any():
        raise _unreadable("has rows that are not sent one by one")
    return found


def _unreadable(how: str) -> InternalError:
    return InternalError("COPY_UNREADABLE", f"PostgreSQL's COPY {how}.")


def anything(connection: Connection, slot: str, publication: str, until: int) -> bool:
    """Return whether a slot has a transaction to give up to a position.

    Args:
        connection: A connection, not in a transaction.
        slot: The slot.
        publication: The publication.
        until: See `peek`.
    """
    found = connection.execute(
        "SELECT FROM pg_logical_slot_peek_binary_changes(%s, %s, 1, 'proto_version', '1', 'publication_names', %s) "
        "LIMIT 1",
        (slot, lsn_of(until), _quoted(publication)),
    )
    return found.fetchone() is not None


def _quoted(publication: str) -> str:
    return '"' + publication.replace('"', '""') + '"'


_LAST_BEGUN = """
SELECT substr(data, 1, 21) FROM pg_logical_slot_peek_binary_changes(
    %s, %s, NULL, 'proto_version', '1', 'publication_names', %s) WITH ORDINALITY AS c (lsn, xid, data, place)
WHERE get_byte(data, 0) = ascii('B') ORDER BY place DESC LIMIT 1
"""


def last_begun(connection: Connection, slot: str, publication: str, until: int) -> Begin | None:
    """Return the last transaction that a slot would give up to a position.

    None when it would give none.

    Args:
        connection: A connection, not in a transaction.
        slot: The slot.
        publication: The publication.
        until: See `peek`.
    """
    values = (slot, lsn_of(until), _quoted(publication))
    row: tuple[Any, ...] | None = connection.execute(_LAST_BEGUN, values).fetchone()
    message = None if row is None else decode(bytes(row[0]))
    return message if isinstance(message, Begin) else None


def advance(connection: Connection, slot: str, position: int) -> None:
    """Acknowledge a position: the server may discard the log before it."""
    connection.execute(
        "SELECT pg_replication_slot_advance(slot_name, %s::pg_lsn) FROM pg_replication_slots "
        "WHERE slot_name = %s AND confirmed_flush_lsn < %s::pg_lsn",
        (lsn_of(position), slot, lsn_of(position)),
    )
