"""Reads the texts of rewrites: a view, and the tree a pass must make of it.

    case     a comma join becomes an equi-join
    view     SELECT a.x FROM a, b WHERE a.k = b.k
    keep     x
    after
      Project […]
        Join on …

`keep` names the columns somebody uses, where those are not all. Without `after` the pass must leave the tree alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headrace.algebra.relations import Project, Relation
from headrace.algebra.schema import Column
from headrace.algebra.tree import identity
from headrace.names import LAKE, TableName
from headrace.sql.reader.reader import read

TABLES = {
    "a": (Column("k", "int"), Column("x", "int"), Column("s", "string")),
    "b": (Column("k", "int"), Column("y", "int")),
    "c": (Column("k", "int"), Column("z", "int")),
}


@dataclass(frozen=True)
class Spec:
    """One case.

    Args:
        name: What it shows.
        view: The query.
        keep: Its columns that are used, apart by spaces; empty for all.
        after: The expected tree as text; None for no change.
    """

    name: str
    view: str
    keep: str
    after: str | None


def specs(path: Path) -> list[Spec]:
    """The cases of a file."""
    found = []
    for block in path.read_text().strip().split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        head = dict(line.split(maxsplit=1) for line in lines if not line.startswith(" ") and line != "after")
        tree = "\n".join(line[2:] for line in lines if line.startswith("  "))
        found.append(Spec(head["case"].strip(), head["view"].strip(), head.get("keep", "").strip(), tree or None))
    return found


def kept(tree: Relation, columns: str) -> Relation:
    """Some columns of a relation; all for an empty text."""
    return Project(tree, identity(tuple(columns.split()))) if columns else tree


def tree_of(view: str) -> Relation:
    """A query as the reader gives it."""
    reading = read(view, resolve=lambda parts: TableName(LAKE, ("shop",), parts[-1]), schema=lambda n: TABLES[n.table])
    assert reading.tree is not None, reading.refusals
    return reading.tree
