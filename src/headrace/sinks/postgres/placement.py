"""Places the rows of targets in a Citus cluster, and checks where existing ones are.

A target that Headrace makes is put where the sink's PLACEMENT says; one that exists stays where it is, and is checked.
Bags that are distributed without a column have a further one, a hash of their row, which no stream table has.

Source: Citus documentation, "Citus Tables and Views": pg_dist_partition; "Utility Functions".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from psycopg import sql

from headrace.algebra.schema import Column
from headrace.errors import UserError
from headrace.sinks.postgres.column_types import postgres_type
from headrace.sinks.postgres.target_connection import Connection
from headrace.sinks.postgres.target_names import split_target

AUTO, LOCAL, REFERENCE, DISTRIBUTED = "auto", "local", "reference", "distributed"
MANAGED, OTHER = "managed", "other"
"""Kinds of tables of Citus that no sink wishes: in one shard of the coordinator, and distributed by ranges."""

FEW = 100_000
"""Rows from which on `AUTO` distributes; below every node has a copy, so that joins with it stay where they are."""

ROW_ID = "headrace_row"
"""The column that a bag is distributed by when no other is named: a hash of the row."""


@dataclass(frozen=True, slots=True)
class RequestedPlacement:
    """The placement that a sink's options ask for.

    Args:
        kind: `auto`, `local`, `reference` or `distributed`.
        column: The distribution column, as the user wrote it; None for the key's first, or a bag's hash.
        beside: Schema and name of the table to be co-located with.
    """

    kind: str
    column: str | None = None
    beside: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Placement:
    """The placement of a table's rows.

    Args:
        kind: `local`, `reference`, `distributed`, `managed` or `other`.
        column: The distribution column; None where there is none.
        group: The tables that it is co-located with; None where that does not matter.
    """

    kind: str
    column: str | None = None
    group: int | None = None

    @property
    def is_in_cluster(self) -> bool:
        """Return whether Citus has a part in it, so that it has no `ctid` to go by."""
        return self.kind != LOCAL

    def __str__(self) -> str:
        if self.kind == DISTRIBUTED:
            return f"distributed by {self.column}" if self.column else "distributed, in one shard"
        return {MANAGED: "local, managed by Citus", OTHER: "distributed by ranges"}.get(self.kind, self.kind)


PLAIN = Placement(LOCAL)

_OF_CITUS = "SELECT to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL"

_PLACEMENT = """
SELECT p.partmethod::text, p.repmodel::text, p.colocationid,
    CASE WHEN p.partkey IS NOT NULL THEN pg_catalog.column_to_column_name(p.logicalrelid, p.partkey) END
FROM pg_catalog.pg_dist_partition p WHERE p.logicalrelid = %s::oid::regclass
"""

_COORDINATOR = "SELECT groupid = 0 FROM pg_catalog.pg_dist_local_group"

_BESIDE = """
SELECT p.partmethod::text, p.colocationid, format_type(a.atttypid, a.atttypmod)
FROM pg_catalog.pg_dist_partition p LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = p.logicalrelid
    AND p.partkey IS NOT NULL AND a.attname = pg_catalog.column_to_column_name(p.logicalrelid, p.partkey)
WHERE p.logicalrelid = to_regclass(%s)
"""


def has_citus(connection: Connection) -> bool:
    """Return whether the database is one of a Citus cluster."""
    return connection.execute(_OF_CITUS).fetchone() == (True,)


def placement_of(connection: Connection, oid: int) -> Placement:
    """Return where the rows of a table are."""
    if not has_citus(connection):
        return PLAIN
    row = connection.execute(_PLACEMENT, (oid,)).fetchone()
    if row is None:
        return PLAIN
    method, model, group, column = str(row[0]), str(row[1]), int(str(row[2])), row[3]
    if method == "h":
        return Placement(DISTRIBUTED, str(column), group)
    if method != "n":
        return Placement(OTHER)
    if model == "t":
        return Placement(REFERENCE)
    return Placement(DISTRIBUTED, None, group) if group else Placement(MANAGED)


def requested_placement(options: Mapping[str, Any]) -> RequestedPlacement:
    """Return what a sink's options say of its placement."""
    column, beside = options.get("distributed_by"), options.get("colocated_with")
    return RequestedPlacement(
        str(options["placement"]),
        split_target(column)[1] if column else None,
        split_target(beside) if beside else None,
    )


def planned(
    connection: Connection, request: RequestedPlacement, columns: Sequence[Column], key: Sequence[str], *, few: bool
) -> Placement:
    """Return where a table that is made for a sink has its rows.

    Args:
        connection: To the target.
        request: The sink's.
        columns: The stream table's columns.
        key: The sink's key, by names of these in whatever case.
        few: Whether `AUTO` makes a reference table of it.

    Raises:
        UserError: `SINK_PLACEMENT_IMPOSSIBLE`.
    """
    if not has_citus(connection):
        if request.kind in (REFERENCE, DISTRIBUTED):
            raise _impossible(
                f"The sink is to be {_words(request)}, but its database is not one of a Citus cluster.",
                "Leave PLACEMENT out, or name the coordinator of a cluster.",
            )
        return PLAIN
    if request.kind == LOCAL:
        return PLAIN
    if connection.execute(_COORDINATOR).fetchone() != (True,):
        raise _impossible(
            "The sink's connection leads to a worker, where no table can be distributed.",
            "Name the coordinator of the cluster, or write PLACEMENT LOCAL for a table of that worker alone.",
        )
    column = _distribution_column(request, columns, key)
    group = None if request.beside is None else _group_of(connection, request.beside, column, columns)
    if request.kind == REFERENCE or (request.kind == AUTO and few):
        return Placement(REFERENCE)
    return Placement(DISTRIBUTED, column, group)


