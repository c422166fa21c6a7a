"""Compares declared sources with existing ones; returns the steps to take. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headrace.catalog import DatabaseSource
from headrace.config import DeclaredSource
from headrace.errors import UserError
from headrace.results.refresh_results import Record
from headrace.sources.table_lists import SourceTable, source_table
from headrace.sources.table_syntax import split_column


@dataclass(frozen=True, slots=True)
class SourceStep(Record):
    """One thing that makes a source what is declared.

    Args:
        source: The source.
        action: `create`, `add tables`, `drop tables`, `undeclared` (tables that exist and are not declared stay), or
            `nothing`.
        tables: The tables, as they are declared; mirrors, where they go or are not declared.
    """

    source: str
    action: str
    tables: tuple[str, ...] = ()


def steps(
    declared: Mapping[str, DeclaredSource], existing: Iterable[DatabaseSource], *, prune: bool = False
) -> tuple[SourceStep, ...]:
    """Return the steps that make the sources as declared, in order.

    Args:
        declared: The sources of `headrace.toml`.
        existing: The sources of the catalog.
        prune: Drop tables that are not declared. Sources that are not declared are left alone in any case.

    Raises:
        UserError: `SOURCE_DIFFERS` where a source or a table exists, but as something else.
    """
    there = {source.name: source for source in existing}
    found: list[SourceStep] = []
    for name, wanted in declared.items():
        if name not in there:
            found.append(SourceStep(name, "create", wanted.tables))
        else:
            found += _changes(there[name], wanted, prune) or [SourceStep(name, "nothing")]
    return tuple(found)


def _changes(source: DatabaseSource, wanted: DeclaredSource, prune: bool) -> list[SourceStep]:
    options = source.options
    if options["url"] != wanted.url:
        raise _differs(source.name, "its connection string", "drop it and declare it anew, or correct the file")
    tables = {table.mirror or table.table: (text, table) for text in wanted.tables for table in (source_table(text),)}
    texts = {".".join(split_column(column)) for column in wanted.text_columns}
    if wanted.capture and wanted.capture != options.get("capture", "wal"):
        raise _differs(source.name, "how it is captured", "drop it and apply again, or correct the file")
    if wanted.failover != options.get("failover", False):
        raise _differs(source.name, "failover", "drop it and apply again, or correct the file")
    followed = {tuple(of): mirror for mirror, of in options["tables"].items()}
    for mirror, (_, table) in tables.items():
        if followed.get((table.schema, table.table), mirror) != mirror:
            raise _differs(
                source.name, f"the name of {table.table}'s mirror", "drop that table from it, and apply again"
            )
        if mirror in options["tables"] and _kept(source, mirror) != _meant(table, texts):
            raise _differs(source.name, f"table {mirror}", "drop that table from it, and apply again")
    added = tuple(text for mirror, (text, _) in tables.items() if mirror not in options["tables"])
    undeclared = tuple(sorted(options["tables"].keys() - tables.keys()))
    found = [SourceStep(source.name, "add tables", added)] if added else []
    if undeclared:
        found.append(SourceStep(source.name, "drop tables" if prune else "undeclared", undeclared))
    return found


def _kept(source: DatabaseSource, mirror: str) -> object:
    schema, table = source.options["tables"][mirror]
    part = source.options.get("parts", {}).get(mirror, {"columns": [], "where": None})
    texts = {c for c in source.options["as_text"] if c.rpartition(".")[0] == f"{schema}.{table}"}
    return schema, table, list(part["columns"]), part["where"], texts


def _meant(table: SourceTable, texts: Iterable[str]) -> object:
    own = {c for c in texts if c.rpartition(".")[0] == f"{table.schema}.{table.table}"}
    return table.schema, table.table, list(table.columns), table.where, own


def _differs(source: str, what: str, remedy: str) -> UserError:
    return UserError(
        "SOURCE_DIFFERS",
        f"Source {source} exists, but {what} is not what headrace.toml declares; nothing was changed.",
        hint=f"To have it as declared, {remedy}.",
    )
