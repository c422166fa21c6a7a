"""Checks of promotions: queries of rows that must not be.

They name public stream tables. Before a promotion their second generations are read instead, so that one text judges
both before it and while it is watched.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.algebra.schema import Column, no_rows_sql
from headrace.definitions.user_text import bind_text, resolver
from headrace.errors import HeadraceError, UserError
from headrace.names import TableName
from headrace.ports import Session

NOWHERE_ELSE: Mapping[TableName, TableName] = {}
NONE_UNMADE: Mapping[TableName, tuple[Column, ...]] = {}


def check_text(
    query: str,
    redirects: Mapping[TableName, TableName],
    session: Session,
    unmade: Mapping[TableName, tuple[Column, ...]] = NONE_UNMADE,
) -> str:
    """Return a check as Spark runs it.

    Args:
        query: The check, with names in full.
        redirects: By public table, what is read in its place.
        session: The session, which knows catalogs.
        unmade: Columns of relations that are not there yet.

    Raises:
        UserError: `INVALID_NAME` for a name without a namespace.
    """
    catalogs = session.catalogs()
    resolve = resolver((), catalogs, redirects)

    def read(name: TableName) -> str:
        other = resolve(name.parts)
        if other in unmade:
            return f"({no_rows_sql(unmade[other])})"
        return name.sql if other == name else f"(SELECT * FROM {other.sql})"

    text = query.strip().rstrip(";")
    case_sensitive = session.runner().semantics.case_sensitive
    return bind_text(text, namespace=(), catalogs=catalogs, views={}, bind=read, case_sensitive=case_sensitive)


def refuse_invalid(
    checks: Mapping[str, str],
    redirects: Mapping[TableName, TableName],
    session: Session,
    unmade: Mapping[TableName, tuple[Column, ...]] = NONE_UNMADE,
) -> None:
    """Refuse checks that Spark cannot analyse.

    Args:
        checks: By name, the checks, with names in full.
        redirects: By public table, what is read in its place.
        session: The session, which analyses them.
        unmade: Columns of relations that are not there yet.

    Raises:
        UserError: What is wrong with the first, such as `COLUMN_NOT_FOUND`.
    """
    for query in checks.values():
        session.runner().describe(check_text(query, redirects, session, unmade))


def failing(checks: Mapping[str, str], redirects: Mapping[TableName, TableName], session: Session) -> str | None:
    """Return in words which check fails first; None when all pass.

    Args:
        checks: By name, the checks.
        redirects: By public table, what is read in its place.
        session: The session that runs them.
    """
    for name, query in checks.items():
        try:
            text = check_text(query, redirects, session)
            rows = session.runner().run(f"SELECT count(*) FROM (\n{text}\n)")[0][0]
        except HeadraceError as error:
            if error.retryable:
                raise
            return f"check {name} cannot be run: {error.message}"
        if rows:
            return f"check {name} finds {rows:,} row(s) that must not be"
    return None


def refuse_failing(checks: Mapping[str, str], redirects: Mapping[TableName, TableName], session: Session) -> None:
    """Refuse a promotion whose checks do not pass.

    Raises:
        UserError: `CHECK_FAILED`.
    """
    if (why := failing(checks, redirects, session)) is not None:
        raise UserError(
            "CHECK_FAILED",
            f"{why[0].upper()}{why[1:]}; nothing was promoted.",
            hint="Run the check over the greens to see the rows: their namespaces end in __DEPLOYMENT.",
        )
