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
        "PROJECT_NOT_OWNED",
        message="The project around the working folder is another user's.",
        cause="Nobody named it, and its folder, `headrace.toml` or `functions.py` belongs neither to you nor to root.",
        remedy="If you trust it, name it with `--project` or `HEADRACE_PROJECT`.",
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
        "ADDRESS_INVALID",
        message="An address to listen at cannot be read.",
        cause="It is no `HOST:PORT`, or the port is above 65535; or `--proxy-from` is no address of a machine.",
        remedy="Write `127.0.0.1:9464`, `[::1]:9464`, or a port alone.",
        retry="no",
    ),
    ErrorCode(
        "PAGE_NOT_CLOSED",
        message="`headrace web` would let anybody in.",
        cause="The address can be reached by others, and neither a password nor a proxy asks who they are.",
        remedy="`--password-env NAME`, or `--proxy-header NAME --proxy-from ADDRESS`; or a loopback address.",
        retry="no",
    ),
    ErrorCode(
        "PROJECT_MOVED",
        message="The project's folder was moved or renamed.",
        cause="Iceberg's metadata names files by their whole path, which no longer leads to them.",
        remedy="Move it back, or make a link of the old name that leads to the new one.",
        retry="no",
    ),
    ErrorCode(
        "PROJECT_COPIED",
        message="The project's folder is a copy of another project.",
        cause="Its tables are that project's files, and a refresh would write there.",
        remedy="Work in the original, or make a new project and create the stream tables in it.",
        retry="no",
    ),
    ErrorCode(
        "CATALOG_COPIED",
        message="The catalog is in another PostgreSQL database than the one that the project was made or last "
        "confirmed in, or its SQLite file is a copy of one that is still there.",
        cause="It is a copy or a restored dump, or `pg_upgrade` made its server. If both were worked with, they would "
        "write to and delete the same files, and read the same slots.",
        remedy="For tests make a project of its own. Where this one takes the other's place, `headrace move-catalog "
        "--here` confirms it. Looking works meanwhile.",
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
