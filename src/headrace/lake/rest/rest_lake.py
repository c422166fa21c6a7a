"""Publishes into an Iceberg REST catalog, in one request where the server can.

New tables are registered by their staged metadata files, whole. Tables that go on receive the staged snapshots in one
`transactions/commit`, the decisive step: it requires that each table's main branch is where the refresh found it. A
table that is made anew, with another UUID, is dropped and registered again, files untouched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from urllib.parse import quote

from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.lake.metadata import read_json
from headrace.lake.rest import table_changes
from headrace.lake.rest.http_api import VIEW, VIEWS, HttpApi, Json, NoAnswer, NoRoute, NotSent, Refused
from headrace.lake.rest.side_by_side import side_by_side
from headrace.lake.rest.table_changes import PUBLICATION
from headrace.lakes.lake_server import Key, LakeEntry, LakeMove
from headrace.names import SYSTEM_NAMESPACE

UNKNOWN = "PUBLISH_OUTCOME_UNKNOWN"

_TRANSACTIONS = "/v1/{prefix}/transactions/commit"


class RestLake:
    """A lake in a REST catalog.

    Args:
        api: The server.
    """

    def __init__(self, api: HttpApi) -> None:
        self._api = api

    # ---- looking

    def described(self) -> tuple[str, bool]:
        """Return what the server is in a sentence, and whether it changes several tables at once."""
        spaces, whole = len(self.namespaces()), self.at_once()
        how = "changes several tables in one request" if whole else "changes one table at a time"
        return f"REST catalog {self._api.settings.identity}, {spaces} namespaces; {how}", whole

    def at_once(self) -> bool:
        """Return whether several tables are changed in one request."""
        return self._api.can("POST", _TRANSACTIONS)

    def entries(self, keys: Collection[Key]) -> dict[Key, LakeEntry]:
        """Return tables and views as they are now; absent ones are left out."""
        found = side_by_side(self._entry, sorted(keys))
        return {key: entry for key, entry in found.items() if entry is not None}

    def keeping_files(self, keys: Collection[Key]) -> set[Key]:
        """Return the tables whose files only the server may delete; see `LakeServer`."""
        found = side_by_side(self._load, sorted(keys))
        return {key for key, table in found.items() if table is not None and _keeps_files(table["metadata"])}

    def names(self) -> set[Key]:
        """Return the names of all tables and views."""
        kinds = ["tables", *(["views"] if self._api.can("GET", VIEWS) else [])]
        wanted = [(text, kind) for text in sorted(self.namespaces()) for kind in kinds]
        listed = side_by_side(lambda one: self._pages(self._api.resource(one[0], one[1]), "identifiers"), wanted)
        return {(".".join(each["namespace"]), each["name"]) for found in listed.values() for each in found}

    def namespaces(self) -> set[str]:
        """Return the texts of all namespaces."""
        found: set[str] = set()
        open_ones: list[tuple[str, ...]] = [()]
        while open_ones:
            parent = open_ones.pop()
            for levels in self._namespaces_in(parent):
                if tuple(levels) not in open_ones and ".".join(levels) not in found:
                    found.add(".".join(levels))
                    open_ones.append(tuple(levels))
        return found

    def _namespaces_in(self, parent: tuple[str, ...]) -> list[Json]:
        """Return the namespaces directly in one."""
        path = self._api.path("namespaces")
        if not parent:
            return self._pages(path, "namespaces")
        try:
            return self._pages(f"{path}?parent={self._api.namespace('.'.join(parent))}", "namespaces")
        except NoRoute:
            # of a server that knows no namespaces in namespaces; or of a gateway, which has no others either
            self._pages(path, "namespaces")
            return []

    def _pages(self, path: str, field: str) -> list[Json]:
        found, token = list[Json](), ""
        while True:
            page = f"{'&' if '?' in path else '?'}pageToken={quote(token, safe='')}" if token else ""
            answer = self._api.ask("GET", path + page, absent=(404,)) or {}
            found += answer.get(field) or []
            token = answer.get("next-page-token") or ""
            if not token:
                return found

    def _entry(self, key: Key) -> LakeEntry | None:
        table = self._load(key)
        if table is not None:
            return LakeEntry(str(table["metadata-location"]))
        if not self._api.can("GET", VIEW):
            return None
        view = self._api.ask("GET", self._api.resource(key[0], "views", key[1]), absent=(404,))
        return None if view is None else LakeEntry(str(view["metadata-location"]), is_view=True)

    def _load(self, key: Key) -> Json | None:
        """Return a table as the server has it; None where there is none."""
        path = f"{self._api.resource(key[0], 'tables', key[1])}?snapshots=refs"
        return self._api.ask("GET", path, absent=(404,))

    # ---- publishing

    def move(self, publication: str, moves: Sequence[LakeMove]) -> dict[Key, str]:
        """Show staged contents; return what the lake shows then; see `LakeServer`."""
        sorted_moves = _Moves(moves)
        registered: list[LakeMove] = []
        try:
            for new in sorted_moves.created:
                self._register(new)
                registered.append(new)
            if sorted_moves.changed:
                self._commit(publication, sorted_moves)
        except (Refused, NotSent, HeadraceError) as error:
            if isinstance(error, HeadraceError) and error.code == UNKNOWN:
                raise
            if not self._was_repeated(error, publication, moves):
                self._undo(registered)
                raise self._certain(error, moves) from None
        except NoAnswer as error:
            raise _unknown(str(error)) from None
        try:
            return self.complete(publication, moves)
        except HeadraceError as error:  # the decisive step is done
            raise _unknown(error.message) from error

    def _was_repeated(self, error: Exception, publication: str, moves: Sequence[LakeMove]) -> bool:
        """Return whether a refusal is that of a request which something in between sent twice."""
        if not isinstance(error, Refused) or error.status != 409:
            return False
        try:
            return self.moved(publication, moves)
        except HeadraceError as silent:
            raise _unknown(silent.message) from None

    def moved(self, publication: str, moves: Sequence[LakeMove]) -> bool:
        """Return whether a publication's decisive step has happened, by reading the tables."""
        sorted_moves = _Moves(moves)
        if sorted_moves.changed:
            return any(self._carries(publication, move.key) for move, _, _ in sorted_moves.changed)
        if sorted_moves.created:
            return all(self._uuid(move.key) == sorted_moves.uuid_of(move) for move in sorted_moves.created)
        return any(self._uuid(move.key) != sorted_moves.former_uuid(move) for move in sorted_moves.others)

    def complete(self, publication: str, moves: Sequence[LakeMove]) -> dict[Key, str]:
        """Do what is left of a publication that has happened; return what the lake shows."""
        sorted_moves = _Moves(moves)
        for new in sorted_moves.created:
            if self._load(new.key) is None:
                self._checked(partial(self._register, new))
        for move, before, after in sorted_moves.changed:
            if not self._carries(publication, move.key):
                # a server that moves table after table was killed in between
                self._checked(partial(self._commit_one, publication, move, before, after))
        for move in sorted_moves.others:
            if move.after is None:
                self._drop(move.key)
            elif self._uuid(move.key) != sorted_moves.uuid_of(move):
                self._drop(move.key)
                self._checked(partial(self._register, move))
        return self._showing(publication, sorted_moves)

    def _showing(self, publication: str, moves: _Moves) -> dict[Key, str]:
        """Return the metadata files of the tables that show a publication.

        One that was written by somebody else in between is left out, so that it is found to be.
        """
        carried = {move.key for move, _, _ in moves.changed}
        uuids = {move.key: moves.uuid_of(move) for move in (*moves.created, *moves.others) if move.after is not None}
        found = side_by_side(self._load, sorted(carried | uuids.keys()))
        return {
            key: str(table["metadata-location"])
            for key, table in found.items()
            if table is not None and (_carries(publication, table) if key in carried else _uuid(table) == uuids[key])
        }

    def put_back(self, publication: str, moves: Sequence[LakeMove]) -> dict[Key, str] | None:
        """Take back what a publication prepared, and mark its tables against it; see `LakeServer`."""
        sorted_moves, marked = _Moves(moves), list[Key]()
        for move, before, _ in sorted_moves.changed:
            required, marks = table_changes.put_back(before, publication)
            try:
                if marks:
                    self._api.commit(
                        self._api.resource(move.key[0], "tables", move.key[1]), _change(move.key, required, marks)
                    )
                    marked.append(move.key)
            except Refused as refused:
                table = self._load(move.key)
                if table is not None and _carries(publication, table):
                    return None
                if refused.status not in (404, 409):  # gone, or written by somebody else: it cannot be moved, either
                    raise self._api.fault(refused) from None
                if table is not None and table_changes.is_put_back(before, table["metadata"], publication):
                    marked.append(move.key)  # by a try that was interrupted, or this request was sent twice
            except NoAnswer as error:
                raise self._api.unreachable(str(error)) from None
        self._withdraw(sorted_moves.created)
        return {key: entry.location for key, entry in self.entries(marked).items()}

    def restore(self, moves: Sequence[LakeMove]) -> dict[Key, str]:
        """Show published contents again, in place of somebody else's; see `LakeServer`."""
        sorted_moves = _Moves(moves)
        for new in sorted_moves.created:
            self._unchanged(new, partial(self._register, new))
        anew = sorted_moves.others
        for move, found, published in sorted_moves.changed:
            if not table_changes.can_follow(found, published):
                anew = [*anew, move]
                continue
            name = (published.get("properties") or {}).get(PUBLICATION, "")
            self._unchanged(move, partial(self._commit_one, name, move, found, published, expire=False))
        for other in anew:
            self._drop(other.key)
            self._unchanged(other, partial(self._register, other))
        shown = self.entries([move.key for move in moves])
        return {key: entry.location for key, entry in shown.items()}

    # ---- requests

    def _commit(self, publication: str, moves: _Moves) -> None:
        """Move all tables that go on, in one request where the server has it."""
        changes = [_described(publication, *each) for each in moves.changed]
        if len(changes) > 1 and self.at_once():
            self._api.commit(self._api.path("transactions", "commit"), {"table-changes": changes})
            return
        if sum(move.key[0] != SYSTEM_NAMESPACE for move, _, _ in moves.changed) > 1:
            raise self._without_transactions()
        begun = False
        # what only Headrace reads comes first, and what everybody reads last
        for move, before, after in sorted(moves.changed, key=lambda each: each[0].key[0] != SYSTEM_NAMESPACE):
            try:
                self._commit_one(publication, move, before, after)
            except (Refused, NoAnswer) as error:
                if begun:
                    raise _unknown(str(error)) from None
                raise
            begun = True

    def _commit_one(self, publication: str, move: LakeMove, before: Json, after: Json, *, expire: bool = True) -> None:
        change = _described(publication, move, before, after, expire=expire)
        self._api.commit(self._api.resource(move.key[0], "tables", move.key[1]), change)

    def _register(self, move: LakeMove) -> None:
        """Make a table known by its metadata file, and its namespace where it is missing."""
        try:
            self._register_in_namespace(move)
        except Refused as refused:
            if refused.status != 404 or refused.kind != "NoSuchNamespaceException":
                raise
            self._create_namespace(move.key[0])
            self._register_in_namespace(move)

    def _register_in_namespace(self, move: LakeMove) -> None:
        namespace, table = move.key
        try:
            self._api.commit(
                self._api.resource(namespace, "register"), {"name": table, "metadata-location": move.after}
            )
        except Refused as refused:
            if refused.status != 409 or not self._shows(move):  # one that was sent twice by something in between
                raise

    def _shows(self, move: LakeMove) -> bool:
        try:
            table = self._load(move.key)
        except HeadraceError as error:
            raise NoAnswer(error.message) from None
        return table is not None and table_changes.show_the_same(table["metadata"], read_json(str(move.after)))

    def _create_namespace(self, text: str) -> None:
        self._api.ask("POST", self._api.path("namespaces"), {"namespace": text.split(".")}, absent=(409,))

    def _drop(self, key: Key) -> None:
        """Drop a table from the catalog; its files stay, for readers that are at it."""
        self._api.ask("DELETE", f"{self._api.resource(key[0], 'tables', key[1])}?purgeRequested=false", absent=(404,))

    def _undo(self, registered: Sequence[LakeMove]) -> None:
        """Withdraw what was registered; whether that worked must be known."""
        try:
            self._withdraw(registered)
        except HeadraceError as error:
            raise _unknown(error.message) from error

    def _withdraw(self, moves: Iterable[LakeMove]) -> None:
        """Drop tables that were registered for a publication that comes to nothing."""
        for move in moves:
            if move.after is not None and self._uuid(move.key) == read_json(move.after)["table-uuid"]:
                self._drop(move.key)

    def _checked(self, request: Callable[[], None]) -> None:
        """Send what has to be done after the decisive step; what somebody else did instead stays."""
        try:
            request()
        except Refused as refused:
            if refused.status != 409:
                raise self._api.fault(refused) from None
        except NoAnswer as error:
            raise self._api.unreachable(str(error)) from None

    def _unchanged(self, move: LakeMove, request: Callable[[], None]) -> None:
        """Send what repairs a table, unless somebody else was there once more."""
        try:
            request()
        except (Refused, NotSent) as error:
            raise self._certain(error, [move]) from None
        except NoAnswer as error:
            raise self._api.unreachable(str(error)) from None

    def _carries(self, publication: str, key: Key) -> bool:
        table = self._load(key)
        return table is not None and _carries(publication, table)

    def _uuid(self, key: Key) -> str | None:
        table = self._load(key)
        return None if table is None else _uuid(table)

    # ---- errors

    def _certain(self, error: Exception, moves: Sequence[LakeMove]) -> Exception:
        """Return the error for a failure that surely changed nothing."""
        if isinstance(error, NotSent):
            return self._api.unreachable(str(error))
        if not isinstance(error, Refused):
            return error
        refused = error
        if refused.status != 409:
            return self._api.fault(refused)
        names = ", ".join(sorted(".".join(filter(None, move.key)) for move in moves))
        return EnvironmentFault(
            "FOREIGN_WRITER",
            f"Another program than Headrace wrote to {names}; nothing was published.",
            detail=str(refused),
            hint="Stream tables are written by Headrace alone. Find and stop the writer, then refresh the table with "
            "FULL.",
        )

    def _without_transactions(self) -> UserError:
        return UserError(
            "LAKE_UNSUPPORTED",
            f"The catalog server at {self._api.settings.uri} cannot change several tables at once.",
            detail="It does not list POST /v1/{prefix}/transactions/commit among its endpoints.",
            hint='Use a server that has it, or publish stream tables one by one: diamond_consistency = "none", '
            "no deployments.",
        )


