"""Defects of Headrace."""

from __future__ import annotations

from headrace.error_codes.code import ErrorCode

CODES = (
    ErrorCode(
        "INTERNAL_ERROR",
        message="Something failed unexpectedly.",
        cause="The command line keeps the trace in `.headrace/log` of the project, else in a temporary folder.",
        remedy="Report it.",
        retry="no",
    ),
    ErrorCode(
        "STATE_DIVERGED",
        message="A change removes rows that the stream table does not have.",
        cause="The stored table and the change do not belong together.",
        remedy="`headrace refresh <table> --full` rebuilds it; report it.",
        retry="no",
    ),
    ErrorCode(
        "CYCLE_LOST_ROWS",
        message="A query of a [cycle](cycles.md) lost rows although its sources only gained rows.",
        cause="It was wrongly taken to be monotone.",
        remedy="Report its query.",
        retry="no",
    ),
    ErrorCode(
        "STORED_TABLE_MISSING",
        message="A stored table has no row in the staging catalog.",
        cause="It was removed by hand, or by a defect.",
        remedy="Drop and create the stream table; report it.",
        retry="no",
    ),
    ErrorCode(
        "PLAN_INVALID",
        message="A refresh was planned that cannot be run.",
        cause="A defect.",
        remedy="Report it; FULL works meanwhile.",
        retry="no",
    ),
    ErrorCode(
        "NOT_LOWERED",
        message="An operator could not be written as SQL.",
        cause="A defect.",
        remedy="Report it; FULL works meanwhile.",
        retry="no",
    ),
    ErrorCode(
        "PUBLICATION_INVALID",
        message="A publication does not fit the catalog.",
        cause="The catalog was edited by hand, or a defect.",
        remedy="Report it.",
        retry="no",
    ),
    ErrorCode(
        "CAPTURE_DIVERGED",
        message="A database changed a row that was never captured.",
        cause="A defect.",
        remedy="`headrace source resnapshot`; report it.",
        retry="no",
    ),
    ErrorCode(
        "PGOUTPUT_UNREADABLE",
        message="A server sent a change message that cannot be read.",
        cause="A newer protocol, or a defect.",
        remedy="Report it, with the server's version.",
        retry="no",
    ),
    ErrorCode(
        "LANDING_BROKE",
        message="Landing database sources ended in an unexpected error.",
        cause="The message shows it; `headrace run` tries again.",
        remedy="If it comes again, report it.",
        retry="no",
    ),
    ErrorCode(
        "COPY_UNREADABLE",
        message="A server's `COPY` begins with an unknown signature.",
        cause="A defect, or something between that alters it.",
        remedy="Report it.",
        retry="no",
    ),
    ErrorCode(
        "CATALOG_FAILED",
        message="A statement on the catalog failed for no known reason.",
        cause="See the detail.",
        remedy="Report it.",
        retry="no",
    ),
)
