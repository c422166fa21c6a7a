"""Settings of an object store: section [storage], properties of Iceberg's file access."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from headrace.errors import UserError

S3_FILE_IO = "org.apache.iceberg.aws.s3.S3FileIO"
IMPLEMENTATION = "io-impl"

SECRETS = r"secret|token|password|credential|account[.-]key|sas|signature|connection-string|cryption-key"
"""Pattern of the names of properties that are secrets, in whatever case."""

_SECRET = re.compile(SECRETS, re.IGNORECASE)
_SSE_KEY = "s3.sse.key"
_NAME = re.compile(r"[\w.-]+")
_VARIABLE = "env:"


def is_secret(name: str) -> bool:
    """Return whether a property's value is to be seen by nobody."""
    return _SECRET.search(name) is not None


def file_access(warehouse: str, storage: Mapping[str, str]) -> dict[str, str]:
    """Return the properties with which Iceberg reaches a warehouse, what S3 implies included.

    Args:
        warehouse: A folder or a URL.
        storage: What `[storage]` says.
    """
    implied = {IMPLEMENTATION: S3_FILE_IO} if warehouse.startswith("s3://") else {}
    return {**implied, **storage}


def warehouses(
    warehouse: str, storage: Mapping[str, str], spark_options: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Return warehouses of the project and of its further catalogs, with how each is reached.

    Args:
        warehouse: The project's.
        storage: What `[storage]` says.
        spark_options: What `[spark]` says, of `lake` and of other catalogs.
    """
    prefix = "spark.sql.catalog."
    options = {name.removeprefix(prefix): value for name, value in spark_options.items() if name.startswith(prefix)}
    of: dict[str, dict[str, str]] = {name.partition(".")[0]: {} for name in options}
    for name, value in options.items():
        catalog, _, key = name.partition(".")
        of[catalog][key] = value
    own = {**file_access(warehouse, storage), **of.pop("lake", {})}
    others = {given.pop("warehouse"): given for given in of.values() if "warehouse" in given}
    return {**others, warehouse: own}


def read_storage(file: Path, section: Mapping[str, object], environ: Mapping[str, str]) -> dict[str, str]:
    """Return what the section `[storage]` says, with the values of the variables that it names.

    Args:
        file: The settings' file.
        section: The section.
        environ: The process's environment.

    Raises:
        UserError: `CONFIG_INVALID`.
    """
    found: dict[str, str] = {}
    given = _flat(section)
    own_key = _SSE_KEY if given.get("s3.sse.type") == "custom" else None  # else it names a key of a service
    for name, value in given.items():
        if not _NAME.fullmatch(name) or not isinstance(value, str | bool | int | float):
            raise _invalid(f"{name} in [storage] of {file} cannot be read.", _FORM)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        if text.startswith(_VARIABLE):
            found[name] = _from_environment(file, name, text.removeprefix(_VARIABLE), environ)
        elif is_secret(name) or name == own_key:
            what = f"{name} in [storage] of {file} is a secret, which does not belong into a file."
            raise _invalid(what, f'Write "{name}" = "env:NAME", and set that variable.')
        else:
            found[name] = text
    return found


_FORM = 'Write properties of Iceberg\'s file access with their values, such as "s3.endpoint" = "https://host:9000".'


def _from_environment(file: Path, name: str, variable: str, environ: Mapping[str, str]) -> str:
    if not (value := environ.get(variable)):
        what = f"{name} in [storage] of {file} is to come from the variable {variable}, which is not set."
        raise _invalid(what, f"Set {variable}.")
    return value


def _flat(section: Mapping[str, object], prefix: str = "") -> dict[str, object]:
    """Return names as TOML means them without quotes: `s3.endpoint` is a table there."""
    flat: dict[str, object] = {}
    for key, value in section.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, Mapping) else {f"{prefix}{key}": value}
    return flat


def _invalid(what: str, hint: str) -> UserError:
    return UserError("CONFIG_INVALID", what, hint=hint)
