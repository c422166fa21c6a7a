"""Compares declared sources with existing ones; returns the steps to take. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headrace.catalog import DatabaseSource
from headrace.config import DeclaredSource
from headrace.results.refresh_results import Record
from headrace.sources.registry import KINDS, kind_of
from headrace.sources.source_kind import SourceKind, SourceRequest, differs


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


def _changes(source: DatabaseSource, declared: DeclaredSource, prune: bool) -> list[SourceStep]:
    kind, wanted = request_of(declared)
    if kind.name != source.kind:
        raise differs(source.name, "its kind", "drop it and declare it anew, or correct the file")
    between = kind.changes(source, wanted)
    found = [SourceStep(source.name, "add tables", between.added)] if between.added else []
    if between.undeclared:
        found.append(SourceStep(source.name, "drop tables" if prune else "undeclared", between.undeclared))
    return found


def request_of(declared: DeclaredSource) -> tuple[SourceKind, SourceRequest]:
    """Return the kind of a declared source, and what is asked of it.

    Raises:
        UserError: `SOURCE_KIND_UNKNOWN`.
    """
    kind = KINDS[0] if declared.kind is None else kind_of(declared.kind)
    said = {"text_columns": declared.text_columns, "capture": declared.capture, "failover": declared.failover}
    options = {name: value for name, value in said.items() if value} | dict(declared.options)
    return kind, SourceRequest(declared.url, declared.tables, options)
