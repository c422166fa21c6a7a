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
    ),
    ErrorCode(
        "CATALOG_UNREACHABLE",
        message="The database cannot be reached, or holds no catalog.",
        cause="Wrong URL, missing file, server down, wrong password.",
        remedy="Check `catalog_url` and the server.",
        retry="sometimes",
    ),
    ErrorCode(
        "CATALOG_UNAVAILABLE",
        message="Spark cannot use the database.",
        cause="As above, seen through JDBC.",
        remedy="Check `catalog_url`, and that Spark's host reaches the server.",
        retry="yes",
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
        cause="Missing rights; for SQLite also to the folder.",
        remedy="Give them.",
        retry="no",
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
