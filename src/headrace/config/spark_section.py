"""Options that are passed on to Spark: the section `[spark]`, and an environment variable."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from headrace.config.project_section import KNOWN
from headrace.errors import UserError
from headrace.suggestions import did_you_mean

SPARK_OPTIONS = "HEADRACE_SPARK_OPTIONS"
"""Environment variable with Spark options, `name=value` separated by spaces, quoted as in a shell; each one wins over
the file's."""


def read_spark_options(file: Path, section: Mapping[str, object], environ: Mapping[str, str]) -> dict[str, str]:
    """Return options by their full names.

    Args:
        file: The file, for messages.
        section: The section; names with dots may be tables within each other.
        environ: The process's environment.

    Raises:
        UserError: `CONFIG_INVALID`.
    """
    options = _flatten(section)
    _check_spark_options(file, options)
    return options | _from_text(environ.get(SPARK_OPTIONS, ""))


def _check_spark_options(file: Path, options: Mapping[str, str]) -> None:
    """Refuse what is no Spark option: Spark would take it, and nobody would ever read it."""
    odd = next((name for name in options if not name.startswith("spark.")), None)
    if odd is None:
        return
    if odd in KNOWN:
        raise UserError(
            "CONFIG_INVALID",
            f"{file} has {odd} in [spark], where nobody reads it.",
            hint="A key belongs to the section above it: move the line below [headrace], before the line [spark].",
        )
    raise UserError(
        "CONFIG_INVALID",
        f"{file} has {odd} in [spark], which is no Spark option.",
        hint=f'{did_you_mean(odd, KNOWN)}Write full names in quotes, such as "spark.driver.memory" = "4g".',
    )


def _flatten(options: Mapping[str, object], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, value in options.items():
        name = f"{prefix}{key}"
        if isinstance(value, dict):
            flat |= _flatten(value, f"{name}.")
        else:
            flat[name] = str(value).lower() if isinstance(value, bool) else str(value)
    return flat


def _from_text(text: str) -> dict[str, str]:
    try:
        pairs = [part.partition("=") for part in shlex.split(text)]
    except ValueError as error:
        raise UserError("CONFIG_INVALID", f"{SPARK_OPTIONS} has an unclosed quote.", detail=text) from error
    for name, sign, _ in pairs:
        if not sign or not name.startswith("spark."):
            raise UserError(
                "CONFIG_INVALID",
                f"{SPARK_OPTIONS} has {name!r}, which is no Spark option.",
                hint="Write full names: spark.driver.memory=4g spark.ui.enabled=true (separated by spaces).",
            )
    return {name: value for name, _, value in pairs}