def _distribution_column(request: RequestedPlacement, columns: Sequence[Column], key: Sequence[str]) -> str:
    names = {c.name.lower(): c.name for c in columns}
    if request.column is None:
        if key:
            return names[key[0].lower()]
        if ROW_ID in names:
            raise _impossible(
                f"The stream table has a column {ROW_ID}, which is what a bag is distributed by.",
                "Name a column: DISTRIBUTED BY (column).",
            )
        return ROW_ID
    found = names.get(request.column.lower())
    if found is None:
        raise _impossible(
            f"The stream table has no column {request.column}, by which the sink is to be distributed.",
            f"It has {', '.join(names.values())}.",
        )
    if key and request.column.lower() not in {k.lower() for k in key}:
        raise not_in_key(found, key)
    return found


def not_in_key(column: str, key: Sequence[str]) -> UserError:
    """Return the error for a key that a cluster cannot keep unique."""
    return _impossible(
        f"The distribution column {column} is not in the sink's key ({', '.join(key)}).",
        f"Citus keeps a key unique only if it holds that column: distribute by {key[0]}, or write "
        f"KEY ({', '.join([*key, column])}).",
    )


def _group_of(connection: Connection, beside: tuple[str, str], column: str, columns: Sequence[Column]) -> int:
    """Return the co-location group of a table.

    Raises:
        UserError: `SINK_PLACEMENT_IMPOSSIBLE` where a sink cannot be in it.
    """
    name = ".".join(beside)
    row = connection.execute(_BESIDE, (sql.Identifier(*beside).as_string(connection),)).fetchone()
    if row is None or row[0] != "h":
        raise _impossible(
            f"The sink is to be co-located with {name}, which is no distributed table of the cluster.",
            "Name one that create_distributed_table has distributed by a column.",
        )
    own = next((postgres_type(c) for c in columns if c.name == column), "bigint")
    if row[2] != own:
        raise _impossible(
            f"The sink cannot be co-located with {name}: that is distributed by a {row[2]}, and {column} is {own}.",
            "Cast the column in the stream table's query, or leave COLOCATED WITH out.",
        )
    return int(str(row[1]))


def fits(placement: Placement, plan: Placement) -> bool:
    """Return whether rows are where they were to be."""
    if plan.kind == LOCAL:
        return placement.kind in (LOCAL, MANAGED)
    if plan.group is not None and placement.group != plan.group:
        return False
    return (placement.kind, placement.column) == (plan.kind, plan.column)


def refuse_unfit(table: str, placement: Placement, request: RequestedPlacement, plan: Placement) -> None:
    """Refuse a table that somebody has put elsewhere than the sink wishes; `AUTO` takes any.

    Args:
        table: The table.
        placement: Where its rows are.
        request: The sink's.
        plan: Where they are to be.

    Raises:
        UserError: `SINK_PLACEMENT_DIFFERS`.
    """
    if request.kind == DISTRIBUTED and request.column is None and placement.kind == DISTRIBUTED:
        plan = replace(plan, column=placement.column)  # any will do
    if request.kind == AUTO or fits(placement, plan):
        return
    steps = [f"SELECT undistribute_table('{table}');"] if placement.is_in_cluster else []
    if plan.kind == REFERENCE:
        steps.append(f"SELECT create_reference_table('{table}');")
    if plan.kind == DISTRIBUTED:
        beside = f", colocate_with := '{'.'.join(request.beside)}'" if request.beside else ""
        steps.append(f"SELECT create_distributed_table('{table}', '{plan.column}'{beside});")
    raise UserError(
        "SINK_PLACEMENT_DIFFERS",
        f"{table} is {placement}, and the sink is to be {_words(request)}; nothing was written.",
        hint=f"Run on the coordinator: {' '.join(steps)} Or leave PLACEMENT out, to have the table as it is.",
    )


def put(connection: Connection, table: sql.Identifier, plan: Placement, request: RequestedPlacement) -> None:
    """Hand a plain table that has no rows to Citus."""
    name = sql.Literal(table.as_string(connection))
    if plan.kind == REFERENCE:
        connection.execute(sql.SQL("SELECT create_reference_table({})").format(name))
    if plan.kind == DISTRIBUTED:
        beside = sql.Literal(
            "default" if request.beside is None else sql.Identifier(*request.beside).as_string(connection)
        )
        statement = sql.SQL("SELECT create_distributed_table({}, {}, colocate_with := {})")
        connection.execute(statement.format(name, sql.Literal(plan.column), beside))


def take_back(connection: Connection, table: sql.Identifier) -> None:
    """Make a plain table of one that Citus has."""
    name = sql.Literal(table.as_string(connection))
    connection.execute(sql.SQL("SELECT undistribute_table({})").format(name))


def _words(request: RequestedPlacement) -> str:
    beside = "" if request.beside is None else f" co-located with {'.'.join(request.beside)}"
    if request.kind == DISTRIBUTED:
        return f"distributed{f' by {request.column}' if request.column else ''}{beside}"
    return {REFERENCE: "a reference table", LOCAL: "a local table"}.get(request.kind, request.kind)


def _impossible(message: str, hint: str) -> UserError:
    return UserError("SINK_PLACEMENT_IMPOSSIBLE", f"{message} Nothing was written.", hint=hint)
