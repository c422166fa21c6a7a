"""Faults of disks and files."""

from __future__ import annotations

from headrace.error_codes.code import ErrorCode

CODES = (
    ErrorCode(
        "DISK_FULL",
        message="A disk is full: the warehouse's, the catalog's, or Spark's own.",
        cause="",
        remedy="Make room. `headrace maintain` removes files that are no longer needed.",
        retry="sometimes",
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
        remedy="Check the warehouse.",
        retry="yes",
    ),
    ErrorCode(
        "FILE_MISSING",
        message="A file that a table needs is missing.",
        cause="Something deleted files of the warehouse.",
        remedy="A FULL refresh rebuilds a stream table from its sources.",
        retry="no",
    ),
)
