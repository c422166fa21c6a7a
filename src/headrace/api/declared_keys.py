"""Declaring keys of sources: what users vouch for, so that refreshes need not look."""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from dataclasses import dataclass

from headrace.api.safeguards.missing_tables import missing_table
from headrace.catalog import Catalog
from headrace.definitions.details import from_json
from headrace.errors import UserError
from headrace.names import TableName
from headrace.ports import Session
from headrace.refresh.cut.cut import Cut
from headrace.refresh.definition.source_keys import SourceKeys, values_in_several_rows
from headrace.results.refresh_results import Record
from headrace.sources.lakehouse.changes_sql import rows_sql
from headrace.suggestions import did_you_mean


@dataclass(frozen=True, slots=True)
class KeyInfo(Record):
    """A declared key.

    Args:
        source: The source.
        columns: The columns in which no two rows agree.
        declared_at: Since when.
        read_by: The stream tables that read the source.
        to_recompute: Those among them that were defined without this knowledge: their next refresh recomputes them.
    """

    source: str
    columns: tuple[str, ...]
    declared_at: dt.datetime
    read_by: tuple[str, ...]
    to_recompute: tuple[str, ...]


def key_infos(catalog: Catalog) -> tuple[KeyInfo, ...]:
    """Return the declared keys; see `Headrace.keys`."""
    tables = [(t.name, from_json(t.details)) for t in catalog.stream_tables()]
    found = []
    for key in catalog.declared_keys():
        readers = [(name, d) for name, d in tables if any(use.name == key.source for use in d.sources)]
        without = (name for name, d in readers if key.columns not in d.source_keys.get(key.source, ()))
        names = tuple(str(name) for name, _ in readers)
        found.append(KeyInfo(str(key.source), key.columns, key.declared_at, names, tuple(map(str, without))))
    return tuple(found)


def declare(
    catalog: Catalog, session: Session, heads: Cut, source: TableName, columns: Collection[str], *, check: bool
) -> KeyInfo:
    """Declare a key; see `Headrace.declare_key`."""
    if any(t.name == source for t in catalog.stream_tables()):
        raise UserError(
            "INVALID_OPTION",
            f"{source} is a stream table; its keys follow from its query.",
            hint="Declare keys of the sources that it reads.",
        )
    if not columns:
        raise UserError("INVALID_OPTION", "A key has one column or more.")
    if source not in heads.versions([source]):
        raise missing_table(catalog, source, "could have a key")
    head = heads.of([source], frozenset())[source]
    there = {c.name.lower(): c.name for c in head.meta.columns}
    if missing := [c for c in columns if c.lower() not in there]:
        raise UserError(
            "COLUMN_NOT_FOUND",
            f"{source} has no column {missing[0]}.",
            hint=f"{did_you_mean(missing[0], there.values())}It has {', '.join(there.values())}.",
        )
    key = tuple(sorted({there[c.lower()] for c in columns}))
    if check:
        rows = rows_sql(source, head.meta, head.version.snapshot_id)
        if several := values_in_several_rows(session.runner(), rows, key):
            raise UserError(
                "KEY_VIOLATED",
                f"({', '.join(key)}) is no key of {source}: {several:,} values are in several rows.",
                detail="NULL counts as a value like any other.",
                hint="Declare columns in which no two rows agree.",
            )
    catalog.declare_key(source, key)
    return next(k for k in key_infos(catalog) if (k.source, k.columns) == (str(source), key))


def drop(catalog: Catalog, source: TableName, columns: Collection[str]) -> None:
    """Forget a key; see `Headrace.drop_key`."""
    known = {tuple(c.lower() for c in key): key for key in SourceKeys(catalog).declared.get(source, ())}
    wanted = tuple(sorted(c.lower() for c in columns))
    found = next((key for folded, key in known.items() if tuple(sorted(folded)) == wanted), tuple(columns))
    catalog.drop_key(source, found)
