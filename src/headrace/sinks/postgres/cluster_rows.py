"""Rows of targets that Citus has: reference, distributed and managed tables.

Nothing there can be found by its place (`ctid`), and a statement that changes rows may compare them only by what gives
the same on every node. So what a change is about is read into a temporary table first, everything is decided there, and
two statements write: `DELETE` of what left, `INSERT` of what came.

A bag has equal rows. All copies of those that a change takes away are deleted, and as many inserted again as were to
stay: exact with any number of shards and replicas.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from psycopg import sql

from headrace.sinks.postgres.placement import ROW_ID
from headrace.sinks.postgres.row_sets import HASH, RowSets, copy_into
from headrace.sinks.postgres.target_connection import Connection
from headrace.sinks.postgres.target_table import TargetTable

if TYPE_CHECKING:
    import pyarrow as pa


def row_sets(connection: Connection, target: TargetTable, number: int) -> RowSets:
    """Return what writes a table, by where its rows are."""
    kind = ClusterRowSets if target.placement.is_in_cluster else RowSets
    return kind(connection, target, number)


class ClusterRowSets(RowSets):
    """Statements about one target table of a cluster."""

    def __init__(self, connection: Connection, target: TargetTable, number: int) -> None:
        super().__init__(connection, target, number)
        self._there = sql.Identifier("pg_temp", f"hr_there_{number}")
        self._gone = sql.Identifier("pg_temp", f"hr_gone_{number}")
        self._read = False

    # ---- filling

    def copy_directly(self, batches: Iterable[pa.RecordBatch]) -> int:
        """Copy rows into the target itself, which is empty."""
        if not self._has_hash:
            return super().copy_directly(batches)
        self._run("CREATE TEMP TABLE {rows} ON COMMIT DROP AS SELECT {columns} FROM {target} t WITH NO DATA")
        copy_into(self._connection, self._rows, self._target.columns, batches)
        return self._run("INSERT INTO {target} ({written}) SELECT {g_written} FROM {rows} g")

    # ---- reading the target

    def _read_all(self) -> None:
        further = sql.SQL(", t.{} AS {}").format(sql.Identifier(ROW_ID), sql.Identifier(HASH))
        self._run(
            "CREATE TEMP TABLE {there} ON COMMIT DROP AS SELECT {columns}{further} FROM {target} t",
            further=further if self._has_hash else sql.SQL(""),
        )
        self._run("ANALYZE {there}")

    def _read_changed(self) -> None:
        """Read the rows that have keys of the change, or that a change of a bag takes away."""
        if self._read:
            return
        self._read = True
        self._run("CREATE TEMP TABLE {there} ON COMMIT DROP AS SELECT {columns} FROM {target} t WITH NO DATA")
        if self._target.key:
            for match in self._matches():
                self._run(
                    "INSERT INTO {there} SELECT {columns} FROM {target} t JOIN"
                    " (SELECT DISTINCT {g_key} FROM {net} g WHERE {only}) g ON {same}",
                    **match,
                )
        else:
            self._run(
                "INSERT INTO {there} SELECT {columns} FROM {target} t JOIN"
                " (SELECT {g_columns}, g.{h} FROM {net} g WHERE g.{w} < 0) g ON {same_row}"
            )
        self._run("ANALYZE {there}")

    # ---- applying a change

    def foreign_change(self) -> str | None:
        """Describe a row of the change that somebody else has changed; None if all are right."""
        self._read_changed()
        return super().foreign_change()

    def can_lock_rows(self) -> bool:
        """Return that they are not: nothing locks rows of several shards."""
        return False

    def apply_change(self, *, overwrite: bool) -> tuple[int, int]:
        """Delete what left and insert what came; return how many rows came and left.

        Whatever was of somebody else was found before, as the table is locked.
        """
        if not self._target.key:
            self._apply_to_bag()
            return self._counted()
        self._run("CREATE TEMP TABLE {gone} ON COMMIT DROP AS SELECT {g_key} FROM {net} g WITH NO DATA")
        for match in self._matches():
            self._run(
                "INSERT INTO {gone} SELECT DISTINCT {g_key} FROM {net} g WHERE g.{w} < 0 AND {only}"
                " AND NOT EXISTS (SELECT 1 FROM {net} o WHERE o.{w} > 0 AND {other} AND {unaltered})",
                **match,
            )
        self._delete_gone()
        self._upsert(self._net, self._format("WHERE g.{w} > 0"))
        return self._counted()

    def _apply_to_bag(self) -> None:
        if self._one("SELECT 1 FROM {net} WHERE {w} < 0 LIMIT 1") is not None:
            self._read_changed()
            self._run(
                "DELETE FROM {target} t USING (SELECT {g_columns}, g.{h} FROM {net} g WHERE g.{w} < 0) g"
                " WHERE {same_row}"
            )
            self._run(
                "INSERT INTO {target} ({written}) SELECT {g_written} FROM (SELECT {columns}, -g.{w} AS {w},"
                " row_number() OVER (PARTITION BY g.ctid) AS copy FROM {there} t JOIN {net} g"
                " ON hashtextextended({text}, 0) = g.{h} AND {record} *= {g_record} WHERE g.{w} < 0) g"
                " WHERE g.copy > g.{w}"
            )
        self._run(
            "INSERT INTO {target} ({written}) SELECT {g_written} FROM {net} g, generate_series(1, g.{w})"
            " WHERE g.{w} > 0"
        )

    def _delete_gone(self) -> int:
        """Delete rows by their keys; of a reference table only so simple a query finds them."""
        return sum(
            self._run(
                "DELETE FROM {target} t USING (SELECT {g_key} FROM {gone} g WHERE {only}) g WHERE {same}", **match
            )
            for match in self._matches(self._gone)
        )

    # ---- applying a difference

    def apply_difference(self) -> tuple[int, int]:
        """Write only what differs from the rows; return how many rows came and left."""
        self._read_all()
        if not self._target.key:
            return self._apply_difference_to_bag()
        self._run(
            "CREATE TEMP TABLE {gone} ON COMMIT DROP AS SELECT DISTINCT {t_key} FROM {there} t"
            " WHERE NOT EXISTS (SELECT FROM {rows} g WHERE {same_key} AND {same_image})"
        )
        deleted = self._delete_gone()
        changed = self._upsert(
            self._rows,
            self._format("WHERE NOT EXISTS (SELECT FROM {there} t WHERE {same_key} AND {record} *= {g_record})"),
        )
        return changed, deleted

    def _apply_difference_to_bag(self) -> tuple[int, int]:
        """Make a change of the difference, and apply that."""
        stale = self._delete_stale() if self._has_hash else 0
        self._run(
            "CREATE TEMP TABLE {net} ON COMMIT DROP AS SELECT {columns}, 0::bigint AS {w}, 0::bigint AS {h}"
            " FROM {there} t WITH NO DATA"
        )
        self._run(
            "INSERT INTO {net} SELECT {columns}, d.w, hashtextextended({text}, 0) FROM"
            " (SELECT x, sum(n)::bigint AS w, min(place) FILTER (WHERE n > 0) AS place FROM"
            " (SELECT {text} AS x, 1 AS n, t.ctid AS place FROM {rows} t"
            " UNION ALL SELECT {text}, -1, NULL FROM {there} t) b GROUP BY x HAVING sum(n) > 0) d"
            " JOIN {rows} t ON t.ctid = d.place"
        )
        self._run(
            "INSERT INTO {net} SELECT {columns}, d.w, hashtextextended({text}, 0) FROM"
            " (SELECT x, sum(n)::bigint AS w, min(place) FILTER (WHERE n < 0) AS place FROM"
            " (SELECT {text} AS x, 1 AS n, NULL::tid AS place FROM {rows} t"
            " UNION ALL SELECT {text}, -1, t.ctid FROM {there} t) b GROUP BY x HAVING sum(n) < 0) d"
            " JOIN {there} t ON t.ctid = d.place"
        )
        self._read = True
        self._apply_to_bag()
        inserted, deleted = self._counted()
        return inserted, deleted + stale

    def _delete_stale(self) -> int:
        """Delete rows that somebody else has changed, so that their hash is that of another row."""
        wrong = "t.{h} <> hashtextextended({text}, 0)"
        self._run(
            f"CREATE TEMP TABLE {{gone}} ON COMMIT DROP AS SELECT {{columns}}, t.{{h}} FROM {{there}} t WHERE {wrong}"
        )
        self._run(f"DELETE FROM {{there}} t WHERE {wrong}")
        return self._run("DELETE FROM {target} t USING (SELECT {g_columns}, g.{h} FROM {gone} g) g WHERE {same_row}")

    # ---- comparing

    def compare(self, examples: int) -> tuple[tuple[int, int], tuple[int, int], int, int, tuple[str, ...]]:
        """Compare the target with the rows; see `RowSets`."""
        self._read_all()
        return super().compare(examples)

    # ---- statements

    def _known(self) -> dict[str, sql.Composable]:
        """Add what only statements about a cluster name."""
        of, comma = self._target, sql.SQL(", ")
        written, values = comma.join(map(sql.Identifier, of.columns)), self._listed("g", of.columns)
        if self._has_hash:
            value = sql.SQL("hashtextextended(ROW({})::text, 0)").format(values)
            written, values = comma.join([written, sql.Identifier(ROW_ID)]), comma.join([values, value])
        return {
            "there": self._there,
            "gone": self._gone,
            "g_key": self._listed("g", of.key),
            "t_key": self._listed("t", of.key),
            "written": written,
            "g_written": values,
            "same_row": self._same_row(),
        }

    def _same_row(self) -> sql.Composable:
        """Return how workers find a row of a bag: by a hash that is the same on each, then by image."""
        of = self._target
        found_by: sql.Composable = sql.SQL("true")
        if self._has_hash:
            found_by = sql.SQL("t.{} = g.{}").format(sql.Identifier(ROW_ID), sql.Identifier(HASH))
        elif of.hashed:
            sides = (sql.SQL("hash_record_extended(ROW({}), 0)").format(self._listed(s, of.hashed)) for s in "tg")
            found_by = sql.SQL(" = ").join(sides)
        images = (sql.SQL("ROW({})").format(self._listed(side, of.columns)) for side in "tg")
        return sql.SQL("{} AND record_image_eq({})").format(found_by, sql.SQL(", ").join(images))

    @property
    def _has_hash(self) -> bool:
        return self._target.placement.column == ROW_ID
