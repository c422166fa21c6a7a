"""Checks of a target before a sink is created: what would fail later fails now."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.algebra.schema import Column
from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.sinks.postgres.column_types import postgres_type
from headrace.sinks.postgres.placement import planned, refuse_unfit, requested_placement
from headrace.sinks.postgres.target_connection import Connection, connected
from headrace.sinks.postgres.target_names import split_target
from headrace.sinks.postgres.target_table import find_table, refuse_unknown_key
from headrace.sinks.sink_kind import Captured, Json

_IDENTITY = "SELECT pg_postmaster_start_time()::text, current_database()::text"
"""Two connection strings with the same answer lead to the same database."""

_PRIVILEGES = """
SELECT to_regnamespace('headrace') IS NOT NULL AND has_schema_privilege('headrace', 'USAGE, CREATE'),
       to_regnamespace('headrace') IS NULL AND has_database_privilege(current_database(), 'CREATE'),
       to_regclass('headrace' || '.sink_position') IS NOT NULL, pg_is_in_recovery()
"""

_SCHEMA = """
SELECT to_regnamespace(quote_ident(%s)) IS NOT NULL,
       coalesce(has_schema_privilege(to_regnamespace(quote_ident(%s)), 'CREATE'), false)
"""


def check(options: Json, columns: Sequence[Column], captured: Sequence[Captured]) -> None:
    """Check that a target can take rows of some columns; changes nothing.

    Raises:
        HeadraceError: It cannot.
    """
    for column in columns:
        postgres_type(column)
    refuse_unknown_key("The stream table", columns, options["key"])
    with connected(str(options["url"])) as connection:
        schema, name = options["table"]
        _refuse_loop(connection, schema, name, captured)
        _refuse_powerless(connection)
        request = requested_placement(options)
        plan = planned(connection, request, columns, options["key"], few=True)
        table = find_table(connection, schema, name, columns, options["key"])
        if table is None:
            _refuse_unmakeable(connection, schema, name)
        else:
            refuse_unfit(str(table), table.placement, request, plan)


def _refuse_loop(connection: Connection, schema: str, name: str, captured: Sequence[Captured]) -> None:
    own = connection.execute(_IDENTITY).fetchone()
    for of in captured:
        if not any(_is_table(text, schema, name) for text in of.tables):
            continue
        if _identity(of.address) == own or of.address == connection.info.dsn:
            raise UserError(
                "SINK_LOOP",
                f"{schema}.{name} is captured by source {of.source} of this project: what a sink writes there would "
                "come back as a change.",
                hint="Name another table.",
            )


def _is_table(text: str, schema: str, name: str) -> bool:
    try:
        return split_target(text) == (schema, name)
    except HeadraceError:
        return False


def _identity(address: str) -> tuple[object, ...] | None:
    """Return which database an address leads to; None where it cannot be asked."""
    try:
        with connected(address) as connection:
            return connection.execute(_IDENTITY).fetchone()
    except HeadraceError:
        return None


def _refuse_powerless(connection: Connection) -> None:
    row = connection.execute(_PRIVILEGES).fetchone()
    assert row is not None
    usable, makeable, made, standby = row
    if standby:
        raise EnvironmentFault(
            "SINK_REFUSED",
            "The sink's PostgreSQL server is a standby, which takes no writes.",
            hint="Name the primary, or several hosts with target_session_attrs=read-write.",
        )
    if not (usable or makeable or made):
        user = connection.info.user
        raise EnvironmentFault(
            "SINK_REFUSED",
            f"The role {user} has no schema headrace on the sink's server, where positions of sinks are kept.",
            hint=f"Run on the server: CREATE SCHEMA IF NOT EXISTS headrace AUTHORIZATION {user};",
        )


def _refuse_unmakeable(connection: Connection, schema: str, name: str) -> None:
    row = connection.execute(_SCHEMA, (schema, schema)).fetchone()
    assert row is not None
    user = connection.info.user
    if not row[0]:
        raise UserError(
            "SINK_TARGET_UNFIT",
            f"There is no schema {schema} for table {name} on the sink's server.",
            hint=f"Run on the server: CREATE SCHEMA {schema} AUTHORIZATION {user};",
        )
    if not row[1]:
        raise EnvironmentFault(
            "SINK_REFUSED",
            f"The role {user} may not make a table in schema {schema}.",
            hint=f"Run on the server: GRANT CREATE ON SCHEMA {schema} TO {user}; or make {schema}.{name} yourself.",
        )
