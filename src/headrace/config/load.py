"""Settings from environment variables, `headrace.toml` and defaults, in this order."""

from __future__ import annotations

import os
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from headrace.config.declarations import read_sink, read_source
from headrace.config.home_folders import expanded
from headrace.config.project_section import KNOWN, read_places, read_scheduling
from headrace.config.sections import Section, read_sections
from headrace.config.settings import Settings, default_settings
from headrace.config.spark_section import read_spark_options
from headrace.errors import UserError
from headrace.suggestions import did_you_mean

FILE_NAME = "headrace.toml"

SECTIONS = (
    "headrace",
    "spark",
    "pools",
    "sources",
    "sinks",
    "optimizer",
    "deploy",
    "serve",
    "lake",
    "openlineage",
    "traces",
    "storage",
)
"""Sections that the file may hold; `[sources.NAME]` and `[sinks.NAME]` by name."""


def load(root: Path | str, environ: Mapping[str, str] | None = None) -> Settings:
    """Read the settings of a project folder.

    Relative SQLite paths and warehouse folders are taken relative to the project folder.

    Args:
        root: The project folder, or its headrace.toml.
        environ: Environment to read `HEADRACE_<KEY>` variables from; the process's own when None.

    Raises:
        UserError: `PROJECT_NOT_FOUND`, `CONFIG_INVALID`.
    """
    path = expanded(root)
    file = path if path.name == FILE_NAME else path / FILE_NAME
    if not _is_there(file):
        raise UserError(
            "PROJECT_NOT_FOUND",
            f"{file.parent} is no Headrace project: it has no {FILE_NAME}.",
            hint="Run `headrace init <folder>` to make one, or pass --project.",
        )
    sections = _read(file)
    environ = os.environ if environ is None else environ
    values = dict(sections.get("headrace", {}))
    for key in KNOWN:
        if (given := environ.get(f"HEADRACE_{key.upper()}")) is not None:
            values[key] = given
    defaults = default_settings(file.parent)
    return replace(
        defaults,
        **read_places(file, values, defaults),
        spark_options=read_spark_options(file, sections.get("spark", {}), environ),
        sources={name: read_source(file, name, of) for name, of in sections.get("sources", {}).items()},
        sinks={name: read_sink(file, name, of) for name, of in sections.get("sinks", {}).items()},
        **read_sections(file, sections, environ),
        **read_scheduling(file, values, sections.get("pools", {}), defaults),
    )


def _is_there(file: Path) -> bool:
    try:
        return stat.S_ISREG(file.stat().st_mode)
    except PermissionError as error:
        raise _unreadable(file, error) from error
    except (OSError, ValueError):
        return False


def _unreadable(file: Path, error: OSError) -> UserError:
    return UserError(
        "CONFIG_INVALID",
        f"{file} cannot be read: {error.strerror or error}.",
        hint="Let this user read the project folder and what is in it.",
    )


def _read(file: Path) -> dict[str, Section]:
    """Return the sections that the file has, by name."""
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError("CONFIG_INVALID", f"{file} is not valid TOML.", detail=str(error)) from error
    except OSError as error:
        raise _unreadable(file, error) from error
    for name in (*(name for name in data if name not in SECTIONS), *(name for name in SECTIONS if name in data)):
        _check_section(file, name, data[name])
    if unknown := sorted(set(data.get("headrace", {})) - set(KNOWN)):
        moved = " They are Spark's, and go into [spark]." if all(key.startswith("spark") for key in unknown) else ""
        raise UserError(
            "CONFIG_INVALID",
            f"{file} has an unknown setting: {', '.join(unknown)}.{moved}",
            hint=f"{did_you_mean(unknown[0], KNOWN)}Settings are {', '.join(KNOWN)}; Spark options go into [spark].",
        )
    return data


def _check_section(file: Path, name: str, section: object) -> None:
    """Refuse sections that nothing is known of, and keys that stand outside of sections."""
    shown = ", ".join(f"[{each}.NAME]" if each in ("sources", "sinks") else f"[{each}]" for each in SECTIONS)
    if name in SECTIONS and isinstance(section, dict):
        return
    if isinstance(section, dict):
        meant = did_you_mean(name, SECTIONS)
        raise UserError(
            "CONFIG_INVALID", f"{file} has an unknown section: [{name}].", hint=f"{meant}It may hold {shown}."
        )
    if name in KNOWN:
        raise UserError(
            "CONFIG_INVALID", f"{file} has {name} outside of a section.", hint="Move it below the line [headrace]."
        )
    raise UserError(
        "CONFIG_INVALID",
        f"{file} has {name} outside of a section, and nothing is known of it.",
        hint=f"{did_you_mean(name, KNOWN)}It may hold {shown}.",
    )
