"""PostgreSQL as a kind of sink: its grammar, options and entry points.

    INTO POSTGRES 'url' TABLE table [KEY (column, …)] [PLACEMENT AUTO | LOCAL] [ON CONFLICT REFUSE | OVERWRITE]

Every command imports this module: whatever takes time to import is imported by the method that uses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from headrace.errors import UserError

if TYPE_CHECKING:
    from headrace.algebra.schema import Column
    from headrace.sinks.sink_kind import Captured, Json, SinkRequest, Target, Told
    from headrace.sql.reader.syntax.statement_cursor import StatementCursor

KIND = "postgres"

PLACEMENT, ON_CONFLICT = "placement", "on_conflict"
"""What can be said of a sink besides its table and key."""

CHOICES = {PLACEMENT: ("auto", "local"), ON_CONFLICT: ("refuse", "overwrite")}
"""The first of each is meant where nothing is said. On a plain server both placements are a plain table."""


class PostgresSink:
    """See `SinkKind`."""

    name = KIND
    create_form = """  CREATE SINK [IF NOT EXISTS] name FROM namespace.table
    INTO POSTGRES 'postgresql://user@host:5432/database' TABLE schema.table [KEY (column, …)]
    [PLACEMENT AUTO | LOCAL] [ON CONFLICT REFUSE | OVERWRITE] [SCHEDULE '1 minute']"""
    stopping = frozenset(
        {
            "SINK_TARGET_CHANGED",
            "SINK_TARGET_NOT_EMPTY",
            "SINK_TARGET_TAKEN",
            "SINK_TARGET_UNFIT",
            "SINK_TARGET_DIFFERS",
            "SINK_COLUMNS_CHANGED",
            "SINK_STREAM_RECREATED",
            "SINK_KEY_NOT_UNIQUE",
            "SINK_KEY_MISSING",
            "SINK_KEY_NULL",
            "SINK_TYPE_UNSUPPORTED",
        }
    )

    # ---- what users write

    def read_request(self, cursor: StatementCursor) -> SinkRequest:
        """Read `'url' TABLE table [KEY (…)] [PLACEMENT …] [ON CONFLICT …]`."""
        from headrace.sinks.sink_kind import SinkRequest

        url = cursor.string("A connection string")
        cursor.need("TABLE")
        start = cursor.offset()
        cursor.skip_until(lambda at: at.word in ("KEY", "PLACEMENT", "ON", "SCHEDULE"))
        table = cursor.sql[start : cursor.peek(-1).end] if cursor.offset() > start or cursor.done else ""
        if not table.strip():
            raise cursor.fail("The name of a table was expected here")
        key = cursor.texts() if cursor.take("KEY") else ()
        said: dict[str, Any] = {}
        if cursor.take("PLACEMENT"):
            said[PLACEMENT] = cursor.mode("AUTO", "LOCAL").lower()
        if cursor.take("ON"):
            cursor.need("CONFLICT")
            said[ON_CONFLICT] = cursor.mode("REFUSE", "OVERWRITE").lower()
        return SinkRequest(url, table, key, said)

    # ---- options that the catalog keeps

    def options(self, request: SinkRequest) -> Json:
        """Make the options of a new sink."""
        from headrace.sinks.postgres.target_connection import check_url
        from headrace.sinks.postgres.target_table import split_target

        if unknown := sorted(request.options.keys() - CHOICES.keys()):
            raise _invalid(f"Sinks of kind {KIND} have no option {unknown[0]}.", f"They have {', '.join(CHOICES)}.")
        options: dict[str, Any] = {}
        for option, choices in CHOICES.items():
            chosen = str(request.options.get(option) or choices[0]).lower()
            if chosen not in choices:
                raise _invalid(f"{option} cannot be {chosen}.", f"Use {' or '.join(choices)}.")
            options[option] = chosen
        check_url(request.address)
        key = [split_target(column)[1] for column in request.key]
        if len(set(key)) < len(key):
            raise _invalid("A column is named twice in the sink's key.", "Name each once.")
        return {"url": request.address, "table": list(split_target(request.table)), "key": key, **options}

    def database(self, options: Json) -> str:
        """Return the connection string: what differs in it may be another database, or role."""
        return str(options["url"])

    def address(self, options: Json) -> str:
        """Return the connection string; it holds no password."""
        return str(options["url"])

    def table(self, options: Json) -> str:
        """Return schema and table."""
        return ".".join(options["table"])

    # ---- at the server

    def check(self, options: Json, columns: Sequence[Column], captured: Sequence[Captured]) -> None:
        """Check that a target can take rows of some columns."""
        from headrace.sinks.postgres.target_checks import check

        check(options, columns, captured)

    @contextmanager
    def writing(self, options: Json, told: Told) -> Iterator[Target]:
        """Open a transaction in the sink's database."""
        from headrace.sinks.postgres.target_transaction import TargetTransaction, transaction

        with transaction(str(options["url"])) as connection:
            yield TargetTransaction(connection, told)
        told("committed")


POSTGRES_SINK = PostgresSink()


def _invalid(message: str, hint: str) -> UserError:
    return UserError("INVALID_OPTION", message, hint=hint)
