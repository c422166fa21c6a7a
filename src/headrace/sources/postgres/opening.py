"""From what a user writes to options that the catalog keeps, and from those to a capture."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from headrace.errors import UserError
from headrace.names import TableName
from headrace.sources.postgres.capture import Captured, PostgresCapture
from headrace.sources.postgres.connection import check_url
from headrace.sources.postgres.spool import Spool
from headrace.sources.postgres.tables import from_json
from headrace.sources.postgres.trigger_capture import TriggerCapture

KIND = "postgres"

WAYS: Mapping[str, type[PostgresCapture]] = {"wal": PostgresCapture, "trigger": TriggerCapture}
"""How tables can be captured; the first is what is meant when nothing is said."""


def options_of(
    name: str,
    url: str,
    tables: Mapping[str, tuple[str, str]],
    as_text: Sequence[str] = (),
    capture: str = next(iter(WAYS)),
) -> dict[str, Any]:
    """What the catalog keeps of a new source.

    Args:
        name: The source.
        url: Connection string, without a password.
        tables: Schema and name of the tables by the names of their mirrors.
        as_text: Columns to keep as text, as `schema.table.column`.
        capture: How: one of `WAYS`.

    Raises:
        UserError: `SOURCE_URL_INVALID`, `INVALID_NAME`, `INVALID_OPTION`.
    """
    if capture not in WAYS:
        raise UserError("INVALID_OPTION", f"'{capture}' is no way to capture.", hint=f"Use {' or '.join(WAYS)}.")
    check_url(url)
    for part in (name, *tables):
        if not re.fullmatch(r"[^\W\d]\w*", part) or part.startswith("_headrace"):
            raise UserError(
                "INVALID_NAME",
                f"'{part}' cannot be the name of a source or a mirror.",
                hint="Use letters, digits and underscores; AS gives a table's mirror another name.",
            )
    stem = re.sub(r"[^a-z0-9_]", "_", name.lower())[:40]
    slot = f"headrace_{stem}_{uuid.uuid4().hex[:8]}"
    listed = {mirror: list(of) for mirror, of in tables.items()}
    return {"url": url, "slot": slot, "tables": listed, "as_text": list(as_text), "capture": capture}


def open_capture(
    options: Mapping[str, Any], mirrors: Mapping[TableName, Mapping[str, Any] | None], folder: str
) -> PostgresCapture:
    """The capture of a source.

    Args:
        options: As `options_of` made them.
        mirrors: What the catalog keeps of each mirror; None for those never landed, or gone.
        folder: Where landings of the source have their folders, for rows between reading and landing.
    """
    captured = Captured(
        url=options["url"],
        slot=options["slot"],
        names={name: tuple(options["tables"][name.table]) for name in mirrors},
        as_text=tuple(options["as_text"]),
        known={name: from_json(details) for name, details in mirrors.items() if details is not None},
    )
    return WAYS[way_of(options)](captured, Spool(folder))


def way_of(options: Mapping[str, Any]) -> str:
    """How a source is captured; those of former versions do not say."""
    return str(options.get("capture", next(iter(WAYS))))
