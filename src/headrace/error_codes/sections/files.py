"""Faults of disks and files."""

from __future__ import annotations

from headrace.error_codes.code import ErrorCode

CODES = (
    ErrorCode(
        "DISK_FULL",
        message="A disk is full: the warehouse's, the catalog's, or Spark's own.",
        cause="",
        remedy="Make room. `headrace maintain` removes files that are no longer needed.",
        retry="yes",
        outage=True,
    ),
    ErrorCode(
        "FOLDER_NOT_WRITABLE",
        message="A folder cannot be written.",
        cause="",
        remedy="Name one that you may write to.",
        retry="no",
    ),
    ErrorCode(
        "METADATA_UNREADABLE",
        message="A table's metadata file cannot be read.",
        cause="The warehouse is out of reach, or files were deleted.",
        remedy="Check the warehouse. `headrace repair` makes stream tables and mirrors anew of which files are lost.",
        retry="yes",
    ),
    ErrorCode(
        "FILES_NOT_FLUSHED",
        message="Files of a landing could not be written to the disk for good, so nothing was published.",
        cause="The disk of the warehouse fails, or something deletes files there.",
        remedy="Look at both. The source still has the changes.",
        retry="yes",
    ),
    ErrorCode(
        "FILE_MISSING",
        message="A file that a table needs is missing.",
        cause="Something deleted files of the warehouse.",
        remedy="`headrace repair NAME` makes a stream table or mirror anew.",
        retry="no",
    ),
    ErrorCode(
        "STORE_BUCKET_MISSING",
        message="The bucket of the warehouse does not exist.",
        cause="`warehouse` names another one than was made, or another account's.",
        remedy="Make it, or correct `warehouse`. `headrace doctor` tries to write there.",
        retry="no",
    ),
    ErrorCode(
        "STORE_CREDENTIALS",
        message="The object store does not know the credentials that it was given.",
        cause="Wrong or expired keys, or none at all.",
        remedy="Check the keys in `[storage]` and the variables that they name.",
        retry="no",
    ),
    ErrorCode(
        "STORE_DENIED",
        message="The object store denies access to the warehouse.",
        cause="The credentials are known, and may not do what is needed.",
        remedy="Let them read, write, list and delete objects below `warehouse`.",
        retry="no",
    ),
    ErrorCode(
        "STORE_CLOCK_SKEWED",
        message="The object store refuses requests of a machine whose clock is wrong.",
        cause="The clock of this machine, or of an executor's, is minutes off.",
        remedy="Switch time synchronisation (NTP) on, on every machine that runs Headrace or executors.",
        retry="yes",
        outage=True,
    ),
    ErrorCode(
        "STORE_UNAVAILABLE",
        message="The object store does not answer, or has too much to do.",
        cause="Requests were tried several times before.",
        remedy="Try again; check the endpoint in `[storage]` if it stays so.",
        retry="yes",
        outage=True,
    ),
)
