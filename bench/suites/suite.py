"""A suite: tables in files, their changes in rounds, and queries over them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from headrace.sql.references import references


@dataclass(frozen=True, slots=True)
class Suite:
    """Tables, their changes, and queries.

    Args:
        name: The namespace of its tables, too.
        folder: Has a folder a table, as `rounds.split` writes it.
        keys: The columns that tell rows of a table apart, by table.
        queries: Texts by name.
    """

    name: str
    folder: Path
    keys: Mapping[str, tuple[str, ...]]
    queries: Mapping[str, str]

    def only(self, names: Collection[str]) -> Suite:
        """Return the suite with some of its queries only."""
        return replace(self, queries={name: self.queries[name] for name in names})

    def read(self, text: str) -> list[str]:
        """Return the tables that a query reads."""
        return sorted({each.parts[-1].lower() for each in references(text)} & self.keys.keys())
