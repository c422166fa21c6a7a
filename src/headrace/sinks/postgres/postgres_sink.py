"""PostgreSQL as a kind of sink: its grammar, options and entry points.

    INTO POSTGRES 'url' TABLE table [KEY (column, …)]
    [PLACEMENT AUTO [BY (column)] | LOCAL | REFERENCE | DISTRIBUTED [BY (column)] [COLOCATED WITH table]]
    [ON CONFLICT REFUSE | OVERWRITE]

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
DISTRIBUTED_BY, COLOCATED_WITH = "distributed_by", "colocated_with"
"""Options of a sink besides its table and key."""

CHOICES = {PLACEMENT: ("auto", "local", "reference", "distributed"), ON_CONFLICT: ("refuse", "overwrite")}
"""The first of each is meant where nothing is said. On a plain server `auto` and `local` are a plain table."""

FURTHER = (DISTRIBUTED_BY, COLOCATED_WITH)
"""Options that belong to a placement; stored only where they are given."""


class PostgresSink:
    """See `SinkKind`."""

    name = KIND
    create_form = """  CREATE SINK [IF NOT EXISTS] name FROM namespace.table
    INTO POSTGRES 'postgresql://user@host:5432/database' TABLE schema.table [KEY (column, …)]
    [PLACEMENT AUTO | LOCAL | REFERENCE | DISTRIBUTED BY (column) [COLOCATED WITH schema.table]]
    [ON CONFLICT REFUSE | OVERWRITE] [SCHEDULE '1 minute']"""
    alterable = frozenset({PLACEMENT, *FURTHER, ON_CONFLICT})
    stopping = frozenset(
        {
            "SINK_TARGET_CHANGED",
            "SINK_TARGET_NOT_EMPTY",
            "SINK_TARGET_TAKEN",
            "SINK_TARGET_UNFIT",
            "SINK_TARGET_DIFFERS",
            "SINK_COLUMNS_CHANGED",
            "SINK_STREAM_RECREATED",
            "SINK_CATALOG_SET_BACK",
            "SINK_KEY_NOT_UNIQUE",
            "SINK_KEY_MISSING",
            "SINK_KEY_UNKNOWN",
            "SINK_KEY_NULL",
            "SINK_TYPE_UNSUPPORTED",
            "SINK_PLACEMENT_IMPOSSIBLE",
            "SINK_PLACEMENT_DIFFERS",
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
        said = _placement(cursor) if cursor.take("PLACEMENT") else {}
        if cursor.take("ON"):
            said |= _on_conflict(cursor)
        return SinkRequest(url, table, key, said)

    def read_change(self, cursor: StatementCursor) -> Json:
        """Read `PLACEMENT …` or `ON CONFLICT …`."""
        if cursor.take("PLACEMENT"):
            return _placement(cursor)
        cursor.need("ON")
        return _on_conflict(cursor)

    # ---- options that the catalog keeps

    def options(self, request: SinkRequest) -> Json:
        """Make the options of a new sink."""
        from headrace.sinks.postgres.target_connection import check_url
        from headrace.sinks.postgres.target_names import split_target

        if unknown := sorted(request.options.keys() - CHOICES.keys() - set(FURTHER)):
            known = ", ".join([*CHOICES, *FURTHER])
            raise _invalid(f"Sinks of kind {KIND} have no option {unknown[0]}.", f"They have {known}.")
        options: dict[str, Any] = {o: str(request.options[o]) for o in FURTHER if request.options.get(o)}
        for option, choices in CHOICES.items():
            meant = "distributed" if option == PLACEMENT and options else choices[0]
            chosen = str(request.options.get(option) or meant).lower()
            if chosen not in choices:
                raise _invalid(f"{option} cannot be {chosen}.", f"Use {' or '.join(choices)}.")
            options[option] = chosen
        if options[PLACEMENT] in ("local", "reference") and (further := [o for o in FURTHER if o in options]):
            raise _invalid(
                f"A sink of placement {options[PLACEMENT]} has no {further[0]}.", "Use placement distributed, or auto."
            )
        if COLOCATED_WITH in options:
            split_target(options[COLOCATED_WITH])
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
        """Return schema and table, as they are written."""
        from headrace.sinks.postgres.target_names import target_text

        schema, name = options["table"]
        return target_text(schema, name)

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


def _placement(cursor: StatementCursor) -> dict[str, Any]:
    """Read what follows `PLACEMENT`."""
    said: dict[str, Any] = {PLACEMENT: cursor.mode("AUTO", "LOCAL", "REFERENCE", "DISTRIBUTED").lower()}
    if said[PLACEMENT] not in ("auto", "distributed"):
        return said
    if cursor.take("BY"):
        columns = cursor.texts()
        if len(columns) != 1:
            raise cursor.fail("One column was expected here")
        said[DISTRIBUTED_BY] = columns[0]
    if cursor.take("COLOCATED"):
        cursor.need("WITH")
        start = cursor.offset()
        first, last = cursor.skip_until(lambda at: at.word in ("ON", "SCHEDULE"))
        if first == last:
            raise cursor.fail("The name of a table was expected here")
        said[COLOCATED_WITH] = cursor.sql[start : cursor.peek(-1).end]
    return said


def _on_conflict(cursor: StatementCursor) -> dict[str, Any]:
    """Read what follows `ON`."""
    cursor.need("CONFLICT")
    return {ON_CONFLICT: cursor.mode("REFUSE", "OVERWRITE").lower()}


def _invalid(message: str, hint: str) -> UserError:
    return UserError("INVALID_OPTION", message, hint=hint)
