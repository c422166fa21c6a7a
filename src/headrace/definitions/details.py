"""Details of a stream table's definition beyond its text, as stored in the catalog.

State must stay readable by every later release, so a definition holds the user's text and plain facts, never a
compiled plan: the plan is compiled again from the text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, TypeVar

from headrace.algebra.schema import Column
from headrace.catalog.definitions.stored_details import unreadable
from headrace.compiler.layout import LAYOUT
from headrace.lake.metadata import TableMeta
from headrace.names import TableName
from headrace.reasons import FullReason
from headrace.results.refresh_results import RefusalInfo
from headrace.schedule.options import Ties
from headrace.semantics import Semantics
from headrace.sql.refinements import Refinement, refined

Found = TypeVar("Found")

Keys = tuple[tuple[str, ...], ...]
"""Several keys of one relation, each by its columns."""


@dataclass(frozen=True, slots=True)
class SourceUse:
    """A source and the columns of it that a query reads.

    Args:
        name: The source.
        columns: Used columns with the types they had; empty when only rows are counted.
        all: Names of all columns the source had, which `SELECT *` keeps meaning.
        ids: Iceberg field ids of `columns`, each followed by those of its nested fields: what was dropped and added
            again has another one, and other values in the rows that were there before. Empty when not known, and
            without nested fields in definitions that an older Headrace wrote.
        uuid: The table that `ids` are of; one that was dropped and created again numbers its columns anew.
    """

    name: TableName
    columns: tuple[Column, ...]
    all: tuple[str, ...] = ()
    ids: tuple[tuple[int, ...], ...] = ()
    uuid: str | None = None

    def of_table(self, meta: TableMeta) -> SourceUse:
        """Return it with the identity of a table, and with the ids that its columns have there."""
        return replace(self, ids=meta.nested_ids_of(c.name for c in self.columns), uuid=meta.uuid)

    def held_to(self, now: tuple[Column, ...]) -> tuple[str, ...] | None:
        """Return the columns to hold the user's text to.

        None while the source has the columns it had.

        Args:
            now: The source's columns now.
        """
        names = tuple(c.name for c in now)
        return None if names == self.all else tuple(n for n in self.all if n in names)


@dataclass(frozen=True, slots=True)
class Details:
    """The engine's facts of a stream table.

    Args:
        query: The query, as the user wrote it.
        namespace: Current namespace when it was written; unqualified names resolve in it.
        semantics: Session settings that are part of the definition.
        output: Columns of the result.
        sources: What it reads.
        views: Catalog views it goes through, with the text each had.
        refusals: What keeps it from being DIFFERENTIAL; empty when it can be.
        companion: Columns of the companion table, or None when none is needed.
        view_locations: Metadata files of those views; another one means the view was changed.
        layout: `LAYOUT` of the rules it was compiled with.
        cyclic: Whether it is maintained as the member of a cycle, which needs no companion.
        functions: Fingerprints of the project's functions that it calls, by name.
        source_keys: Keys of its sources, as they were known when it was defined.
        rests_on_keys: Whether its plan makes use of them.
        keys: Keys of its own result that follow from the query.
        disabled_passes: Passes of the optimiser that were switched off when it was defined, of those that decide what
            the companion stores.
        redirects: Relations in whose place others are read: the members of its own deployment, of a second generation.
        deployment: The deployment that it belongs to; "" for a public stream table.
        ties: What becomes of ties in its orders; definitions of older releases refuse them.
        refinements: What is written into its query so that it is a function of its sources.
    """

    query: str
    namespace: tuple[str, ...]
    semantics: Semantics
    output: tuple[Column, ...]
    sources: tuple[SourceUse, ...]
    views: Mapping[TableName, str]
    refusals: tuple[RefusalInfo, ...]
    companion: tuple[Column, ...] | None
    view_locations: Mapping[TableName, str] = field(default_factory=dict)
    layout: int = LAYOUT
    cyclic: bool = False
    functions: Mapping[str, str] = field(default_factory=dict)
    source_keys: Mapping[TableName, Keys] = field(default_factory=dict)
    rests_on_keys: bool = False
    keys: Keys = ()
    disabled_passes: frozenset[str] = frozenset()
    redirects: Mapping[TableName, TableName] = field(default_factory=dict)
    deployment: str = ""
    ties: Ties = Ties.REFUSE
    refinements: tuple[Refinement, ...] = ()

    @property
    def text(self) -> str:
        """Return the query as it is run and read: with its orders refined."""
        return refined(self.query, self.refinements) if self.refinements else self.query

    def read_as(self, name: TableName) -> TableName:
        """Return the relation that is read where the query names one."""
        return self.redirects.get(name, name)

    @property
    def incremental(self) -> bool:
        """Return whether the query can be refreshed DIFFERENTIAL."""
        return not self.refusals


def to_json(details: Details) -> dict[str, Any]:
    """Return plain JSON values of a details."""
    return {
        "query": details.query,
        "namespace": list(details.namespace),
        "semantics": _semantics_out(details.semantics),
        "output": _columns_out(details.output),
        "sources": [_source_out(use) for use in details.sources],
        "views": [
            {"name": list(v.parts), "text": t, "location": details.view_locations.get(v)}
            for v, t in details.views.items()
        ],
        "refusals": [r.as_dict() for r in details.refusals],
        "companion": None if details.companion is None else _columns_out(details.companion),
        "layout": details.layout,
        "cyclic": details.cyclic,
        "functions": dict(details.functions),
        "source_keys": [{"name": list(n.parts), "keys": _keys_out(k)} for n, k in details.source_keys.items()],
        "rests_on_keys": details.rests_on_keys,
        "keys": _keys_out(details.keys),
        "disabled_passes": sorted(details.disabled_passes),
        "ties": details.ties.value,
        "refinements": [[r.at, r.removed, r.text, r.construct, list(r.by)] for r in details.refinements],
        **_generation_out(details),
    }


def _of_stored(read: Callable[[Mapping[str, Any]], Found]) -> Callable[[Mapping[str, Any]], Found]:
    """Wrap a function of a stored definition: what `to_json` never wrote is a damaged catalog."""

    @wraps(read)
    def of(data: Mapping[str, Any]) -> Found:
        try:
            return read(data)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise unreadable(error) from error

    return of


@_of_stored
def from_json(data: Mapping[str, Any]) -> Details:
    """Return the facts stored as `data` by `to_json`.

    Raises:
        EnvironmentFault: `CATALOG_CORRUPT` for what `to_json` never wrote.
    """
    return Details(
        query=data["query"],
        namespace=tuple(data["namespace"]),
        semantics=semantics_of(data),
        output=_columns_in(data["output"]),
        sources=tuple(_source_in(use) for use in data["sources"]),
        views={_name_in(v["name"]): v["text"] for v in data["views"]},
        refusals=_refusals_in(data),
        companion=None if data["companion"] is None else _columns_in(data["companion"]),
        view_locations={_name_in(v["name"]): v["location"] for v in data["views"]},
        layout=data.get("layout", 1),
        cyclic=data.get("cyclic", False),
        functions=data.get("functions", {}),
        source_keys={_name_in(k["name"]): _keys_in(k["keys"]) for k in data.get("source_keys", ())},
        rests_on_keys=data.get("rests_on_keys", False),
        keys=_keys_in(data.get("keys", [])),
        disabled_passes=frozenset(data.get("disabled_passes", ())),
        redirects={_name_in(old): _name_in(new) for old, new in data.get("redirects", ())},
        deployment=data.get("deployment", ""),
        ties=Ties(data.get("ties", Ties.REFUSE)),
        refinements=tuple(map(_refinement_in, data.get("refinements", ()))),
    )


@_of_stored
def deployment_of(data: Mapping[str, Any]) -> str:
    """Return the deployment of a stored definition, "" for a public one.

    The rest of it is not looked at.
    """
    return str(data.get("deployment", ""))


@_of_stored
def refusals_of(data: Mapping[str, Any]) -> tuple[RefusalInfo, ...]:
    """Return why a stored definition cannot be refreshed DIFFERENTIAL, nothing where it can.

    The rest of it is not looked at.
    """
    return _refusals_in(data)


def _refusals_in(data: Mapping[str, Any]) -> tuple[RefusalInfo, ...]:
    return tuple(RefusalInfo(**{**r, "code": FullReason(r["code"])}) for r in data["refusals"])


def in_generation(details: Details, deployment: str, redirects: Mapping[TableName, TableName]) -> Details:
    """Return the same definition in another generation.

    Args:
        details: The definition.
        deployment: The deployment that it belongs to then; "" for the public generation.
        redirects: By public name, what is read in its place; none for the public generation.
    """
    public = {new: old for old, new in details.redirects.items()}

    def read(name: TableName) -> TableName:
        named = public.get(name, name)
        return redirects.get(named, named)

    return replace(
        details,
        # which table the columns' ids are of is another one then, and a result keeps its columns by name and type
        sources=tuple(
            u if read(u.name) == u.name else SourceUse(read(u.name), u.columns, u.all) for u in details.sources
        ),
        source_keys={read(name): keys for name, keys in details.source_keys.items()},
        redirects=dict(redirects),
        deployment=deployment,
    )


def columns_read(data: Mapping[str, Any], source: TableName) -> tuple[str, ...] | None:
    """Return the columns of a source that a stored definition reads.

    None if it cannot be refreshed DIFFERENTIAL.

    Asked of every reader of a source for every refresh of one of them, so that no `Details` are made.
    """
    if data["refusals"]:
        return None
    of = list(source.parts)
    return tuple(name for use in data["sources"] if use["name"] == of for name, _, _ in use["columns"])


@_of_stored
def semantics_of(data: Mapping[str, Any]) -> Semantics:
    """Return the settings of a stored definition."""
    own = data["semantics"]
    return Semantics(**{**own, "unusual": tuple((name, value) for name, value in own.get("unusual", ()))})


@_of_stored
def namespace_of(data: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the namespace of a stored definition."""
    return tuple(data["namespace"])


