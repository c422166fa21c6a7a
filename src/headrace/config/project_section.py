"""The section `[headrace]`, and pools: where everything is, how refreshes are scheduled."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from headrace.config.home_folders import expanded
from headrace.config.settings import Settings
from headrace.errors import UserError
from headrace.schedule import parse_schedule
from headrace.schedule.durations import parse_duration
from headrace.schedule.options import parse_ceiling, parse_consistency, parse_factor, parse_policy

PLACES = (
    "catalog_url",
    "warehouse",
    "spark_master",
    "spark_remote",
    "ivy_settings",
    "jars_dir",
    "format_version",
)
SCHEDULING = (
    "max_concurrent_refreshes",
    "default_schedule",
    "diamond_consistency",
    "diamond_schedule_policy",
    "allow_cycles",
    "max_cycle_rounds",
    "fuse_ceiling",
    "fuse_factor",
    "suspend_after",
    "maintenance_every",
    "keep_history",
    "webhook",
    "on_event",
)
KNOWN = (*PLACES, *SCHEDULING)
"""Keys that the section may hold; each can be set by an environment variable, too."""

SHORTEST_HISTORY = dt.timedelta(days=1)
"""Status tells how well targets were met over so long."""

MOST_CONCURRENT = 32
"""More refreshes at once only wait for each other in one Spark session."""


def read_places(file: Path, values: Mapping[str, object], defaults: Settings) -> dict[str, Any]:
    """Return what the section says of where things are.

    Args:
        file: The file, for messages.
        values: The section, environment variables included.
        defaults: What holds where it says nothing; paths are taken relative to its root.

    Raises:
        UserError: `CONFIG_INVALID`.
    """
    text = {k: str(v) for k, v in values.items()}
    version = text.get("format_version", str(defaults.format_version))
    if version not in ("2", "3"):
        message = f"format_version is {version!r} in {file}."
        raise UserError("CONFIG_INVALID", message, hint="Use 3, or 2 for older readers.")
    return {
        "catalog_url": _absolute_url(text.get("catalog_url") or defaults.catalog_url, defaults.root),
        "warehouse": _absolute_path(text.get("warehouse") or defaults.warehouse, defaults.root),
        "spark_master": text.get("spark_master") or defaults.spark_master,
        "spark_remote": text.get("spark_remote") or None,
        "ivy_settings": _absolute_path(given, defaults.root) if (given := text.get("ivy_settings")) else None,
        "jars_dir": _absolute_path(given, defaults.root) if (given := text.get("jars_dir")) else None,
        "format_version": int(version),
    }


def read_scheduling(
    file: Path, values: dict[str, object], pools: Mapping[str, object], defaults: Settings
) -> dict[str, Any]:
    """Return what the section, and `[pools]`, say of how refreshes are scheduled.

    Args:
        file: The file, for messages.
        values: The section, environment variables included.
        pools: The section `[pools]`.
        defaults: What holds where they say nothing.

    Raises:
        UserError: `CONFIG_INVALID`, `INVALID_SCHEDULE`.
    """
    for pool, quota in pools.items():
        if not isinstance(quota, int) or isinstance(quota, bool) or quota < 1:
            message = f"Pool {pool} has the quota {quota!r} in {file}."
            raise UserError("CONFIG_INVALID", message, hint="Write how many refreshes may run at once, 1 or more.")
    otherwise = {key: getattr(defaults, key) for key in SCHEDULING}
    text = {key: "" if value is None else str(value) for key, value in (otherwise | values).items()}
    most = text["max_concurrent_refreshes"]
    if not re.fullmatch("[0-9]{1,9}", most) or not 1 <= int(most) <= MOST_CONCURRENT:
        message = f"max_concurrent_refreshes is {most!r} in {file}."
        raise UserError("CONFIG_INVALID", message, hint=f"Use a number from 1 to {MOST_CONCURRENT}.")
    return {
        "max_concurrent_refreshes": int(most),
        "default_schedule": _schedule(file, text["default_schedule"]),
        "diamond_consistency": parse_consistency(text["diamond_consistency"]),
        "diamond_schedule_policy": parse_policy(text["diamond_schedule_policy"]),
        "allow_cycles": _flag(file, text["allow_cycles"]),
        "max_cycle_rounds": _count(file, "max_cycle_rounds", text["max_cycle_rounds"]),
        "fuse_ceiling": _checked(parse_ceiling, text["fuse_ceiling"]),
        "fuse_factor": _checked(parse_factor, text["fuse_factor"]),
        "suspend_after": _count(file, "suspend_after", text["suspend_after"]),
        "maintenance_every": _checked(parse_interval, text["maintenance_every"]),
        "keep_history": _checked(parse_keep_history, text["keep_history"]),
        "webhook": _url(text["webhook"]),
        "on_event": _function(text["on_event"]),
        "pools": {pool: int(str(quota)) for pool, quota in pools.items()},
    }


def _schedule(file: Path, text: str) -> str:
    try:
        return parse_schedule(text).text
    except UserError as error:
        raise UserError("INVALID_SCHEDULE", f"default_schedule in {file}: {error.message}", hint=error.hint) from error


def _checked(parse: Callable[[str], object], text: str) -> str:
    parse(text)
    return text


def _flag(file: Path, text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise UserError("CONFIG_INVALID", f"allow_cycles is {text!r} in {file}.", hint="Use true or false.")
    return text.lower() == "true"


def _count(file: Path, key: str, value: object) -> int:
    text = str(value)
    if not re.fullmatch("[0-9]{1,9}", text) or not int(text):
        message = f"{key} is {text!r} in {file}."
        raise UserError("CONFIG_INVALID", message, hint="Use a number of at least 1.")
    return int(text)


def _url(text: str) -> str | None:
    text = text.strip()  # as a secret's file that `echo` wrote
    if text and not re.fullmatch(r"https?://[^/\s][^\s\x00-\x1f\x7f]*", text):
        raise UserError("CONFIG_INVALID", "webhook is no URL.", hint="Write one: https://host/path.")
    return text or None


def _function(text: str) -> str | None:
    if text and not re.fullmatch(r"[\w.]+:[\w.]+", text):
        raise UserError("CONFIG_INVALID", f"on_event is {text!r}.", hint="Write module:function.")
    return text or None


def parse_interval(text: str) -> int | None:
    """Return seconds of a duration; None for `never`.

    Raises:
        UserError: `CONFIG_INVALID`.
    """
    if text.strip().lower() == "never":
        return None
    seconds = parse_duration(text)
    if not seconds:
        message = f"maintenance_every is {text!r}."
        raise UserError("CONFIG_INVALID", message, hint="Write a duration, such as '1 day', or 'never'.")
    return seconds


def parse_keep_history(text: str) -> dt.timedelta | None:
    """Return for how long refreshes stay in the history; None for `forever`.

    Raises:
        UserError: `CONFIG_INVALID`.
    """
    if text.strip().lower() == "forever":
        return None
    age = dt.timedelta(seconds=parse_duration(text) or 0)
    if age < SHORTEST_HISTORY:
        message = f"keep_history is {text!r}."
        raise UserError("CONFIG_INVALID", message, hint="Write at least a day, such as '90 days', or 'forever'.")
    return age


def _absolute_url(url: str, root: Path) -> str:
    match = re.fullmatch(r"sqlite:///(?!/)(.+)", url)
    return f"sqlite:///{root / match[1]}" if match else url


def _absolute_path(path: str, root: Path) -> str:
    return path if "://" in path or path.startswith("file:") else str(root / expanded(path))
