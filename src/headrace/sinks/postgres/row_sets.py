"""Rows in temporary tables of a target, and statements that make its table equal to them.

Rows are compared as they are stored (`*=`), not by `=`: `0.0` is not `-0.0`, and `NULL` is `NULL`. Where rows have to
be found by their values (bags), that is by a hash of their text, and a copy number says how many of equal ones go.

Source: PostgreSQL documentation, "Row and Array Comparisons": record comparison by image.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import psycopg
from psycopg import sql

from headrace.errors import UserError
from headrace.sinks.postgres.copy_text import copy_text
from headrace.sinks.postgres.target_connection import Connection
from headrace.sinks.postgres.target_table import TargetTable

if TYPE_CHECKING:
    import pyarrow as pa

WEIGHT, HASH = "__hr_w", "__hr_h"
FEW = 1_000
"""Rows of a temporary table from which on the planner is told what is in it."""


def copy_into(
    connection: Connection, table: sql.Composable, columns: Sequence[str], batches: Iterable[pa.RecordBatch]
) -> int:
    """Copy batches into a table, by the order of their columns; return how many rows."""
    listed = sql.SQL(", ").join(map(sql.Identifier, columns))
    rows = 0
    filled = (batch for batch in batches if batch.num_rows)
    first = next(filled, None)
    if first is None:
        return 0
    with connection.cursor() as cursor, cursor.copy(sql.SQL("COPY {} ({}) FROM STDIN").format(table, listed)) as copy:
        for batch in chain([first], filled):
            for piece in copy_text(batch):
                copy.write(piece)
            rows += batch.num_rows
    return rows


class RowSets:
    """Statements about one target table.

    Args:
        connection: Inside a transaction.
        target: The table.
        number: Tells the temporary tables of one transaction apart.
    """

    def __init__(self, connection: Connection, target: TargetTable, number: int) -> None:
        self._connection = connection
        self._target = target
        self._delta = sql.Identifier("pg_temp", f"hr_delta_{number}")
        self._net = sql.Identifier("pg_temp", f"hr_net_{number}")
        self._rows = sql.Identifier("pg_temp", f"hr_rows_{number}")
        self._there = target.sql

    # ---- filling

    def load_change(self, batches: Iterable[pa.RecordBatch]) -> int:
        """Copy a change, rows and last their weight, and sum it up; return its entries.

        A row that came and went again leaves nothing.
        """
        self._run(
            "CREATE TEMP TABLE {delta} ON COMMIT DROP AS SELECT {columns}, 0::bigint AS {w} FROM {target} t"
            " WITH NO DATA"
        )
        entries = copy_into(self._connection, self._delta, (*self._target.columns, WEIGHT), batches)
        self._run(
            "CREATE TEMP TABLE {net} ON COMMIT DROP AS SELECT {columns}, n.{w}, n.{h} FROM {delta} t JOIN ("
            " SELECT min(t.ctid) AS first, sum(t.{w}) AS {w}, hashtextextended({text}, 0) AS {h} FROM {delta} t"
            " GROUP BY {text} HAVING sum(t.{w}) <> 0) n ON t.ctid = n.first"
        )
        self._analyze(self._net, entries)
        return entries

    def load_rows(self, batches: Iterable[pa.RecordBatch]) -> int:
        """Copy rows that the target is to have; return how many."""
        self._run("CREATE TEMP TABLE {rows} ON COMMIT DROP AS SELECT {columns} FROM {target} t WITH NO DATA")
        rows = copy_into(self._connection, self._rows, self._target.columns, batches)
        self._analyze(self._rows, rows)
        return rows

    def copy_directly(self, batches: Iterable[pa.RecordBatch]) -> int:
        """Copy rows into the target itself, which is empty."""
        return copy_into(self._connection, self._target.sql, self._target.columns, batches)

    def _analyze(self, table: sql.Identifier, rows: int) -> None:
        if rows >= FEW:
            self._connection.execute(sql.SQL("ANALYZE {}").format(table))

    # ---- the target itself

    def lock(self) -> None:
        """Keep other writers away until the transaction ends; readers go on.

        VACUUM is kept away, too: what is written often locks rows instead, where that is enough.
        """
        self._run("LOCK TABLE {target} IN SHARE ROW EXCLUSIVE MODE")

    def can_lock_rows(self) -> bool:
        """Return whether locks of rows are enough for a change.

        With a key they are, as no second row can have it; for a bag where nothing leaves, as new rows are nobody's.
        """
        return bool(self._target.key) or self._leaving() == 0

    def lock_leaving(self) -> bool:
        """Lock the rows that have keys of what leaves; return whether each of these has one.

        Then nobody else can change these rows, nor insert others with their keys.
        """
        if not self._target.key:
            return self._leaving() == 0
        locked = sum(
            self._count(
                "(SELECT FROM {target} t JOIN {net} g ON {same} WHERE g.{w} < 0 AND {only} FOR NO KEY UPDATE OF t) l",
                **match,
            )
            for match in self._matches()
        )
        return locked == self._leaving()

    def _leaving(self) -> int:
        return self._count("{net} WHERE {w} < 0")

    def _count(self, text: str, **parts: sql.Composable) -> int:
        row = self._one(f"SELECT count(*) FROM {text}", **parts)
        assert row is not None
        return int(str(row[0]))

    def is_empty(self) -> bool:
        """Return whether the target has no rows."""
        return self._one("SELECT NOT EXISTS (SELECT 1 FROM {target} LIMIT 1)") == (True,)

    # ---- applying a change

    def refuse_doubtful(self) -> None:
        """Refuse a change that gives a key to two rows, or to none.

        Raises:
            UserError: `SINK_KEY_NOT_UNIQUE`, `SINK_KEY_NULL`.
        """
        self._refuse_doubtful(self._net, sql.SQL("WHERE t.{w} > 0").format(w=sql.Identifier(WEIGHT)), "sum(t.{w})")

    def refuse_doubtful_rows(self) -> None:
        """Refuse rows that give a key to two rows, or to none.

        Raises:
            UserError: `SINK_KEY_NOT_UNIQUE`, `SINK_KEY_NULL`.
        """
        self._refuse_doubtful(self._rows, sql.SQL(""), "count(*)")

    def _refuse_doubtful(self, table: sql.Identifier, where: sql.Composable, count: str) -> None:
        keys = self._listed("t", self._target.key)
        found = self._one(
            f"SELECT ROW({{keys}})::text FROM {{table}} t {{where}} GROUP BY {{keys}} HAVING {count} > 1 LIMIT 1",
            table=table,
            where=where,
            keys=keys,
        )
        if found is not None:
            raise key_not_unique(self._target, str(found[0]))
        if self._target.null_key:
            return
        nulls = sql.SQL(" OR ").join(sql.SQL("t.{} IS NULL").format(sql.Identifier(k)) for k in self._target.key)
        found = self._one(
            "SELECT ROW({keys})::text FROM {table} t WHERE {nulls} LIMIT 1", table=table, keys=keys, nulls=nulls
        )
        if found is not None:
            raise UserError(
                "SINK_KEY_NULL",
                f"A row of the stream table has no value in the sink's key ({', '.join(self._target.key)}).",
                detail=f"Its key is {found[0]}; the unique index of {self._target} takes no NULL for a value.",
                hint="Make the index anew with NULLS NOT DISTINCT (PostgreSQL 15), or name the group in the query.",
            )

    def foreign_change(self) -> str | None:
        """Describe a row of the change that somebody else has changed; None if all are right."""
        if not self._target.key:
            return self._foreign_copies()
        for match in self._matches():
            found = self._example(
                "SELECT min(CASE WHEN t.ctid IS NULL THEN 'it has no row ' || {g_text} ELSE 'it has ' || {text} END)"
                " FROM {net} g LEFT JOIN {there} t ON {same}"
                " WHERE g.{w} < 0 AND {only} AND (t.ctid IS NULL OR {record} *<> {g_record})",
                **match,
            ) or self._example(
                "SELECT min('it has ' || {text}) FROM {net} g JOIN {there} t ON {same} WHERE g.{w} > 0 AND {only}"
                " AND NOT EXISTS (SELECT FROM {net} o WHERE o.{w} < 0 AND {other})",
                **match,
            )
            if found is not None:
                return found
        return None

    def _foreign_copies(self) -> str | None:
        return self._example(
            "SELECT min('it has fewer rows ' || {g_text} || ' than it should') FROM (SELECT g.ctid AS id,"
            " -g.{w} AS wanted, count(t.ctid) AS there FROM {net} g LEFT JOIN {there} t"
            " ON hashtextextended({text}, 0) = g.{h} AND {record} *= {g_record}"
            " WHERE g.{w} < 0 GROUP BY g.ctid, g.{w}) f JOIN {net} g ON g.ctid = f.id WHERE there < wanted"
        )

    def apply_change(self, *, overwrite: bool) -> tuple[int, int]:
        """Delete what left and insert what came; return how many rows came and left.

        Args:
            overwrite: Whether a row of somebody else gives way that has a key which came; else it is a violation of the
                key, whenever it was written.
        """
        if self._target.key:
            matches = self._matches()
            for match in matches:
                self._run(
                    "DELETE FROM {target} t USING {net} g WHERE g.{w} < 0 AND {only} AND {same}"
                    " AND NOT EXISTS (SELECT FROM {net} o WHERE o.{w} > 0 AND {other} AND {unaltered})",
                    **match,
                )
            if overwrite:
                self._upsert(self._net, self._format("WHERE g.{w} > 0"))
            else:
                self._upsert_own(matches)
        else:
            if self._one("SELECT 1 FROM {net} WHERE {w} < 0 LIMIT 1") is not None:
                self._run(
                    "DELETE FROM {target} WHERE ctid = ANY (ARRAY(SELECT place FROM (SELECT t.ctid AS place,"
                    " -g.{w} AS wanted, row_number() OVER (PARTITION BY g.ctid) AS copy FROM {target} t JOIN {net} g"
                    " ON hashtextextended({text}, 0) = g.{h} AND {record} *= {g_record} WHERE g.{w} < 0) found"
                    " WHERE copy <= wanted))"
                )
            self._run(
                "INSERT INTO {target} ({plain}) SELECT {g_columns} FROM {net} g, generate_series(1, g.{w})"
                " WHERE g.{w} > 0"
            )
        return self._counted()

    def _upsert_own(self, matches: Sequence[dict[str, sql.Composable]]) -> None:
        """Update only rows that were written before; whatever else came has a key that nobody has."""
        before = "EXISTS (SELECT FROM {net} o WHERE o.{w} < 0 AND {other})"
        for match in matches:
            self._upsert(self._net, self._format(f"WHERE g.{{w}} > 0 AND {{only}} AND {before}", **match))
            self._run(
                f"INSERT INTO {{target}} ({{plain}}) SELECT {{g_columns}} FROM {{net}} g"
                f" WHERE g.{{w}} > 0 AND {{only}} AND NOT {before}",
                **match,
            )

    def _counted(self) -> tuple[int, int]:
        row = self._one(
            "SELECT coalesce(sum({w}) FILTER (WHERE {w} > 0), 0)::bigint,"
            " coalesce(-sum({w}) FILTER (WHERE {w} < 0), 0)::bigint FROM {net}"
        )
        assert row is not None
        return int(row[0]), int(row[1])  # type: ignore[call-overload]

    # ---- applying a difference

    def apply_difference(self) -> tuple[int, int]:
        """Write only what differs from the rows; return how many rows came and left."""
        if self._target.key:
            deleted = self._run(
                "DELETE FROM {target} t WHERE NOT EXISTS (SELECT FROM {rows} g WHERE {same_key} AND {same_image})"
            )
            changed = self._upsert(
                self._rows,
                self._format("WHERE NOT EXISTS (SELECT FROM {target} t WHERE {same_key} AND {record} *= {g_record})"),
            )
            return changed, deleted
        deleted = self._run(
            "DELETE FROM {target} WHERE ctid = ANY (ARRAY("
            "SELECT t.place FROM (SELECT ctid AS place, {numbered} FROM {target} t) t"
            " LEFT JOIN (SELECT {numbered} FROM {rows} t) g"
            " ON g.x = t.x AND g.n = t.n WHERE g.x IS NULL))"
        )
        inserted = self._run(
            "INSERT INTO {target} ({plain}) SELECT {g_columns} FROM {rows} g JOIN ("
            " SELECT s.place FROM (SELECT ctid AS place, {numbered} FROM {rows} t) s"
            " LEFT JOIN (SELECT {numbered} FROM {target} t) t"
            " ON s.x = t.x AND s.n = t.n WHERE t.x IS NULL) f ON f.place = g.ctid"
        )
        return inserted, deleted

    def _upsert(self, table: sql.Identifier, where: sql.Composable) -> int:
        """Insert rows, or give the rest of their values to those that have their keys.

        Rows whose key is equal but stored otherwise (1.0 and 1.00) were deleted before: a cluster updates no key.
        """
        rest = [c for c in self._target.columns if c not in self._target.key]
        sets = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(sql.Identifier(c)) for c in rest)
        action = sql.SQL("UPDATE SET {}").format(sets) if rest else sql.SQL("NOTHING")
        return self._run(
            "INSERT INTO {target} ({plain}) SELECT {g_columns} FROM {table} g {where} ON CONFLICT ({key}) DO {action}",
            table=table,
            where=where,
            key=sql.SQL(", ").join(map(sql.Identifier, self._target.key)),
            action=action,
        )

    # ---- comparing

    def compare(self, examples: int) -> tuple[tuple[int, int], tuple[int, int], int, int, tuple[str, ...]]:
        """Compare the target with the rows.

        Returns:
            Count and checksum of the target, the same of the rows, how many are missing and unexpected, some as text.
        """
        there = self._one("SELECT count(*), coalesce(sum(hashtextextended({text}, 0)), 0) FROM {there} t")
        wanted = self._one("SELECT count(*), coalesce(sum(hashtextextended({text}, 0)), 0) FROM {rows} t")
        assert there is not None
        assert wanted is not None
        counts = ((int(there[0]), int(there[1])), (int(wanted[0]), int(wanted[1])))  # type: ignore[call-overload]
        if counts[0] == counts[1]:
            return (*counts, 0, 0, ())
        differing = self._format(
            "(SELECT x, sum(n) AS n FROM (SELECT {text} AS x, 1 AS n FROM {rows} t UNION ALL"
            " SELECT {text}, -1 FROM {there} t) b GROUP BY x HAVING sum(n) <> 0) d"
        )
        sums = self._one(
            "SELECT coalesce(sum(n) FILTER (WHERE n > 0), 0), coalesce(-sum(n) FILTER (WHERE n < 0), 0)"
            " FROM {differing}",
            differing=differing,
        )
        assert sums is not None
        query = self._format(
            "SELECT CASE WHEN n > 0 THEN 'missing ' ELSE 'unexpected ' END || x FROM {differing}"
            " ORDER BY x LIMIT {most}",
            differing=differing,
            most=sql.Literal(examples),
        )
        shown = tuple(str(row[0]) for row in self._connection.execute(query).fetchall())
        return (*counts, int(sums[0]), int(sums[1]), shown)  # type: ignore[call-overload]

    # ---- statements

    def _run(self, text: str, **parts: sql.Composable) -> int:
        return self._connection.execute(self._format(text, **parts)).rowcount

    def _one(self, text: str, **parts: sql.Composable) -> tuple[object, ...] | None:
        return self._connection.execute(self._format(text, **parts)).fetchone()

    def _example(self, text: str, **parts: sql.Composable) -> str | None:
        """Return the one value of a query that is expected to find nothing.

        It takes the least of all: for LIMIT 1 the planner hopes for an early find, and compares each row with each.
        """
        row = self._one(text, **parts)
        return None if row is None or row[0] is None else str(row[0])

    def _format(self, text: str, **parts: sql.Composable) -> sql.Composed:
        """Fill in names: `t` is the target or what looks like it, `g` rows to be written."""
        of = self._target
        known: dict[str, sql.Composable] = {
            "target": of.sql,
            "there": self._there,
            "delta": self._delta,
            "net": self._net,
            "rows": self._rows,
            "w": sql.Identifier(WEIGHT),
            "plain": sql.SQL(", ").join(map(sql.Identifier, of.columns)),
            "columns": self._listed("t", of.columns),
            "g_columns": self._listed("g", of.columns),
            "text": sql.SQL("ROW({})::text").format(self._listed("t", of.columns)),
            "g_text": sql.SQL("ROW({})::text").format(self._listed("g", of.columns)),
            "record": sql.SQL("(ROW({})::record)").format(self._listed("t", of.columns)),
            "g_record": sql.SQL("(ROW({})::record)").format(self._listed("g", of.columns)),
            "h": sql.Identifier(HASH),
            "same_key": _match(of.key, "=", sql.SQL(""))["same"],
            "same_image": _same_image(of.key, "t", "g"),
            "unaltered": _same_image(of.key, "g", "o"),
        }
        known["numbered"] = sql.SQL("{0} AS x, row_number() OVER (PARTITION BY {0}) AS n").format(known["text"])
        return sql.SQL(text).format(**(known | self._known() | parts))

    def _known(self) -> dict[str, sql.Composable]:
        """Return further names."""
        return {}

    @staticmethod
    def _listed(alias: str, columns: Iterable[str]) -> sql.Composed:
        return sql.SQL(", ").join(sql.Identifier(alias, c) for c in columns)

    def _matches(self, table: sql.Identifier | None = None) -> list[dict[str, sql.Composable]]:
        """Return how rows `g` of a table, by default the change, match the target's `t` by key.

        By `=`, which an index serves; and, if there are any, those with a NULL in the key by themselves.
        """
        key = self._target.key
        present = _all(sql.SQL("{} IS NOT NULL").format(sql.Identifier("g", k)) for k in key)
        ways = [_match(key, "=", present)]
        nulls = sql.SQL("NOT ({})").format(present)
        if self._one("SELECT 1 FROM {of} g WHERE {nulls} LIMIT 1", of=table or self._net, nulls=nulls) is not None:
            ways.append(_match(key, "IS NOT DISTINCT FROM", nulls))
        return ways


def _match(key: Sequence[str], operator: str, only: sql.Composable) -> dict[str, sql.Composable]:
    def same(left: str, right: str) -> sql.Composable:
        pairs = ((sql.Identifier(left, k), sql.Identifier(right, k)) for k in key)
        return _all(sql.SQL(f"{{}} {operator} {{}}").format(*pair) for pair in pairs)

    return {"same": same("t", "g"), "other": same("g", "o"), "only": only}


def _same_image(key: Sequence[str], left: str, right: str) -> sql.Composable:
    """Compare keys as they are stored; beside `=`, which an index or a hash serves."""
    sides = (sql.SQL(", ").join(sql.Identifier(side, k) for k in key) for side in (left, right))
    return sql.SQL("(ROW({})::record) *= (ROW({})::record)").format(*sides)


def _all(conditions: Iterable[sql.Composable]) -> sql.Composable:
    return sql.SQL(" AND ").join(conditions)


def key_not_unique(target: TargetTable, example: str) -> UserError:
    """Return the error for a key that two rows of the stream table have."""
    return UserError(
        "SINK_KEY_NOT_UNIQUE",
        f"Two rows of the stream table have the same key ({', '.join(target.key)}); nothing was written.",
        detail=f"One such key is {example}.",
        hint="Name a key that is unique in the stream table's result; without KEY the target may have equal rows.",
    )


def violated(error: psycopg.errors.UniqueViolation) -> str:
    """Return the key that a unique index found twice, in the server's words."""
    return (error.diag.message_detail or str(error)).strip()
