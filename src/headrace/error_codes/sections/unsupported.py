"""Correct requests that Headrace does not serve."""

from __future__ import annotations

from headrace.error_codes.code import ErrorCode

CODES = (
    ErrorCode(
        "CYCLE_NOT_MONOTONE",
        message=("A table of a [cycle](cycles.md) has a construct that may take rows back when the cycle gains some."),
        cause="The message names the construct, and its place where that is known.",
        remedy="Compute it in a table that reads the cycle without being in it.",
        retry="no",
    ),
    ErrorCode(
        "CYCLE_KEEPS_COPIES",
        message=(
            "No query on the way round a cycle removes copies, so that a row which leads back to itself "
            "would come again for ever."
        ),
        cause="The message shows the path.",
        remedy="Write `UNION` or `SELECT DISTINCT` in one of them.",
        retry="no",
    ),
    ErrorCode(
        "NOT_MAINTAINABLE",
        message=(
            "Refresh mode DIFFERENTIAL was asked for, and the query cannot be maintained; or it was when "
            "the table was defined, and is not any more, as a source has other columns now, say."
        ),
        cause="The message names the construct and its place in the SQL.",
        remedy=(
            "Rewrite it as the hint says, or use AUTO or FULL; define the table again. See [what is "
            "supported](supported.md)."
        ),
        retry="no",
    ),
    ErrorCode(
        "QUERY_TOO_DEEP",
        message=(
            "A query has hundreds of brackets or comments inside one another, or strings together "
            "thousands of operators, branches of `UNION` or hundreds of common table expressions."
        ),
        cause=(
            "It cannot be read, neither to replace its tables nor to maintain it; or Spark cannot, as it "
            "goes through a query by one call inside the other."
        ),
        remedy="Split it: into views, or into stream tables that read one another.",
        retry="no",
    ),
    ErrorCode(
        "QUERY_TOO_LARGE",
        message=(
            "`VALUES` has more than 20,000 rows, or common table expressions that read one another "
            "several times come to more than 10,000 readings of tables."
        ),
        cause="Spark takes minutes to read it, each time, or for ever.",
        remedy="Write the rows to a table; make stream tables of common table expressions.",
        retry="no",
    ),
    ErrorCode(
        "TIME_TRAVEL_SOURCE",
        message="A stream table reads a source at a fixed version, with options, or by sample.",
        cause="Such a source would never change, or change at random.",
        remedy="Read it plainly; [`hr.at()`](consistency.md) reads the past.",
        retry="no",
    ),
    ErrorCode(
        "METADATA_COLUMN",
        message="A stream table reads a metadata column of Iceberg's: `_file`, `_pos`, `_row_id` and the like.",
        cause="It says where or when a row was stored, which a compaction changes without changing a row.",
        remedy="Read columns of the table.",
        retry="no",
    ),
    ErrorCode(
        "DYNAMIC_NAME",
        message="A table is named by an expression: `IDENTIFIER(…)`.",
        cause="What the query reads could not be known.",
        remedy="Write the name.",
        retry="no",
    ),
    ErrorCode(
        "TYPE_NOT_STORABLE",
        message="A column's type cannot be stored.",
        cause="Iceberg has no such type (intervals, a NULL without a type), or not in format version 2.",
        remedy="Cast it in the query.",
        retry="no",
    ),
    ErrorCode(
        "TYPE_NOT_COMPARABLE",
        message="Rows cannot be found by their values.",
        cause="A column's type has no equality.",
        remedy="Leave it out, cast it, or use FULL.",
        retry="no",
    ),
    ErrorCode(
        "VIEW_NOT_READ",
        message="The text of a catalog view could not be read.",
        cause="It is not in Spark's dialect.",
        remedy="Create the view again from Spark, or put its query into the stream table's.",
        retry="no",
    ),
    ErrorCode(
        "SINK_KIND_UNKNOWN",
        message="There is no kind of sink of that name.",
        cause="This version writes stream tables into PostgreSQL only.",
        remedy="Read the stream table with any engine that reads Iceberg, and write its rows from there.",
        retry="no",
    ),
    ErrorCode(
        "SINK_TYPE_UNSUPPORTED",
        message="A column's type has no counterpart in PostgreSQL.",
        cause="A map, struct, variant, or an array of arrays.",
        remedy="Give the stream table a text: `to_json(…)`.",
        retry="no",
    ),
    ErrorCode(
        "SPARK_UNSUPPORTED",
        message="Spark does not support what the query asks for.",
        cause="See the message, which is Spark's.",
        remedy="Write it another way.",
        retry="no",
    ),
)
