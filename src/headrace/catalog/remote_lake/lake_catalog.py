"""The lake, in this database or in another server; a part of `Catalog`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from headrace.catalog.publishing import pointers
from headrace.catalog.records import ForeignWrite, Lease, Pointer
from headrace.catalog.remote_lake import home, intents, relocation
from headrace.catalog.remote_lake.home import LakeHome
from headrace.catalog.remote_lake.remote_lake import RemoteLake
from headrace.catalog.state.answers import Answers
from headrace.lakes.lake_server import Key, LakeServer, one_by_one
from headrace.names import LAKE, TableName


class LakeCatalog(Answers):
    """Answers that look at a lake in another server first, and which lake the project is in."""

    _home: LakeHome
    _server: LakeServer | None
    _remote: RemoteLake | None

    def bind_lake(self, identity: str | None) -> None:
        """Hold the project to the lake that it began in, and this object to it.

        Where the project is moved meanwhile, whatever is leased or published here is refused (`LAKE_CHANGED`).

        Args:
            identity: The server that the settings name; None for this database.

        Raises:
            UserError: `LAKE_CHANGED` when its tables are in another one.
        """
        self._home.bind(identity)

    def refuse_other_lake(self, identity: str | None) -> None:
        """Refuse what `bind_lake` would refuse, and hold nothing to anything."""
        with self._database.read() as connection:
            home.refuse_other(connection, identity)

    def lake_identity(self, *, settled: bool = False) -> str | None:
        """Return which server keeps the project's lake; None where that is this database.

        Args:
            settled: Wait for a move that is being committed, so that the answer is final.
        """
        if settled:
            return relocation.settled(self._database)
        with self._database.read() as connection:
            return home.read(connection)

    def relocate(
        self,
        seen: Mapping[TableName, str],
        shown: Mapping[TableName, str],
        *,
        to: str | None,
        held: Sequence[Lease],
        look: Callable[[Collection[Key]], Mapping[Key, str]] | None = None,
    ) -> set[TableName]:
        """Have the project go by another lake from now on, unless the present one has changed.

        Args:
            seen: Metadata files that the present lake showed; of all its tables where that is this database.
            shown: Those that the other one shows of the same tables; all others are the project's no more.
            to: The server that keeps the other one; None for this database.
            held: Leases of the caller on all that is published here.
            look: Asks the server that keeps the present one; None where that is this database.

        Returns:
            Tables that changed, came or went since they were seen; where there are any nothing is done.

        Raises:
            EnvironmentFault: `LEASE_LOST`.
            UserError: `LAKE_CHANGED` when somebody else has moved it.
        """
        before, after = ({pointers.key_of(n): at for n, at in of.items()} for of in (seen, shown))
        check = self._home.check
        differing = relocation.relocate(self._database, held, before, after, check, to=to, look=look)
        return {pointers.name_of(key) for key in differing}

    def pending_publications(self) -> set[TableName]:
        """Return the tables of publications that are being shown in another server."""
        with self._database.read() as connection:
            return {pointers.name_of(key) for key in intents.keys(connection)}

    def lake_namespaces(self) -> dict[str, dict[str, str]]:
        """Return namespaces of `lake` that this database has, with their properties."""
        with self._database.read() as connection:
            return pointers.namespace_properties(connection)

    def look(self, names: Iterable[TableName] | None = None) -> None:
        """Take over what a lake in another server shows; nothing to do for one in this database.

        Before `reading()`, by whoever depends on what others wrote there.

        Args:
            names: The tables; None for all there are.
        """
        if self._remote is not None:
            self._remote.look(names)

    def look_at_stream_table(self, name: TableName) -> None:
        """Take over what a lake in another server shows of a stream table, if it is one."""
        if self._remote is not None and (table := self.find_stream_table(name)) is not None:
            self._remote.look(table.stored)

    def look_at_known(self) -> None:
        """Take over what a lake in another server shows of all relations that are known here."""
        if self._remote is not None:
            self._remote.look(relation.name for relation in self.relations() if relation.name.catalog == LAKE)

    def look_at_stored(self) -> None:
        """Take over what a lake in another server shows of the tables that Headrace has published."""
        if self._remote is not None:
            self._remote.look_at_stored()

    def pointers(self, catalog: str = LAKE, names: Iterable[TableName] | None = None) -> dict[TableName, Pointer]:
        """Return metadata pointers of one Iceberg catalog, as they are now.

        Absent tables are left out.
        """
        names = None if names is None else tuple(names)
        if catalog == LAKE:
            self.look(names)
        return super().pointers(catalog, names)

    def foreign_writes(self, names: Iterable[TableName] | None = None) -> tuple[ForeignWrite, ...]:
        """Return stored tables that somebody else wrote to in `lake` since Headrace published them."""
        names = None if names is None else tuple(names)
        if names is None:
            self.look_at_stored()
        else:
            self.look(names)
        return super().foreign_writes(names)

    def files_kept_by_server(self, names: Collection[TableName]) -> frozenset[TableName]:
        """Return the tables whose files nobody may delete but the server that has the lake."""
        if self._server is None:
            return frozenset()
        return frozenset(map(pointers.name_of, self._server.keeping_files(set(map(pointers.key_of, names)))))

    def moves_together(self) -> bool:
        """Return whether all tables of a publication are shown at once; some REST catalogs do not."""
        return self._server is None or self._server.at_once()

    def refuse_one_by_one(self) -> None:
        """Refuse deployments where the lake is in a server that changes one table at a time.

        Raises:
            UserError: `LAKE_UNSUPPORTED`.
        """
        if not self.moves_together():
            raise one_by_one()

    def namespaces(self) -> set[str]:
        """Return the namespaces of `lake`, as their texts."""
        return super().namespaces() if self._remote is None else self._remote.namespaces()
