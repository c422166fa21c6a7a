"""Finds Spark options that cannot mean what is written, without starting Spark."""

from __future__ import annotations

import re
from collections.abc import Mapping

from headrace.names import LAKE, STAGING
from headrace.suggestions import did_you_mean

_SIZES = ("spark.driver.memory", "spark.executor.memory", "spark.driver.maxResultSize", "spark.memory.offHeap.size")
_SIZE = re.compile(r"\d+(b|[kmgtp]b?)?", re.IGNORECASE)
_COUNTS = ("spark.executor.cores", "spark.driver.cores", "spark.sql.shuffle.partitions", "spark.executor.instances")
_FLAGS = ("spark.sql.ansi.enabled", "spark.sql.caseSensitive", "spark.ui.enabled", "spark.sql.adaptive.enabled")
_OTHERS = ("spark.sql.session.timeZone", "spark.jars", "spark.jars.packages", "spark.local.dir", "spark.app.name")

_OWN = re.compile(rf"spark\.sql\.catalog\.({LAKE}|{STAGING})(\.|$)")
"""The catalogs that Headrace configures from catalog_url and warehouse."""

Complaint = tuple[str, str, str]
"""An option, what is wrong with it, and what to do."""


def complaints(options: Mapping[str, str]) -> tuple[Complaint, ...]:
    """Return what is wrong with Spark options, in their order."""
    return tuple(found for name, value in options.items() if (found := _complaint(name, value)) is not None)


def _complaint(name: str, value: str) -> Complaint | None:
    if name in _SIZES and not _SIZE.fullmatch(value.strip()):
        return name, f"is {value!r}, which is no size.", "Write a whole number and a unit, such as 4g or 512m."
    if name in _COUNTS and not (value.strip().isdigit() and int(value) > 0):
        return name, f"is {value!r}, which is no number of at least 1.", "Write a whole number."
    if name in _FLAGS and value.strip().lower() not in ("true", "false"):
        return name, f"is {value!r}.", "Write true or false."
    if _OWN.match(name):
        return name, "is one that Headrace sets itself.", "Set catalog_url and warehouse in [headrace] instead."
    known = (*_SIZES, *_COUNTS, *_FLAGS, *_OTHERS)
    if name not in known and (meant := did_you_mean(name, known)) and name.lower() in {k.lower() for k in known}:
        return name, "is spelt in other letters than Spark's, which tells capitals apart.", meant.strip()
    return None
