"""A lake that a catalog server keeps, as a protocol: what is asked of it and sent to it.

The rooms of the catalog and of the lake do not know each other; both know this.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from headrace.errors import UserError

CHECK_SERVER = "Check that it runs and that this machine reaches it; what is published stays as it is."
"""Hint where a server does not answer Headrace or Spark."""

SERVERS_OWN = "What the server says is its own; check namespace, warehouse and rights there."
"""Hint where it refuses a request of either."""

Key = tuple[str, str]
"""Namespace text and table name: what a stored table is called in both catalogs."""


@dataclass(frozen=True, slots=True)
class LakeMove:
    """The change that a publication makes to one table of the lake.

    Args:
        key: The table.
        before: The metadata file that the lake shows now; None where there is no such table.
        after: The staged metadata file whose contents it is to show; None for a table that is dropped.
    """

    key: Key
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class LakeEntry:
    """A table or view as the server has it.

    Args:
        location: Its metadata file.
        is_view: Whether it is a view.
    """

    location: str
    is_view: bool = False


class LakeServer(Protocol):
    """A catalog server with the tables that everybody reads."""

    def at_once(self) -> bool:
        """Return whether several tables are changed in one request."""
        ...

    def entries(self, keys: Collection[Key]) -> dict[Key, LakeEntry]:
        """Return tables and views as they are now; absent ones are left out."""
        ...

    def keeping_files(self, keys: Collection[Key]) -> set[Key]:
        """Return the tables whose files only the server may delete: `gc.enabled` is false there."""
        ...

    def names(self) -> set[Key]:
        """Return the names of all tables and views."""
        ...

    def namespaces(self) -> set[str]:
        """Return the texts of all namespaces."""
        ...

    def move(self, publication: str, moves: Sequence[LakeMove]) -> dict[Key, str]:
        """Show staged contents; return the metadata files that the lake shows then.

        Args:
            publication: Its UUID, which is written into the tables.
            moves: All tables of the publication that change.

        Raises:
            EnvironmentFault: `FOREIGN_WRITER` and other certain failures, after which nothing is shown;
                `PUBLISH_OUTCOME_UNKNOWN` where it may have happened.
        """
        ...

    def moved(self, publication: str, moves: Sequence[LakeMove]) -> bool:
        """Return whether a publication's decisive step has happened, by reading the tables."""
        ...

    def complete(self, publication: str, moves: Sequence[LakeMove]) -> dict[Key, str]:
        """Do what is left of a publication that has happened; return what the lake shows."""
        ...

    def put_back(self, publication: str, moves: Sequence[LakeMove]) -> dict[Key, str] | None:
        """Take back what a publication prepared, and see to it that it cannot happen any more.

        Returns:
            The metadata files of tables that were marked so; None where it has happened meanwhile.
        """
        ...

    def restore(self, moves: Sequence[LakeMove]) -> dict[Key, str]:
        """Show published contents again, in place of what is there; return the new files."""
        ...


def one_by_one() -> UserError:
    """Return the error for deployments in a server that changes one table at a time."""
    return UserError(
        "LAKE_UNSUPPORTED",
        "Deployments are not done in a REST catalog that changes one table at a time.",
        detail="It does not list POST /v1/{prefix}/transactions/commit among its endpoints.",
        hint="Use a server that has it, or the embedded lake (a project without a section [lake]).",
    )