def _semantics_out(semantics: Semantics) -> dict[str, Any]:
    """Return plain JSON values of settings.

    What most definitions do not have is left out, so that they stay equal to those of before.
    """
    data = {"time_zone": semantics.time_zone, "ansi": semantics.ansi, "case_sensitive": semantics.case_sensitive}
    return data | ({"unusual": [list(each) for each in semantics.unusual]} if semantics.unusual else {})


def _generation_out(details: Details) -> dict[str, Any]:
    """Return the fields that only second generations have."""
    if not details.deployment:
        return {}
    redirects = [[list(old.parts), list(new.parts)] for old, new in details.redirects.items()]
    return {"redirects": redirects, "deployment": details.deployment}


def _source_out(use: SourceUse) -> dict[str, Any]:
    data = {"name": list(use.name.parts), "columns": _columns_out(use.columns), "all": list(use.all)}
    return data | {"ids": [list(ids) for ids in use.ids], "uuid": use.uuid}


def _source_in(data: Mapping[str, Any]) -> SourceUse:
    return SourceUse(
        _name_in(data["name"]),
        _columns_in(data["columns"]),
        tuple(data["all"]),
        tuple(tuple(ids) if isinstance(ids, list) else (ids,) for ids in data.get("ids", ())),
        data.get("uuid"),
    )


def _keys_out(keys: Keys) -> list[list[str]]:
    return [list(key) for key in keys]


def _keys_in(data: list[list[str]]) -> Keys:
    return tuple(tuple(key) for key in data)


def _refinement_in(data: list[Any]) -> Refinement:
    at, removed, text, construct, by = data
    return Refinement(at, removed, text, construct, tuple(by))


def _name_in(parts: list[str]) -> TableName:
    return TableName(parts[0], tuple(parts[1:-1]), parts[-1])


def _columns_out(columns: tuple[Column, ...]) -> list[list[Any]]:
    return [[c.name, c.type, c.nullable] for c in columns]


def _columns_in(data: list[list[Any]]) -> tuple[Column, ...]:
    return tuple(Column(name, type_, nullable) for name, type_, nullable in data)
