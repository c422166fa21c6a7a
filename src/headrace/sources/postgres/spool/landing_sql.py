"""SQL of a mirror's change from a spooled batch: rows with their net weights.

Pure. Spooled files are read by temporary views that have their folders' names. Spark would read ``parquet.`folder` ``,
too, but asks the lake first whether it has such a table, and servers refuse to look for one with slashes in its name.

By key, the change of a batch is Δ = −(mirror ⋉ touched keys) + last images: whatever happened in between, the
mirror's row goes and the last image comes, and equal ones cancel. A key that began with an INSERT has no row in the
mirror, so a batch of inserts reads no mirror at all.

Equal ones cancel in one of two ways. A few rows are added up (`consolidate`), by one task. Many would be hashed whole,
twice, for that: they meet by key instead, one old row and one new one at most, and pairs that are equal are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headrace.algebra.schema import Column, no_rows_sql
from headrace.lake.compare import consolidate, same
from headrace.lake.measured_change import is_cheap
from headrace.names import WEIGHT, quote
from headrace.sources.postgres.remote_tables import RemoteTable
from headrace.sources.postgres.type_mapping import place_of, selected

LIVE, KNOWN, UNSENT, WEIGHED = "live", "known", "unsent", "weight"
"""Spooled columns: whether a key has a last image; whether the mirror may have a row of it; which values were not sent;
a row's weight."""

FEW = 20_000
"""Rows that one task takes in, at most, as they are no work for two."""

BROADCAST_KEYS, BROADCAST_TEXTS = 2_000_000, 200_000
"""Most keys, of numbers or of any type, that are sent to every task that reads the mirror.

With them, no other rows of the mirror are sent around.
"""


@dataclass(frozen=True, slots=True)
class Spooled:
    """A table's part of a batch, written down.

    Args:
        folder: Where the Parquet files are; None when there are no rows, or they are literal.
        rows: How many rows they have.
        truncated: The table was emptied first.
        keyed: Last images by key; else rows with weights.
        known: Some key may have a row in the mirror.
        unsent: Some image lacks values that only the mirror has.
        distinct: Rows with weights of which none comes twice, and none undoes another.
        touched: Where keys are whose rows do not count, of a snapshot that was taken in several attempts.
        again: Where the rows are that count instead; None where there are none.
        literal: So few rows, as SQL; no file has them.
    """

    folder: str | None
    rows: int
    truncated: bool = False
    keyed: bool = False
    known: bool = False
    unsent: bool = False
    distinct: bool = False
    touched: str | None = None
    again: str | None = None
    literal: str | None = None

    @property
    def empty(self) -> bool:
        """Return whether there are no rows."""
        return self.folder is None and self.literal is None

    @property
    def folders(self) -> tuple[str, ...]:
        """Return all folders that have files."""
        return tuple(folder for folder in (self.folder, self.touched, self.again) if folder is not None)


def origin_of(number: int) -> str:
    """Return the spooled column: a value of the key that a row had when the batch began."""
    return f"o{number}"


def new_rows_sql(table: RemoteTable, spooled: Spooled) -> str:
    """Return the spooled rows of a snapshot, typed."""
    if spooled.empty and spooled.again is None:
        return no_rows_sql(tuple(column for column, _ in table.typed))
    return f"SELECT {selected(table.typed)} FROM {_whole(table, spooled)} AS s"


def _whole(table: RemoteTable, spooled: Spooled) -> str:
    """Return the texts of a snapshot's rows."""
    if spooled.touched is None:
        return _file(spooled)
    parts, places = [], {c.name: number for number, c in enumerate(table.columns)}
    if spooled.folder is not None:
        same = " AND ".join(f"p.{place_of(places[k])} = t.{place_of(n)}" for n, k in enumerate(table.key))
        parts.append(f"SELECT p.* FROM {_file(spooled)} AS p LEFT ANTI JOIN {quote(spooled.touched)} AS t ON {same}")
    if spooled.again is not None:  # keys that are written in two ways may have been asked for twice
        parts.append(f"SELECT DISTINCT * FROM {quote(spooled.again)}")
    return f"({' UNION ALL '.join(parts)})"


def replacing_sql(table: RemoteTable, spooled: Spooled, before: str) -> str:
    """Return the change from a mirror's rows to those of a new snapshot.

    Args:
        table: The table.
        spooled: The rows of the snapshot.
        before: Table expression of the mirror as published.
    """
    columns = tuple(c for c, _ in table.typed)
    names = ", ".join(quote(c.name) for c in columns)
    old = f"SELECT {names}, -1L AS {WEIGHT} FROM {before}"
    return consolidate(f"{old} UNION ALL SELECT *, 1L FROM ({new_rows_sql(table, spooled)})", columns, apart=True)


