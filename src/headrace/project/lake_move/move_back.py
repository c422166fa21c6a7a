"""Moves a project from a REST catalog back to its own database.

What the server shows is taken over; in the server nothing is changed. Which of its tables are the project's is known
from what Headrace publishes, from what stream tables read, and from where files are: all else there is somebody else's,
and is left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from headrace.catalog import Catalog, Lease, Pointer
from headrace.definitions.details import from_json
from headrace.lake.metadata import read_json
from headrace.lake.rest.side_by_side import side_by_side
from headrace.lakes.lake_server import Key, LakeServer
from headrace.names import CLOCK, LAKE, TableName
from headrace.project.lake_move.move_forth import ROUNDS
from headrace.project.lake_move.move_guards import refuse_unpublished, restless, wait_for_publications


class MoveBack:
    """One move.

    Args:
        catalog: The project's, opened as one whose lake is in the server.
        server: The server.
        warehouse: Where the project's tables are made.

    Attributes:
        pointers: Tables and views that move, as last seen.
        left: Tables of others that were looked at once.
    """

    def __init__(self, catalog: Catalog, server: LakeServer, warehouse: str) -> None:
        self._catalog = catalog
        self._server = server
        self._warehouse = warehouse
        self.pointers: dict[TableName, Pointer] = {}
        self.left: list[TableName] = []

    def plan(self) -> None:
        """Find out what moves, and that its metadata can be read; change nothing.

        Raises:
            EnvironmentFault: `METADATA_UNREADABLE`.
        """
        with self._catalog.reading() as reader:
            known, streams, sources = reader.pointers(LAKE, None), reader.stream_tables(), reader.sources()
            read = {relation.name for relation in reader.relations() if relation.name.catalog == LAKE}
        own = {stored for table in streams for stored in table.stored}
        own |= {stored for source in sources for mirror in source.mirrors for stored in mirror.stored}
        views = {name for table in streams for name in from_json(table.details).views}
        inside = {name for name, at in known.items() if _is_inside(at.metadata_location, self._warehouse)}
        wanted = (own | read | views | inside) - {CLOCK}
        self._catalog.look(wanted)
        self.pointers = self._catalog.pointers(LAKE, wanted)
        self.left = sorted(known.keys() - wanted)
        side_by_side(read_json, sorted(at.metadata_location for at in self.pointers.values()))

    def carry_out(self, leases: Callable[[], Sequence[Lease]]) -> None:
        """Have the project go by its own database.

        Raises:
            HeadraceError: Something failed; nothing was changed.
        """
        changed: set[TableName] = set()
        for _ in range(ROUNDS):
            wait_for_publications(self._catalog)
            self.plan()
            refuse_unpublished(self._catalog, leases)
            seen = {name: at.metadata_location for name, at in self.pointers.items()}
            changed = self._catalog.relocate(seen, seen, to=None, held=leases(), look=self._look)
            if not changed:
                return
        raise restless(sorted(map(str, changed)))

    def _look(self, keys: Collection[Key]) -> Mapping[Key, str]:
        return {key: entry.location for key, entry in self._server.entries(keys).items()}


def _is_inside(location: str, warehouse: str) -> bool:
    folder = warehouse.removeprefix("file://").removeprefix("file:").rstrip("/")
    return location.removeprefix("file://").removeprefix("file:").startswith(f"{folder}/")
