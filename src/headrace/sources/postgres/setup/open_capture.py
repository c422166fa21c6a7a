"""Makes options for the catalog from a user's request, and a capture from options."""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headrace.errors import UserError
from headrace.names import TableName
from headrace.sources.nodes.mirror_shapes import NODES
from headrace.sources.postgres.citus.cluster_detection import LogCapture
from headrace.sources.postgres.connection import check_url
from headrace.sources.postgres.remote_tables import from_json
from headrace.sources.postgres.setup.projection import Part
from headrace.sources.postgres.snapshot.snapshots import Told
from headrace.sources.postgres.spool.spool import Spool
from headrace.sources.postgres.table_syntax import split_table
from headrace.sources.postgres.triggers.auto_capture import AutoCapture
from headrace.sources.postgres.triggers.trigger_capture import TriggerCapture
from headrace.sources.postgres.wal.net_collector import MOST
from headrace.sources.postgres.wal.wal_capture import LIMIT, Captured, PostgresCapture

WAYS: Mapping[str, type[LogCapture | PostgresCapture | AutoCapture]] = {
    "wal": LogCapture,
    "trigger": TriggerCapture,
    "auto": AutoCapture,
}
"""Ways to capture tables; the first is the default."""


def options_of(
    name: str,
    url: str,
    tables: Mapping[str, tuple[str, str]],
    as_text: Sequence[str] = (),
    parts: Mapping[str, Part] | None = None,
    capture: str = next(iter(WAYS)),
    failover: bool = False,
) -> dict[str, Any]:
    """Return the options that the catalog keeps of a new source.

    Args:
        name: The source.
        url: Connection string, without a password.
        tables: Schema and name of the tables by the names of their mirrors.
        as_text: Columns to keep as text, as `schema.table.column`.
        parts: What is captured of tables of which not all is, by the names of their mirrors.
        capture: How: one of `WAYS`.
        failover: Replicas keep the slot in step.

    Raises:
        UserError: `SOURCE_URL_INVALID`, `INVALID_NAME`, `INVALID_OPTION`.
    """
    if capture not in WAYS:
        raise UserError("INVALID_OPTION", f"'{capture}' is no way to capture.", hint=f"Use {' or '.join(WAYS)}.")
    refuse_parts(capture, parts or {})
    if failover and capture == "trigger":
        raise UserError(
            "INVALID_OPTION",
            "failover is for capture from the write-ahead log: triggers have no slot.",
            hint="Leave it out, or use capture = 'wal'.",
        )
    check_url(url)
    check_names(name, *tables)
    stem = re.sub(r"[^a-z0-9_]", "_", name.lower())[:40]
    slot = f"headrace_{stem}_{uuid.uuid4().hex[:8]}"
    listed = {mirror: list(of) for mirror, of in tables.items()}
    options = {"url": url, "slot": slot, "tables": listed, "as_text": list(as_text), "capture": capture}
    return options | {"parts": _kept(parts or {}), "failover": failover}


def refuse_parts(capture: str, parts: Mapping[str, object]) -> None:
    """Refuse columns and conditions of tables that are captured in both ways.

    Raises:
        UserError: `INVALID_OPTION`.
    """
    if parts and capture == "auto":
        raise UserError(
            "INVALID_OPTION",
            f"COLUMNS and WHERE of {', '.join(sorted(parts))} are for capture in one way: what triggers can leave out, "
            "the write-ahead log perhaps cannot.",
            hint="Leave them out, or use capture = 'wal' or 'trigger'.",
        )


def _kept(parts: Mapping[str, Part]) -> dict[str, Any]:
    return {mirror: {"columns": list(part.columns), "where": part.where} for mirror, part in parts.items()}


def check_names(*names: str) -> None:
    """Refuse names that a source or a mirror cannot have.

    Raises:
        UserError: `INVALID_NAME`.
    """
    for part in names:
        if not re.fullmatch(r"[^\W\d]\w*", part) or part.startswith("_headrace"):
            raise UserError(
                "INVALID_NAME",
                f"'{part}' cannot be the name of a source or a mirror.",
                hint="Use letters, digits and underscores; AS gives a table's mirror another name.",
            )


