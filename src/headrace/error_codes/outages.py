"""Errors that are no fault of the table that met them; read by retries, watches, upgrades."""

from __future__ import annotations

from headrace.error_codes.sections import catalog
from headrace.error_codes.table import SECTIONS

OUTAGES = frozenset(code.code for section in SECTIONS for code in section.codes if code.outage)
"""Something that all tables need is away. Other tables meet it, too, and nobody has to change one for it to pass."""

CATALOG_OUTAGES = frozenset(code.code for code in catalog.CODES if code.outage)
"""The catalog is away, or refuses to be written."""

SURROUNDINGS = OUTAGES | {"SPARK_LOST", "EXECUTOR_LOST"}
"""Errors that prove nothing against a table. A loss of Spark or of executors may come from elsewhere, or each time from
a table that takes too much memory: it counts as a failure of the table, so as to suspend that one in the end."""
