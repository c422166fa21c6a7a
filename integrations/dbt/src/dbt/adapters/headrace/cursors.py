"""A connection as dbt knows it: statements go to the open project, rows come back."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dbt.adapters.headrace.answers import Answer, Row, answer_of
from dbt.adapters.headrace.failures import as_dbt_error
from dbt.adapters.headrace.projects import Project

from headrace.errors import UserError
from headrace.statements.grammar import parse_script
from headrace.statements.parsed_statements import SparkStatement

Described = tuple[str, str, None, None, None, None, bool]

_COMMENTS = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_SETTING = re.compile(
    r"SET\s+(?:TIME\s+ZONE\b|`?spark\.sql\.(?:ansi\.enabled|session\.timeZone|caseSensitive)\b)", re.IGNORECASE
)
"""Settings that change results; they are part of every definition."""


class Connection:
    """A connection, which is a cursor, too, as dbt-spark has it.

    Args:
        project: The project.
    """

    def __init__(self, project: Project) -> None:
        self.project = project
        self._answer: Answer = answer_of(None)

    def cursor(self) -> Connection:
        """Return a cursor."""
        return Connection(self.project)

    def execute(self, sql: str, bindings: Sequence[object] | None = None) -> None:
        """Run statements; the result is that of the last one.

        Raises:
            HeadraceError: A statement is wrong, or changes what is the project's.
        """
        if bindings:
            raise UserError("INVALID_OPTION", "A statement has bindings, which Spark SQL cannot take here.")
        self._answer = answer_of(None)
        statements = parse_script(sql)
        for statement in statements:
            if isinstance(statement, SparkStatement):
                refuse_setting(statement.sql)
        if statements:
            self._answer = self.project.run(sql.strip().rstrip(";"))

    def fetchall(self) -> list[Row]:
        """Return all rows.

        Raises:
            DbtDatabaseError: Computing them failed; dbt fetches outside of its own handler of errors.
        """
        with as_dbt_error():
            return self._answer.rows()

    def fetchmany(self, size: int) -> list[Row]:
        """Return the first rows."""
        with as_dbt_error():
            return self._answer.rows(size)

    def fetchone(self) -> Row | None:
        """Return the first row."""
        return next(iter(self.fetchmany(1)), None)

    @property
    def description(self) -> list[Described]:
        """Return name, type and nullability of each column."""
        return [(c.name, c.type, None, None, None, None, c.nullable) for c in self._answer.columns()]

    def cancel(self) -> None:
        """Cancel what the run has under way."""
        self.project.cancel()

    def close(self) -> None:
        """Forget what the node left behind; the project stays open for the other threads."""
        self._answer = answer_of(None)
        self.project.release()

    def rollback(self) -> None:
        """Do nothing: there are no transactions over several statements."""


def refuse_setting(sql: str) -> None:
    """Refuse a statement that changes what results are, behind the project's back.

    Raises:
        UserError: `INVALID_OPTION`.
    """
    found = _SETTING.match(sql, _COMMENTS.match(sql).end())  # type: ignore[union-attr]
    if found:
        raise UserError(
            "INVALID_OPTION",
            f"A model, hook or macro says `{found[0]}`, which changes what queries return.",
            detail="It is part of what a stream table is, and the same for everybody who refreshes or verifies it.",
            hint="Set it in [spark] of the project's headrace.toml, or write it into the query "
            "(try_cast, try_divide, from_utc_timestamp).",
        )