class _Moves:
    """Moves by what they do, with the metadata that says so."""

    def __init__(self, moves: Sequence[LakeMove]) -> None:
        self.created = [move for move in moves if move.before is None]
        self.changed: list[tuple[LakeMove, Json, Json]] = []
        self.others: list[LakeMove] = []
        self._former: dict[Key, str] = {}
        for move in moves:
            if move.before is None:
                continue
            before, after = read_json(move.before), None if move.after is None else read_json(move.after)
            self._former[move.key] = before["table-uuid"]
            if after is not None and before["table-uuid"] == after["table-uuid"]:
                self.changed.append((move, before, after))
            else:
                self.others.append(move)

    def uuid_of(self, move: LakeMove) -> str:
        """Return the UUID of what is shown afterwards."""
        return str(read_json(str(move.after))["table-uuid"])

    def former_uuid(self, move: LakeMove) -> str:
        """Return the UUID of what was shown before."""
        return self._former[move.key]


def _carries(publication: str, table: Json) -> bool:
    return (table["metadata"].get("properties") or {}).get(PUBLICATION) == publication


def _uuid(table: Json) -> str:
    return str(table["metadata"]["table-uuid"])


def _keeps_files(metadata: Json) -> bool:
    return str((metadata.get("properties") or {}).get("gc.enabled")).lower() == "false"


def _described(publication: str, move: LakeMove, before: Json, after: Json, *, expire: bool = True) -> Json:
    required = table_changes.requirements(before, publication)
    return _change(move.key, required, table_changes.updates(before, after, publication, expire=expire))


def _change(key: Key, required: list[Json], updates: list[Json]) -> Json:
    identifier = {"namespace": key[0].split("."), "name": key[1]}
    return {"identifier": identifier, "requirements": required, "updates": updates}


def _unknown(detail: str) -> EnvironmentFault:
    return EnvironmentFault(
        "PUBLISH_OUTCOME_UNKNOWN",
        "The catalog server did not say whether it has published.",
        detail=detail,
        hint="Refresh again: Headrace reads the tables first, and publishes only what was not.",
        retryable=True,
    )
