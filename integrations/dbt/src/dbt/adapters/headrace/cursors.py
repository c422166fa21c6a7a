"""A connection as dbt knows it: statements go to the open project, rows come back."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dbt.adapters.headrace.failures import as_dbt_error

from headrace.api.facade import Headrace
from headrace.errors import UserError
from headrace.spark.errors import translated
from headrace.statements.grammar import SparkStatement, parse_script

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Column = tuple[str, str, None, None, None, None, bool]

_COMMENTS = re.compile(r"(?:\s+|--[^\n]*(?:\n|$)|/\*.*?\*/)*", re.DOTALL)
_SETTING = re.compile(
    r"SET\s+(?:TIME\s+ZONE\b|`?spark\.sql\.(?:ansi\.enabled|session\.timeZone|caseSensitive)\b)", re.IGNORECASE
)
"""Settings that change results; they are part of every definition."""


class Connection:
    """A connection, which is a cursor, too, as dbt-spark has it.

    Args:
        hr: The project.
    """

    def __init__(self, hr: Headrace) -> None:
        self.hr = hr
        self._frame: DataFrame | None = None
        self._answer: Sequence[Mapping[str, Any]] = ()

    def cursor(self) -> Connection:
        """Return a cursor."""
        return Connection(self.hr)

    def execute(self, sql: str, bindings: Sequence[object] | None = None) -> None:
        """Run statements; the result is that of the last one.

        Raises:
            HeadraceError: A statement is wrong, or changes what is the project's.
        """
        if bindings:
            raise UserError("INVALID_OPTION", "A statement has bindings, which Spark SQL cannot take here.")
        self._frame, self._answer = None, ()
        statements = parse_script(sql)
        for statement in statements:
            if isinstance(statement, SparkStatement):
                refuse_setting(statement.sql)
        result = self.hr.sql(sql) if statements else None
        if hasattr(result, "collect"):
            self._frame = result
        elif result is not None:
            self._answer = tuple(_records(result))

    def fetchall(self) -> list[tuple[Any, ...]]:
        """Return all rows.

        Raises:
            DbtDatabaseError: Computing them failed; dbt fetches outside of its own handler of errors.
        """
        if self._frame is None:
            return [tuple(record.values()) for record in self._answer]
        with as_dbt_error(), translated():
            return [tuple(row) for row in self._frame.collect()]

    def fetchmany(self, size: int) -> list[tuple[Any, ...]]:
        """Return the first rows."""
        if self._frame is None:
            return self.fetchall()[:size]
        with as_dbt_error(), translated():
            return [tuple(row) for row in self._frame.take(size)]

    def fetchone(self) -> tuple[Any, ...] | None:
        """Return the first row."""
        return next(iter(self.fetchmany(1)), None)

    @property
    def description(self) -> list[Column]:
        """Return name, type and nullability of each column."""
        if self._frame is not None:
            fields = self._frame.schema.fields
            return [(f.name, f.dataType.simpleString(), None, None, None, None, f.nullable) for f in fields]
        names = self._answer[0] if self._answer else ()
        return [(name, "string", None, None, None, None, True) for name in names]

    def cancel(self) -> None:
        """Cancel the Spark jobs of the run."""
        self.hr.cancel_jobs()

    def close(self) -> None:
        """Forget the result; the project stays open for the other threads."""
        self._frame, self._answer = None, ()

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


def _records(result: Any) -> Iterable[Mapping[str, Any]]:
    """Return what a statement of Headrace's own answers, as rows of plain values."""
    several = result if isinstance(result, tuple | list) else [result]
    for one in several:
        record = one.as_dict() if hasattr(one, "as_dict") else {"result": one}
        yield {key: json.dumps(value) if isinstance(value, dict | list) else value for key, value in record.items()}
