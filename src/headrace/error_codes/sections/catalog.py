"""Faults of the catalog database."""

from __future__ import annotations

from headrace.error_codes.code import ErrorCode

CODES = (
    ErrorCode(
        "CATALOG_LOCKED",
        message="The database is locked by another process.",
        cause="Waiting 30 seconds did not help.",
        remedy="Try again; look for a hung process, an open SQLite shell, a backup.",
        retry="yes",
        outage=True,
    ),
    ErrorCode(
        "CATALOG_UNREACHABLE",
        message="The database cannot be reached, or holds no catalog.",
        cause="Wrong URL, missing file, server down, wrong password.",
        remedy="Check `catalog_url` and the server.",
        retry="sometimes",
        outage=True,
    ),
    ErrorCode(
        "CATALOG_UNAVAILABLE",
        message="Spark cannot use the database.",
        cause="As above, seen through JDBC.",
        remedy="Check `catalog_url`, and that Spark's host reaches the server.",
        retry="yes",
        outage=True,
    ),
    ErrorCode(
        "CATALOG_CORRUPT",
        message="The file is damaged, or is no catalog.",
        cause="",
        remedy="Check the URL; put back a backup.",
        retry="no",
    ),
    ErrorCode(
        "CATALOG_READ_ONLY",
        message="The database cannot be written.",
        cause="Missing rights; for SQLite also to the folder. Or the server is a standby, or only read from for now.",
        remedy="Give them; name the server that is written to.",
        retry="yes",
        outage=True,
    ),
    ErrorCode(
        "CATALOG_TOO_NEW",
        message="A newer Headrace wrote the catalog.",
        cause="This version does not know its revision.",
        remedy="Upgrade, or put back the backup made beside it.",
        retry="no",
    ),
    ErrorCode(
        "CATALOG_BACKUP_FAILED",
        message="An older catalog must be migrated, and its backup could not be written.",
        cause="No room or no right beside the file. Nothing was changed.",
        remedy="Make room.",
        retry="no",
    ),
)

LAKES = (
    ErrorCode(
        "LAKE_UNREACHABLE",
        message="The REST catalog of `[lake]` does not answer.",
        cause="It is down or has too much to do, the address is wrong, or a proxy cuts the connection. "
        "What is published stays.",
        remedy="Check `uri` and the network; `headrace doctor` asks the server.",
        retry="yes",
        outage=True,
    ),
    ErrorCode(
        "LAKE_DENIED",
        message="The REST catalog does not allow it.",
        cause="The credential is wrong or has expired, or its user has no rights on a namespace or table.",
        remedy="Set `HEADRACE_LAKE_TOKEN` or `HEADRACE_LAKE_CREDENTIAL`; grant the rights in the server.",
        retry="no",
    ),
    ErrorCode(
        "LAKE_REFUSED",
        message="The REST catalog refused a request.",
        cause="Its own words are shown: a location that the warehouse does not allow, or a warehouse that is missing.",
        remedy="Change what the server names. Nothing was published.",
        retry="no",
    ),
    ErrorCode(
        "LAKE_BUSY",
        message="Tables were written again and again while the project was moved to another lake.",
        cause="Programs that write the project's tables went on meanwhile. Nothing was moved.",
        remedy="Stop them for a moment; from the move on they have to use the other catalog anyhow.",
        retry="yes",
    ),
)

LAKES_MISUSED = (
    ErrorCode(
        "LAKE_UNSUPPORTED",
        message="That is not done in a lake that a REST catalog keeps.",
        cause="The server lacks an endpoint: several tables in one commit, registering tables, or views.",
        remedy="See docs/rest-catalog.md for what works.",
        retry="no",
    ),
    ErrorCode(
        "LAKE_CHANGED",
        message="`[lake]` names another lake than the one that the project's tables are in.",
        cause="`[lake]` was added, taken away or changed after the first table was made; or the project was moved "
        "while this process had it open.",
        remedy="Put it back, or run `headrace move-catalog`. A process that was open is started again.",
        retry="no",
    ),
    ErrorCode(
        "LAKE_MOVE_REFUSED",
        message="The project cannot be moved to another lake now.",
        cause="It names none, schedulers run, a table is being written, or there are deployments.",
        remedy="The message names what is in the way. Nothing was moved.",
        retry="no",
    ),
    ErrorCode(
        "LAKE_NAME_TAKEN",
        message="The REST catalog has something else under names of the project.",
        cause="Another table or view, or the same table with snapshots that the project does not know.",
        remedy="Rename or drop it there, without PURGE, and move again. Nothing was moved.",
        retry="no",
    ),
)
