"""Errors that the data of a query raises."""

from __future__ import annotations

from headrace.error_codes.code import ErrorCode

CODES = (
    ErrorCode(
        "ARITHMETIC_ERROR",
        message="Division by zero, or a number outgrew its type.",
        cause="In ANSI mode Spark fails where it would otherwise return NULL.",
        remedy="Use `try_divide`, `try_add`, … where NULL is right; or correct the data.",
        retry="no",
    ),
    ErrorCode(
        "FUNCTION_FAILED",
        message="A [Python function](functions.md) raised an exception.",
        cause="Its last line is in the message, the place in the detail.",
        remedy="Let it answer None where it has no answer, or correct the data.",
        retry="no",
    ),
    ErrorCode(
        "RECURSION_LIMIT",
        message="A `WITH RECURSIVE` had rounds left to do, or more rows than Spark allows.",
        cause=(
            "There is a cycle in the data, or a way longer than the limit: `MAX RECURSION LEVEL`, else "
            "`spark.sql.cteRecursionLevelLimit` (100) and `spark.sql.cteRecursionRowLimit`. A result is "
            "never cut off at it."
        ),
        remedy="Break the cycle, carry the depth or the path along and stop by it, or raise the limit.",
        retry="no",
    ),
    ErrorCode(
        "VALUE_ERROR",
        message="A value cannot be converted, or an index or key does not exist.",
        cause="As above, for casts, dates, arrays and maps.",
        remedy="Use `try_cast` and the like.",
        retry="no",
    ),
    ErrorCode(
        "SUBQUERY_TOO_MANY_ROWS",
        message="A scalar subquery returned several rows.",
        cause="",
        remedy="Make it return one.",
        retry="no",
    ),
    ErrorCode(
        "MERGE_AMBIGUOUS",
        message="A `MERGE` matches a row more than once.",
        cause="The source of the `MERGE` has several rows for one target row.",
        remedy="Make them unique.",
        retry="no",
    ),
    ErrorCode(
        "NULL_NOT_ALLOWED",
        message="NULL was written into a column that forbids it.",
        cause="",
        remedy="Correct the data or the column.",
        retry="no",
    ),
    ErrorCode(
        "RAISED_BY_QUERY",
        message="The query itself raised an error.",
        cause="It calls `raise_error` or `assert_true`.",
        remedy="See the message.",
        retry="no",
    ),
)