def with_tables(
    options: Mapping[str, Any],
    tables: Mapping[str, tuple[str, str]],
    as_text: Sequence[str] = (),
    parts: Mapping[str, Part] | None = None,
) -> dict[str, Any]:
    """Return options with further tables; arguments as for `options_of`.

    Raises:
        UserError: `INVALID_NAME`, `INVALID_OPTION`, `TABLE_EXISTS`, `DUPLICATE_TABLE`, `COLUMN_NOT_FOUND`.
    """
    for way in ways_of(options):
        refuse_parts(way, parts or {})
    check_names(*tables)
    for mirror, of in tables.items():
        if mirror in options["tables"]:
            raise UserError(
                "TABLE_EXISTS",
                f"The source has a mirror {mirror} already.",
                hint="Give this table's mirror another name: ADD TABLES (… AS name).",
            )
        if list(of) in options["tables"].values():
            raise UserError(
                "DUPLICATE_TABLE",
                f"The source follows {'.'.join(of)} already.",
                hint="Name each table once; stream tables may read one mirror as often as they like.",
            )
    added = {".".join(of) for of in tables.values()}
    if strange := [column for column in as_text if column.rpartition(".")[0] not in added]:
        raise UserError(
            "COLUMN_NOT_FOUND",
            f"No table that is added has the column {strange[0]}, which should be kept as text.",
            hint="Write schema.table.column, of a table that is added.",
        )
    listed = {**options["tables"], **{mirror: list(of) for mirror, of in tables.items()}}
    narrow = {**options.get("parts", {}), **_kept(parts or {})}
    return {**options, "tables": listed, "as_text": sorted({*options["as_text"], *as_text}), "parts": narrow}


def without_tables(options: Mapping[str, Any], mirrors: Iterable[str]) -> dict[str, Any]:
    """Return a source's options without some mirrors, and without what was said of their tables."""
    left = {mirror: of for mirror, of in options["tables"].items() if mirror not in set(mirrors)}
    stay = {".".join(of) for of in left.values()}
    as_text = [column for column in options["as_text"] if column.rpartition(".")[0] in stay]
    parts = {mirror: part for mirror, part in options.get("parts", {}).items() if mirror in left}
    return {**options, "tables": left, "as_text": as_text, "parts": parts}


def mirrors_of(source: str, options: Mapping[str, Any], tables: Sequence[str]) -> tuple[str, ...]:
    """Return the mirrors that a user names, by their own names or by those of tables.

    Args:
        source: The source.
        options: As `options_of` made them.
        tables: `mirror`, `source.mirror` or `schema.table`, as PostgreSQL writes names.

    Raises:
        UserError: `SOURCE_TABLE_UNKNOWN`, `INVALID_NAME`.
    """
    found = []
    for text in tables:
        schema, name = split_table(text)
        own = text.removeprefix(f"{source}.")
        mirrors = [m for m, of in options["tables"].items() if tuple(of) == (schema, name)]
        if own in options["tables"]:
            mirrors = [own]
        if not mirrors:
            raise UserError(
                "SOURCE_TABLE_UNKNOWN",
                f"Source {source} has no table {text}.",
                hint=f"It has {', '.join(sorted(options['tables']))}.",
            )
        found += mirrors
    return tuple(dict.fromkeys(found))


def open_capture(
    options: Mapping[str, Any],
    mirrors: Mapping[TableName, Mapping[str, Any] | None],
    folder: str,
    *,
    gone: Iterable[TableName] = (),
    position: Mapping[str, Any] | None = None,
    told: Told = lambda _: None,
    landings: int | None = None,
    most: int = MOST,
    ended: threading.Event | None = None,
) -> LogCapture | PostgresCapture | AutoCapture:
    """Return the capture of a source.

    Args:
        options: As `options_of` made them.
        mirrors: What the catalog keeps of each mirror; None for those never landed, or gone.
        folder: Where landings of the source have their folders, for rows between reading and landing.
        gone: Mirrors whose table was dropped.
        position: What is landed; None before the first landing.
        told: Told how far a snapshot is.
        landings: How many this process has published; the first ones are small. None for no such care.
        most: Changes that are held in memory at most.
        ended: Set, by another thread, to have copying end.
    """
    captured = Captured(
        url=options["url"],
        slot=options["slot"],
        names={name: tuple(options["tables"][name.table]) for name in mirrors},
        as_text=tuple(options["as_text"]),
        known={name: from_json(details) for name, details in mirrors.items() if details is not None},
        gone=frozenset(gone),
        position=position,
        failover=bool(options.get("failover")),
        parts={
            name: Part(tuple(part["columns"]), part["where"])
            for name in mirrors
            if (part := options.get("parts", {}).get(name.table)) is not None
        },
    )
    limit = LIMIT if landings is None else limit_after(landings)
    return WAYS[way_of(options)](captured, Spool(folder, ended=ended), told=told, limit=limit, most=most)


FIRST_LIMIT, GROWTH = 50_000, 4
"""Messages of a process's first landing, about, and how many times as many the next one has, up to `LIMIT`. A process
that is killed every few seconds would never publish what takes longer than it lives."""


UNLIMITED = (1 << 31) - 1


def limit_after(landings: int) -> int:
    """Return the most messages of a landing after so many published; below 0 all there are."""
    if landings < 0:
        return UNLIMITED
    grown: int = GROWTH ** min(landings, 9)
    return min(LIMIT, FIRST_LIMIT * grown)


def ways_of(options: Mapping[str, Any]) -> set[str]:
    """Return how the servers of a source are captured."""
    return {way_of(of) for of in options[NODES].values()} if NODES in options else {way_of(options)}


def way_of(options: Mapping[str, Any]) -> str:
    """Return how a source is captured; sources of former versions by their default."""
    return str(options.get("capture", next(iter(WAYS))))
