"""Registers tables in an Iceberg REST catalog by their metadata files, and withdraws them.

No file is touched.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from headrace.errors import EnvironmentFault, HeadraceError, UserError
from headrace.lake.metadata import read_json
from headrace.lake.rest.http_api import VIEW, VIEWS, HttpApi, Json, NoAnswer, Refused
from headrace.lake.rest.side_by_side import side_by_side
from headrace.lake.rest.standing import Standing, standing_of_table, standing_of_view, view_version
from headrace.lakes.lake_server import Key, LakeEntry

_REGISTER = "/v1/{prefix}/namespaces/{namespace}/register"


@dataclass(frozen=True, slots=True)
class Known:
    """The entry of a server under a table's or view's name.

    Args:
        standing: How it stands to ours.
        location: Its metadata file there; None where there is nothing.
    """

    standing: Standing
    location: str | None = None


class Registrar:
    """Registers tables and views in a server.

    Args:
        api: The server.
    """

    def __init__(self, api: HttpApi) -> None:
        self._api = api

    # ---- looking

    def refuse_unable(self, views: Collection[str]) -> None:
        """Refuse a server that cannot register tables, or cannot have the views that there are.

        Raises:
            UserError: `LAKE_UNSUPPORTED`.
        """
        where = f"The catalog server at {self._api.settings.uri}"
        if not self._api.can("POST", _REGISTER):
            raise UserError(
                "LAKE_UNSUPPORTED",
                f"{where} cannot register tables that exist.",
                detail=f"It does not list POST {_REGISTER} among its endpoints.",
                hint="Use a server that has it: without it data would have to be written anew.",
            )
        if views and not self._api.can("POST", VIEWS):
            raise UserError(
                "LAKE_UNSUPPORTED",
                f"{where} has no views, and the project has: {', '.join(sorted(views))}.",
                detail=f"It does not list POST {VIEWS} among its endpoints.",
                hint="Write their texts into the queries that read them and drop them, or use a server that has views.",
            )

    def known(self, entries: Mapping[Key, LakeEntry]) -> dict[Key, Known]:
        """Return what the server has under the names of tables and views of ours."""
        return side_by_side(lambda key: self._known(key, entries[key]), sorted(entries))

    def _known(self, key: Key, entry: LakeEntry) -> Known:
        table, view = self._load(key, "tables"), None
        if table is None and self._api.can("GET", VIEW):
            view = self._load(key, "views")
        found = table or view
        if found is None:
            return Known(Standing.ABSENT)
        location = str(found.get("metadata-location"))
        if (view is not None) is not entry.is_view:
            return Known(Standing.OTHER, location)
        if location == entry.location:
            return Known(Standing.SAME, location)
        ours = read_json(entry.location)
        if entry.is_view:
            return Known(standing_of_view(ours, found["metadata"]), location)
        return Known(standing_of_table(ours, found["metadata"], location), location)

    def _load(self, key: Key, kind: str) -> Json | None:
        return self._api.ask("GET", self._api.resource(key[0], kind, key[1]), absent=(404,))

    # ---- changing

    def create_namespace(self, text: str, properties: Mapping[str, str]) -> bool:
        """Create a namespace; return whether there was none."""
        body: Json = {"namespace": text.split("."), "properties": dict(properties)}
        return self._api.ask("POST", self._api.path("namespaces"), body, absent=(409,)) is not None

    def drop_namespace(self, text: str) -> None:
        """Drop a namespace, unless something is in it."""
        path = self._api.path("namespaces", self._api.namespace(text))
        self._api.ask("DELETE", path, absent=(400, 404, 409))

    def register(self, key: Key, entry: LakeEntry) -> str:
        """Make a table known, or create a view; return the metadata file that the server shows then.

        Raises:
            UserError: `LAKE_NAME_TAKEN`.
            EnvironmentFault: `LAKE_REFUSED`, `LAKE_DENIED`, `LAKE_UNREACHABLE`.
        """
        namespace, name = key
        if entry.is_view:
            path, body = self._api.resource(namespace, "views"), _view_body(name, read_json(entry.location))
        else:
            path = self._api.resource(namespace, "register")
            body = {"name": name, "metadata-location": entry.location}
        try:
            self._api.commit(path, body)
        except Refused as refused:
            if refused.status != 409:
                raise self._refused(key, entry, refused) from None
        except NoAnswer as error:
            return self._after_silence(key, entry, str(error))
        known = self._known(key, entry)  # 409, too: a request that was sent twice by something in between
        if known.standing is Standing.SAME and known.location is not None:
            return known.location
        raise name_taken(self._api.settings.identity, {key: known.standing})

    def withdraw(self, key: Key, location: str, *, is_view: bool) -> None:
        """Drop a table or view from the server, files untouched, if it is still what was registered."""
        kind = "views" if is_view else "tables"
        found = self._load(key, kind)
        if found is not None and found.get("metadata-location") == location:
            query = "" if is_view else "?purgeRequested=false"
            self._api.ask("DELETE", self._api.resource(key[0], kind, key[1]) + query, absent=(404,))

    def withdraw_all(self, registered: Mapping[Key, LakeEntry]) -> dict[Key, HeadraceError]:
        """Withdraw all that was registered; return what could not be, with the reason."""
        found = side_by_side(lambda key: _failure(self._withdrawing(key, registered[key])), sorted(registered))
        return {key: error for key, error in found.items() if error is not None}

    def _withdrawing(self, key: Key, entry: LakeEntry) -> Callable[[], None]:
        return lambda: self.withdraw(key, entry.location, is_view=entry.is_view)

    def _after_silence(self, key: Key, entry: LakeEntry, detail: str) -> str:
        known = self._known(key, entry)
        if known.standing is Standing.SAME and known.location is not None:
            return known.location
        raise self._api.unreachable(detail)

    def _refused(self, key: Key, entry: LakeEntry, refused: Refused) -> EnvironmentFault:
        fault = self._api.fault(refused)
        if fault.code != "LAKE_REFUSED":
            return fault
        return EnvironmentFault(
            "LAKE_REFUSED",
            f"The catalog server at {self._api.settings.uri} does not take {'.'.join(key)}.",
            detail=str(refused),
            hint=f"Its files are at {entry.location.rpartition('/metadata/')[0]}. The server must be able to read "
            "them, and its warehouse must allow tables there.",
        )


def name_taken(server: str, taken: Mapping[Key, Standing]) -> UserError:
    """Return the error for names under which a server has something else."""
    names = [".".join(key) for key in sorted(taken)]
    listed = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
    return UserError(
        "LAKE_NAME_TAKEN",
        f"The REST catalog {server} has something else under names of this project: {listed}.",
        detail="Another table or view, or the same table with snapshots that this project does not know.",
        hint="Rename or drop it there, without PURGE: a purge would delete files that may be this project's.",
    )


def _view_body(name: str, view: Json) -> Json:
    version, schema = view_version(view)
    first = {**version, "version-id": 1}
    return {"name": name, "schema": schema, "view-version": first, "properties": view.get("properties") or {}}


def _failure(do: Callable[[], None]) -> HeadraceError | None:
    try:
        do()
    except HeadraceError as error:
        return error
    return None
