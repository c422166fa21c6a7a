"""Functions that stream tables call: which, in which version, and whether they exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.catalog import Catalog
from headrace.definitions.details import Details, from_json
from headrace.errors import UserError
from headrace.functions import Function, signature
from headrace.functions import changed as changed_since
from headrace.names import TableName
from headrace.ports import Session
from headrace.results.refresh_results import FunctionInfo
from headrace.sql.called_functions import called


def functions_called(texts: Iterable[str], functions: Mapping[str, Function]) -> dict[str, str]:
    """Return the fingerprints of the Python functions that texts call.

    Args:
        texts: SQL of a query and the views it reads through.
        functions: The project's functions by name.

    Returns:
        Fingerprints by name, sorted by name.
    """
    names = frozenset().union(*map(called, texts)) if functions else frozenset()
    return {name: functions[name].fingerprint for name in sorted(names & functions.keys())}


def changed_functions(details: Details, session: Session) -> tuple[str, ...]:
    """Return the functions that changed or are gone since a stream table was defined.

    Args:
        details: The definition.
        session: Has the functions of today.
    """
    return changed_since(details.functions, session.functions)


def function_infos(catalog: Catalog, functions: Mapping[str, Function]) -> tuple[FunctionInfo, ...]:
    """List functions and their callers by name, missing ones included."""
    callers: dict[str, dict[str, str]] = {}
    for table in catalog.stream_tables():
        for name, fingerprint in from_json(table.details).functions.items():
            callers.setdefault(name, {})[str(table.name)] = fingerprint
    found = []
    for name in sorted(callers.keys() | functions.keys()):
        function, by = functions.get(name), callers.get(name, {})
        found.append(
            FunctionInfo(
                name,
                None if function is None else function.returns,
                None if function is None else function.deterministic,
                None if function is None else function.fingerprint,
                tuple(sorted(by)),
                tuple(sorted(t for t, known in by.items() if function is not None and known != function.fingerprint)),
            )
        )
    return tuple(found)


def functions_section(details: Details, session: Session) -> str:
    """Describe the Python functions that a query calls, one line each, for `explain`."""
    there = session.functions() if details.functions else {}
    return "\n".join(signature(there[name]) for name in details.functions if name in there)


def refuse_missing(table: TableName, details: Details, session: Session) -> None:
    """Refuse a stream table whose functions are not all there.

    Raises:
        UserError: `FUNCTION_NOT_FOUND`.
    """
    there = session.functions() if details.functions else {}
    if gone := [name for name in details.functions if name not in there]:
        raise UserError(
            "FUNCTION_NOT_FOUND",
            f"{table} calls {gone[0]}(), which this project does not declare any more; nothing was changed.",
            hint=f"Declare {gone[0]} in functions.py again, or define the table again: "
            f"CREATE OR REPLACE STREAM TABLE {table} AS …",
        )


def refuse_changed(table: TableName, details: Details, session: Session) -> None:
    """Refuse to verify with functions other than those the table was computed with.

    Raises:
        UserError: `FUNCTION_NOT_FOUND`, `FUNCTION_CHANGED`.
    """
    refuse_missing(table, details, session)
    if changed := changed_functions(details, session):
        raise UserError(
            "FUNCTION_CHANGED",
            f"{table} was computed with another body of {changed[0]}() than there is now.",
            hint="Refresh it first: it is recomputed.",
        )
