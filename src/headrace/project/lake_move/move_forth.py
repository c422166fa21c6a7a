"""Moves a project from its own database to a REST catalog.

Its tables are registered there, and then it goes by that catalog. Until the one transaction at the end nothing in the
project changes. What was registered before a failure is withdrawn; what a killed process left is found by the next,
because it is the same table by UUID and contents.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence

from headrace.catalog import Catalog, Lease
from headrace.errors import HeadraceError
from headrace.events import Events, Notice
from headrace.lake.metadata import read_json
from headrace.lake.rest.registrar import Known, Registrar, name_taken
from headrace.lake.rest.side_by_side import side_by_side
from headrace.lake.rest.standing import Standing
from headrace.lakes.lake_server import Key, LakeEntry
from headrace.names import LAKE, TableName
from headrace.project.lake_move.move_guards import refuse_unpublished, restless

ROUNDS = 5
"""Rounds of registering tables; each after the first is for those written meanwhile."""

_EVERY = 2.0
"""Seconds between two words on how far it is."""

ACTIONS = {
    Standing.ABSENT: "registered",
    Standing.BEHIND: "registered anew",
    Standing.SAME: "there already",
    Standing.OTHER: "taken",
}


class MoveForth:
    """One move.

    Args:
        catalog: The project's, opened as one whose lake is in the database.
        registrar: The server.
        identity: What the server is called in the catalog.
        events: Hears how far it is.

    Attributes:
        entries: Tables and views that move, as last seen.
        actions: What was done, or is to be done, with each.
        namespaces: Namespaces that were created.
    """

    def __init__(self, catalog: Catalog, registrar: Registrar, identity: str, events: Events) -> None:
        self._catalog = catalog
        self._registrar = registrar
        self._identity = identity
        self._events = events
        self._shown: dict[Key, str] = {}
        self._registered: dict[Key, LakeEntry] = {}
        self._lock = threading.Lock()
        self._said = time.monotonic()
        self.entries: dict[Key, LakeEntry] = {}
        self.actions: dict[Key, str] = {}
        self.namespaces: list[str] = []

    def plan(self) -> dict[Key, Known]:
        """Find out what is to be registered; change nothing.

        Raises:
            UserError: `LAKE_NAME_TAKEN`, `LAKE_UNSUPPORTED`.
            EnvironmentFault: `METADATA_UNREADABLE`.
        """
        self.entries = self._present()
        side_by_side(read_json, sorted(entry.location for entry in self.entries.values()))
        self._registrar.refuse_unable([".".join(key) for key, entry in self.entries.items() if entry.is_view])
        return self._compared(self.entries)

    def carry_out(self, leases: Callable[[], Sequence[Lease]]) -> None:
        """Register everything, and have the project go by the server.

        Raises:
            HeadraceError: Something failed; what was registered is withdrawn.
        """
        refuse_unpublished(self._catalog, leases)
        known = self.plan()
        try:
            self._create_namespaces()
            for _ in range(ROUNDS):
                self._register(known)
                if not (again := self._relocated(leases)):
                    return
                known = self._prepared_again(again)
            raise restless(sorted(map(str, again)))
        except HeadraceError:
            if not self._take_back():
                raise
        except BaseException:
            self._take_back()
            raise

    def _present(self) -> dict[Key, LakeEntry]:
        with self._catalog.reading() as reader:
            found = reader.pointers(LAKE, None)
        return {_key(name): LakeEntry(at.metadata_location, at.is_view) for name, at in found.items()}

    def _compared(self, entries: Mapping[Key, LakeEntry]) -> dict[Key, Known]:
        known = self._registrar.known(entries)
        if taken := {key: of.standing for key, of in known.items() if of.standing is Standing.OTHER}:
            raise name_taken(self._identity, taken)
        self.actions |= {key: ACTIONS[of.standing] for key, of in known.items()}
        return known

    def _create_namespaces(self) -> None:
        properties = self._catalog.lake_namespaces()
        for name in sorted({parent for text in properties for parent in _with_parents(text)}):
            if self._registrar.create_namespace(name, properties.get(name, {})):
                self.namespaces.append(name)

    def _register(self, known: Mapping[Key, Known]) -> None:
        def register(key: Key) -> str:
            entry, found = self.entries[key], known[key]
            if found.standing is Standing.SAME and found.location is not None:
                return found.location
            if found.standing is Standing.BEHIND and found.location is not None:
                self._registrar.withdraw(key, found.location, is_view=entry.is_view)
            shown = self._registrar.register(key, entry)
            self._note(key, LakeEntry(shown, entry.is_view))
            return shown

        self._shown |= side_by_side(register, sorted(known))

    def _note(self, key: Key, shown: LakeEntry) -> None:
        with self._lock:
            self._registered[key] = shown
            done, now = len(self._registered), time.monotonic()
            if now - self._said >= _EVERY:
                self._said = now
                self._events.emit(Notice(f"{done} of {len(self.entries)} tables are registered."))

    def _relocated(self, leases: Callable[[], Sequence[Lease]]) -> set[TableName]:
        seen = {_name(key): entry.location for key, entry in self.entries.items()}
        shown = {_name(key): location for key, location in self._shown.items()}
        return self._catalog.relocate(seen, shown, to=self._identity, held=leases())

    def _prepared_again(self, changed: set[TableName]) -> dict[Key, Known]:
        """Look again at tables that were written, made or dropped meanwhile."""
        keys, present = {_key(name) for name in changed}, self._present()
        for key in keys - present.keys():
            self._withdraw(key)
            for of in (self.entries, self._shown, self.actions):
                of.pop(key, None)
        if made := {key for key in keys & present.keys() if key not in self.entries}:
            self._registrar.refuse_unable([".".join(key) for key in made if present[key].is_view])
        for key in keys & self.entries.keys():
            self._withdraw(key)
        again = {key: present[key] for key in keys & present.keys()}
        self.entries |= again  # only these: what has changed since is found by the next transaction
        self._create_namespaces()
        return self._compared(again)

    def _withdraw(self, key: Key) -> None:
        if (mine := self._registered.pop(key, None)) is not None:
            self._registrar.withdraw(key, mine.location, is_view=mine.is_view)

    def _take_back(self) -> bool:
        """Withdraw what was registered; return whether the project goes by it, and it must stay."""
        try:
            if self._catalog.lake_identity(settled=True) == self._identity:
                return True  # the database moved it, and its answer was lost
        except HeadraceError as error:
            self._events.emit(Notice(f"What was registered stays in the server: {error.message}"))
            return False
        left = self._registrar.withdraw_all(self._registered)
        for name in reversed(self.namespaces):
            try:
                self._registrar.drop_namespace(name)
            except HeadraceError as error:
                self._events.emit(Notice(f"Namespace {name} stays in the server: {error.message}"))
        if left:
            why = next(iter(left.values())).message
            self._events.emit(Notice(f"{len(left)} tables stay registered in the server, to be found again: {why}"))
        return False


def _with_parents(text: str) -> list[str]:
    levels = text.split(".")
    return [".".join(levels[:depth]) for depth in range(1, len(levels) + 1)]


def _key(name: TableName) -> Key:
    return name.namespace_text, name.table


def _name(key: Key) -> TableName:
    return TableName(LAKE, tuple(key[0].split(".")), key[1])