def change_sql(table: RemoteTable, spooled: Spooled, before: str, *, small: bool = False, most_few: int = FEW) -> str:
    """Return the change that a batch makes.

    Args:
        table: The table, as the mirror was made of it.
        spooled: Its part of the batch.
        before: Table expression of the mirror's rows when the batch begins.
        small: A single task reads the mirror in no time.
        most_few: So many rows are few.
    """
    few = spooled.rows <= most_few
    columns = tuple(c for c, _ in table.typed)
    names = ", ".join(quote(c.name) for c in columns)
    everything = f"SELECT {names}, -1L AS {WEIGHT} FROM {before}"
    if spooled.empty and not spooled.truncated:
        return f"{everything} WHERE false"
    if spooled.empty:
        return everything if table.key else consolidate(everything, columns, apart=True)
    if not spooled.keyed:
        rows = f"SELECT {selected(table.typed)}, CAST(s.{WEIGHED} AS BIGINT) AS {WEIGHT} FROM {_file(spooled)} AS s"
        if spooled.distinct:
            return rows
        if spooled.truncated:
            return consolidate(_gathered(f"{everything} UNION ALL {rows}", few and small), columns, apart=True)
        return consolidate(_gathered(rows, few), columns, apart=True)
    new = _images(table, spooled, before)
    if spooled.truncated:
        return consolidate(f"{everything} UNION ALL {new}", columns, apart=True)
    if not spooled.known:
        return new
    listed = ", ".join(f"m.{quote(c.name)}" for c in columns)
    touched = _gathered(f"SELECT {_key(table)} FROM {_file(spooled)} AS s WHERE s.{KNOWN}", few and small)
    mirrored, hint = (f"({_gathered(before, True)})", "/*+ SHUFFLE_HASH(t) */ ") if few and small else (before, "")
    most = BROADCAST_KEYS if all(map(is_cheap, _key_columns(table))) else BROADCAST_TEXTS
    if not few and spooled.rows <= most:
        hint = "/*+ BROADCAST(t) */ "
    joined = " AND ".join(f"m.{quote(c.name)} = t.{quote(c.name)}" for c in _key_columns(table))
    old = f"SELECT {hint}{listed}, -1L AS {WEIGHT} FROM {mirrored} AS m LEFT SEMI JOIN ({touched}) AS t ON {joined}"
    if few:
        return consolidate(_gathered(f"{old} UNION ALL {new}", small), columns, apart=True)
    return _paired(columns, _key_columns(table), old, new)


def _paired(columns: Sequence[Column], key: Sequence[Column], old: str, new: str) -> str:
    """Return the change from old to new rows, each unique by key; equal pairs cancel."""
    met = " AND ".join(f"m.{quote(c.name)} = n.{quote(c.name)}" for c in key)
    # no column is renamed on the way: what Spark infers of a condition doubles with each column of it that is
    shown = ", ".join(
        f"CASE WHEN p.w < 0 THEN m.{c} ELSE n.{c} END AS {c}" for c in map(quote, (x.name for x in columns))
    )
    return (
        f"SELECT {shown}, p.w AS {WEIGHT} FROM ({old}) AS m FULL OUTER JOIN ({new}) AS n ON {met} "
        f"LATERAL VIEW explode(array(-1L, 1L)) p AS w WHERE (p.w = m.{WEIGHT} OR p.w = n.{WEIGHT}) "
        f"AND (m.{WEIGHT} IS NULL OR n.{WEIGHT} IS NULL OR NOT ({same(columns, 'm', 'n', apart=True)}))"
    )


def _gathered(source: str, wanted: bool) -> str:
    """Return a query whose rows one task has, if wanted: quicker than an exchange of few."""
    return f"SELECT /*+ COALESCE(1) */ * FROM ({source})" if wanted else source


def _images(table: RemoteTable, spooled: Spooled, before: str) -> str:
    """Return the last images, completed with the mirror's values where they were not sent."""
    if not spooled.unsent:
        return f"SELECT {selected(table.typed)}, 1L AS {WEIGHT} FROM {_file(spooled)} AS s WHERE s.{LIVE}"
    shown = []
    for number, (column, kept) in enumerate(table.typed):
        sent, name = kept.sql(f"s.{place_of(number)}"), quote(column.name)
        if number in table.key_places:
            shown.append(f"{sent} AS {name}")
        else:
            missing = f"coalesce(array_contains(s.{UNSENT}, {number}), false)"
            shown.append(f"CASE WHEN {missing} THEN m.{name} ELSE {sent} END AS {name}")
    places = {place: number for number, place in enumerate(table.key_places)}
    joined = " AND ".join(
        f"m.{quote(table.typed[place][0].name)} = {table.typed[place][1].sql(f's.{origin_of(number)}')}"
        for place, number in places.items()
    )
    return (
        f"SELECT {', '.join(shown)}, 1L AS {WEIGHT} FROM {_file(spooled)} AS s LEFT JOIN {before} AS m ON {joined} "
        f"WHERE s.{LIVE}"
    )


def _key_columns(table: RemoteTable) -> tuple[Column, ...]:
    return tuple(table.typed[place][0] for place in table.key_places)


def _key(table: RemoteTable) -> str:
    return ", ".join(
        f"{table.typed[p][1].sql(f's.{place_of(p)}')} AS {quote(table.typed[p][0].name)}" for p in table.key_places
    )


def _file(spooled: Spooled) -> str:
    return spooled.literal or quote(spooled.folder or "")
