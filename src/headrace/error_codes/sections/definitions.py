"""Errors of names and definitions."""

from __future__ import annotations

from headrace.error_codes.code import ErrorCode

CODES = (
    ErrorCode(
        "INVALID_NAME",
        message="A text is no table name that can be used here.",
        cause=(
            "It is not `namespace.table`, has no namespace while none is current, lies in a reserved "
            "place (`staging`, `_headrace`), or names another catalog than `lake` for a stream table."
        ),
        remedy=("Write `namespace.table`; quote unusual parts with back-quotes; or `USE lake.<namespace>` first."),
        retry="no",
    ),
    ErrorCode(
        "INPUT_TOO_LONG",
        message="What comes on stdin is longer than what the project's server takes.",
        cause="It takes 64 MiB at once.",
        remedy="Run the command with `--no-serve`, or in parts.",
        retry="no",
    ),
    ErrorCode(
        "INVALID_SCHEDULE",
        message="A schedule cannot be read.",
        cause=(
            "It is neither a duration of a second to a year, nor cron that can come true with a known "
            "time zone, nor `ON CHANGE`, `DOWNSTREAM`, `MANUAL`. The message says what is wrong."
        ),
        remedy="See [schedules](scheduling.md#schedules).",
        retry="no",
    ),
    ErrorCode(
        "INVALID_OPTION",
        message="An option has an unknown value.",
        cause="Such as a refresh mode other than AUTO, FULL, DIFFERENTIAL, or a property that does not exist.",
        remedy="Use one of the values in the hint.",
        retry="no",
    ),
    ErrorCode(
        "SYNTAX_ERROR",
        message="The SQL text cannot be read.",
        cause="The message shows line and caret; for Headrace's own statements the hint shows the right form.",
        remedy="Correct the text.",
        retry="no",
    ),
    ErrorCode(
        "STREAM_TABLE_EXISTS",
        message="The stream table exists already.",
        cause="`CREATE` without `OR REPLACE` or `IF NOT EXISTS`.",
        remedy="Use one of them, or another name.",
        retry="no",
    ),
    ErrorCode(
        "STREAM_TABLE_NOT_FOUND",
        message="There is no stream table of that name.",
        cause="It is misspelt, in another namespace, or was dropped, perhaps in the meantime.",
        remedy="`headrace status` lists those that exist.",
        retry="no",
    ),
    ErrorCode(
        "MANAGED_TABLE",
        message="A statement of Spark's would change what Headrace writes.",
        cause="Stream tables, mirrors, companions and change logs follow from queries and sources.",
        remedy="Use the statement that the hint names, such as `DROP STREAM TABLE` in place of `DROP TABLE`.",
        retry="no",
    ),
    ErrorCode(
        "TABLE_EXISTS",
        message="A table or view of that name exists and is no stream table, or is not the one of a deployment.",
        cause="Headrace never overwrites what it does not own.",
        remedy="Choose another name, or drop that table first.",
        retry="no",
    ),
    ErrorCode(
        "TABLE_NOT_FOUND",
        message="A table or view that the statement names does not exist.",
        cause=(
            "Misspelt, or unqualified names resolved in another namespace than meant. Temporary views are"
            " not visible to stream tables."
        ),
        remedy="Write the name in full: `namespace.table`.",
        retry="no",
    ),
    ErrorCode(
        "CYCLE",
        message="A stream table (or a view) would depend on itself.",
        cause="The message shows the path.",
        remedy="Change one of the queries on the path; or, for stream tables, [allow cycles](cycles.md).",
        retry="no",
    ),
    ErrorCode(
        "CYCLE_NOT_SETTLED",
        message="A [cycle](cycles.md) still gains rows after `max_cycle_rounds` rounds; nothing was published.",
        cause="A query makes new values in every round, or the way through the data is longer.",
        remedy="Bound what grows by a condition, or raise `max_cycle_rounds`.",
        retry="no",
    ),
    ErrorCode(
        "CYCLE_SETTINGS_DIFFER",
        message="Members of a cycle were defined under different settings that belong to a definition.",
        cause="They are iterated in one session.",
        remedy="Define them again under the same settings.",
        retry="no",
    ),
    ErrorCode(
        "HAS_CONSUMERS",
        message="A stream table that others read cannot be dropped alone.",
        cause="The message names them.",
        remedy="Drop those first, or use `CASCADE`.",
        retry="no",
    ),
    ErrorCode(
        "DUPLICATE_COLUMN",
        message="The query returns two columns of one name.",
        cause="A table cannot have both; case does not tell them apart.",
        remedy="Rename one with `AS`.",
        retry="no",
    ),
    ErrorCode(
        "RESERVED_COLUMN",
        message="A column's name begins with `__hr_`, or is one of Iceberg's metadata columns, such as `_file`.",
        cause="That prefix is Headrace's own; Iceberg reads no table with such a column.",
        remedy="Rename it with `AS`.",
        retry="no",
    ),
    ErrorCode(
        "QUERY_INVALID",
        message="Spark refuses the query.",
        cause="Its analyser found a mistake that has no code of its own here.",
        remedy="See the message, which is Spark's.",
        retry="no",
    ),
    ErrorCode(
        "QUERY_READ_DIFFERENTLY",
        message="Spark finds a table in the query that Headrace does not.",
        cause="Headrace finds tables by a reader of its own, and a table that it missed would not be followed.",
        remedy="Write names that are keywords in back quotes. Please report the query.",
        retry="no",
    ),
    ErrorCode(
        "COLUMN_NOT_FOUND",
        message="A column or field does not exist.",
        cause="Misspelt, or not in scope.",
        remedy="Spark's suggestion is in the hint.",
        retry="no",
    ),
    ErrorCode(
        "COLUMN_AMBIGUOUS",
        message="A column name could mean several.",
        cause="Two inputs have it.",
        remedy="Qualify it with the table's alias.",
        retry="no",
    ),
    ErrorCode(
        "COLUMN_EXISTS",
        message="A table would get two columns of one name.",
        cause="As `DUPLICATE_COLUMN`, found by Spark.",
        remedy="Give one an alias.",
        retry="no",
    ),
    ErrorCode(
        "PARAMETER_UNBOUND",
        message="The query has a parameter, `:name` or `?`, or a variable, `${name}` or `${env:NAME}`.",
        cause="A stream table is refreshed without a user who could give it a value, in sessions of many processes.",
        remedy="Write the value instead.",
        retry="no",
    ),
    ErrorCode(
        "FUNCTION_NOT_FOUND",
        message="A function does not exist.",
        cause=(
            "Misspelt, a temporary function of another session, or one that `functions.py` does not declare any more."
        ),
        remedy="Use one of Spark's own, or [declare it](functions.md).",
        retry="no",
    ),
    ErrorCode(
        "FUNCTION_INVALID",
        message="A Python function, or the whole of `functions.py`, cannot be used.",
        cause=(
            "The file cannot be loaded, a type or a name is wrong, or the function cannot be sent to Spark's workers."
        ),
        remedy="The detail has Python's own words and the line.",
        retry="no",
    ),
    ErrorCode(
        "FUNCTION_CHANGED",
        message="`verify` was asked to compare a table that was computed with another body of a function.",
        cause="`functions.py` was changed since.",
        remedy="Refresh the table first.",
        retry="no",
    ),
    ErrorCode(
        "KEY_VIOLATED",
        message="A key that was to be declared is none.",
        cause="Several rows agree in these columns, NULL counting as a value.",
        remedy="Declare columns in which no two rows agree.",
        retry="no",
    ),
    ErrorCode(
        "KEY_NOT_DECLARED",
        message="A key cannot be dropped.",
        cause="Nobody declared it.",
        remedy="`headrace key list` shows declared keys.",
        retry="no",
    ),
    ErrorCode(
        "TYPE_MISMATCH",
        message="Types do not fit together.",
        cause="An operator, a function, or an INSERT got another type or number of columns than it takes.",
        remedy="Cast explicitly; name the columns.",
        retry="no",
    ),
    ErrorCode(
        "NAMESPACE_NOT_FOUND",
        message="A namespace does not exist.",
        cause="It was never created.",
        remedy="`CREATE NAMESPACE`.",
        retry="no",
    ),
    ErrorCode(
        "NAMESPACE_EXISTS",
        message="A namespace exists already.",
        cause="",
        remedy="Use `IF NOT EXISTS`.",
        retry="no",
    ),
    ErrorCode(
        "NAMESPACE_NOT_EMPTY",
        message="A namespace cannot be dropped.",
        cause="It holds tables.",
        remedy="Drop those first.",
        retry="no",
    ),
    ErrorCode(
        "CATALOG_NOT_FOUND",
        message="Spark has no catalog of that name.",
        cause="It is not configured in the session.",
        remedy="Configure it in `[spark]` of headrace.toml.",
        retry="no",
    ),
)
