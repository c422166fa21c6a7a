"""Refuses Spark statements that would change what Headrace writes.

Only what goes through `Headrace.sql` is seen here. Whatever else changes these tables is noticed afterwards, by their
pointers (`catalog.foreign_writes`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from headrace.catalog import Catalog
from headrace.errors import UserError, place_at
from headrace.names import LAKE, STAGING, TableName

if TYPE_CHECKING:
    from headrace.sql.write_targets import WriteTarget

_DONE = {
    "INSERT": "written",
    "UPDATE": "written",
    "DELETE": "written",
    "MERGE": "written",
    "TRUNCATE": "emptied",
    "DROP": "dropped",
    "DROP NAMESPACE": "dropped",
    "ALTER": "altered",
    "REPLACE": "replaced",
    "CALL": "changed",
}


class Owner(NamedTuple):
    """The stream table or mirror that a stored table belongs to.

    Args:
        name: The stream table, or the mirror.
        source: The database source of a mirror; None for a stream table.
        part: What the stored table is to it: "" for its rows, else `companion` or `change log`.
    """

    name: TableName
    source: str | None = None
    part: str = ""

    @property
    def sentence(self) -> str:
        """Return what the table is, for messages that begin with its name."""
        if self.source is not None:
            return f"is the {self.part} of mirror {self.name}" if self.part else f"is a mirror of source {self.source}"
        return f"is the {self.part} of stream table {self.name}" if self.part else "is a stream table"


FullName = Callable[[tuple[str, ...]], TableName | None]
"""Gives a written name its full form; None where it is no table of the current catalog."""


def owners_of(catalog: Catalog) -> dict[TableName, Owner]:
    """Return every stored table of a project, with what it belongs to."""
    with catalog.reading() as reader:
        streams, sources = reader.stream_tables(), reader.sources()
    found: dict[TableName, Owner] = {}
    for table in streams:
        parts = ((table.name, ""), (table.companion, "companion"), (table.log, "change log"))
        found |= {name: Owner(table.name, None, part) for name, part in parts if name is not None}
    for source in sources:
        for mirror in source.mirrors:
            found[mirror.name] = Owner(mirror.name, source.name)
            found[mirror.log] = Owner(mirror.name, source.name, "change log")
    return found


def refuse_own_tables(
    targets: Sequence[WriteTarget], owners: Mapping[TableName, Owner], full_name: FullName, script: str, start: int
) -> None:
    """Refuse a Spark statement that changes what Headrace writes; name the one that is meant.

    Args:
        targets: What the statement changes.
        owners: Every stored table of the project.
        full_name: Gives names their full form.
        script: The script it stands in; the error names the place in it.
        start: Where the statement begins in it.

    Raises:
        UserError: `MANAGED_TABLE`.
    """
    for target in targets:
        if (found := _owned(target, owners, full_name)) is not None:
            name, owner = found
            raise UserError(
                "MANAGED_TABLE",
                f"{name} {owner.sentence}; it is {_DONE[target.verb]} by Headrace only.",
                hint=_hint(target.verb, owner),
                place=place_at(script, start + target.start),
            )


def _owned(
    target: WriteTarget, owners: Mapping[TableName, Owner], full_name: FullName
) -> tuple[TableName, Owner] | None:
    """Return the stored table that a target means, with its owner."""
    if target.verb == "DROP NAMESPACE":
        levels = _namespace(target.name)
        return next(((n, o) for n, o in sorted(owners.items()) if n.namespace[: len(levels)] == levels), None)
    for parts in (target.name, target.name[:-1]):  # table.branch_x is a branch of table
        name = full_name(parts) if parts and (parts == target.name or _is_branch(target.name[-1])) else None
        if name is not None and name.catalog in (LAKE, STAGING) and (known := owners.get(name.within(LAKE))):
            return name, known
    return None


def _is_branch(part: str) -> bool:
    return part.lower().startswith(("branch_", "tag_"))


def _namespace(name: tuple[str, ...]) -> tuple[str, ...]:
    return name[1:] if len(name) > 1 and name[0] in (LAKE, STAGING) else name


def _hint(verb: str, owner: Owner) -> str:
    if owner.source is not None:
        return _hint_of_mirror(verb, owner)
    name = owner.name
    if verb == "DROP NAMESPACE":
        return f"DROP STREAM TABLE {name} and the others first; then the namespace is empty."
    if owner.part:
        return f"DROP STREAM TABLE {name} removes both; REPAIR STREAM TABLE {name} undoes what others changed."
    return {
        "DROP": f"DROP STREAM TABLE {name}",
        "ALTER": f"ALTER STREAM TABLE {name} SET SCHEDULE, REFRESH MODE, PROPERTIES or QUERY AS SELECT …; "
        "its columns follow from its query",
        "REPLACE": f"CREATE OR REPLACE STREAM TABLE {name} AS SELECT …",
        "TRUNCATE": f"Empty its sources and REFRESH STREAM TABLE {name}, or DROP STREAM TABLE {name}",
        "CALL": "headrace maintain expires snapshots and compacts; hr.at() reads the past; "
        f"REPAIR STREAM TABLE {name} undoes what others changed",
    }.get(
        verb,
        f"Its rows follow from its query: change its sources and REFRESH STREAM TABLE {name}, "
        f"or ALTER STREAM TABLE {name} SET QUERY AS SELECT …",
    ) + "."


def _hint_of_mirror(verb: str, owner: Owner) -> str:
    if verb.startswith("DROP"):
        return f"ALTER SOURCE {owner.source} DROP TABLES ({owner.name.table}), or DROP SOURCE {owner.source}."
    return (
        f"Change the table in its database; ALTER SOURCE {owner.source} RESNAPSHOT TABLES ({owner.name.table}) copies "
        "it again."
    )
