"""Errors of project folders and settings."""

from __future__ import annotations

from headrace.error_codes.code import ErrorCode

CODES = (
    ErrorCode(
        "PROJECT_NOT_FOUND",
        message="There is no headrace.toml.",
        cause="Not in the folder given, nor in one above the working folder.",
        remedy="`headrace init <folder>`, or name one with `--project`.",
        retry="no",
    ),
    ErrorCode(
        "PROJECT_EXISTS",
        message="The folder is a project already.",
        cause="It has a headrace.toml.",
        remedy="Edit that, or name another folder.",
        retry="no",
    ),
    ErrorCode(
        "CONFIG_INVALID",
        message="A setting is wrong.",
        cause=(
            "Unknown section or setting, no valid TOML, or a value out of range, such as a database that "
            "cannot hold the catalog."
        ),
        remedy="See [configuration](configuration.md).",
        retry="no",
    ),
    ErrorCode(
        "FOLDER_NOT_EMPTY",
        message="The demo will not write into that folder.",
        cause="It holds something that is no earlier demo.",
        remedy="Name another folder.",
        retry="no",
    ),
)
