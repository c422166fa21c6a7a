"""Options of a source with shards: those of each server, and what all have in common.

SHARDS ('url' [AS name] [CAPTURE wal | trigger | auto], …) TABLES (…) [SHARD COLUMN name]
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.errors import UserError
from headrace.sources.nodes.mirror_shapes import NODES
from headrace.sources.postgres.connection import check_url
from headrace.sources.postgres.option_names import AVAILABILITY, CAPTURE, FAILOVER, SAME_KEY, SHARD_COLUMN
from headrace.sources.postgres.setup.open_capture import WAYS, check_names, options_of, refuse_parts
from headrace.sources.postgres.setup.projection import Part
from headrace.sources.source_kind import Json
from headrace.sql.reader.syntax.statement_cursor import StatementCursor

COLUMN = "__shard"
"""The column of mirrors that says of which shard a row is, unless it was given another name."""

AVAILABILITIES = ("partial", "strict")
SAME_KEYS = ("error", "allowed")
MADE = "made"
"""In options: how many shards were ever named by number, so that no name comes again."""

OWN = ("url", "slot", CAPTURE, FAILOVER)
"""Options that each server has for itself."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A server as a user names it.

    Args:
        url: Connection string, without a password.
        name: What rows of it have in the shard column; None for a number.
        capture: How it is captured; None as the source is.
    """

    url: str
    name: str | None = None
    capture: str | None = None


def read_shards(texts: Sequence[str], form: str) -> tuple[Shard, ...]:
    """Read shards as they were written.

    Raises:
        UserError: `SYNTAX_ERROR`.
    """
    return tuple(_read(text, form) for text in texts)


def _read(text: str, form: str) -> Shard:
    cursor = StatementCursor(text)
    cursor.form = form
    shard = read_shard(cursor)
    if not cursor.done:
        raise cursor.fail("AS or CAPTURE, in this order and once, was expected here")
    return shard


def read_shard(cursor: StatementCursor) -> Shard:
    """Read `'url' [AS name] [CAPTURE way]`.

    Raises:
        UserError: `SYNTAX_ERROR`.
    """
    url = cursor.string("A connection string")
    name = cursor.name("A name without quotes") if cursor.take("AS") else None
    capture = cursor.mode(*(way.upper() for way in WAYS)).lower() if cursor.take("CAPTURE") else None
    return Shard(url, name, capture)


def shards_of(said: object) -> tuple[Shard, ...]:
    """Return shards as Python or a file has them: URLs, names mapped to them, or tables.

    Raises:
        UserError: `INVALID_OPTION`.
    """
    named = list(said.items()) if isinstance(said, Mapping) else [(None, of) for of in _listed(said)]
    return tuple(_shard(name, of) for name, of in named)


def _listed(said: object) -> Sequence[object]:
    if isinstance(said, str) or not isinstance(said, Sequence):
        raise _invalid(repr(said))
    return said


def _shard(name: str | None, of: object) -> Shard:
    if isinstance(of, Shard):
        return of
    if isinstance(of, str):
        return Shard(of, name)
    if isinstance(of, Mapping) and "url" in of and of.keys() <= {"url", "name", "capture"}:
        return Shard(str(of["url"]), of.get("name", name), of.get("capture"))
    raise _invalid(repr(of))


def _invalid(what: str) -> UserError:
    return UserError(
        "INVALID_OPTION",
        f"{what} names no shards.",
        hint="Write a list of connection strings, names mapped to them, or tables with url, name and capture.",
    )


def shard_options(
    name: str,
    shards: Sequence[Shard],
    tables: Mapping[str, tuple[str, str]],
    as_text: Sequence[str] = (),
    parts: Mapping[str, Part] | None = None,
    *,
    capture: str,
    failover: bool,
    column: str = COLUMN,
    availability: str = AVAILABILITIES[0],
    same_key: str = SAME_KEYS[0],
) -> dict[str, Any]:
    """Return the options that the catalog keeps of a new source with shards; see `options_of`.

    Args:
        column: Name of the column that says of which shard a row is.
        availability: `partial`: a server that is down holds back itself only; `strict`: all of them.
        same_key: `error`, or `allowed`, where the shard is part of the key.

    Raises:
        UserError: `INVALID_OPTION`, `INVALID_NAME`, `SOURCE_URL_INVALID`, `SHARD_EXISTS`.
    """
    for value, allowed, of in ((availability, AVAILABILITIES, AVAILABILITY), (same_key, SAME_KEYS, SAME_KEY)):
        if value not in allowed:
            raise UserError("INVALID_OPTION", f"'{value}' is no {of}.", hint=f"Use {' or '.join(allowed)}.")
    if not shards:
        raise UserError("INVALID_OPTION", "A source needs a shard.", hint="Write SHARDS ('postgresql://…', …).")
    _check_column(column)
    common = options_of(name, shards[0].url, tables, as_text, parts, capture=capture, failover=failover)
    own = {option: common.pop(option) for option in OWN}
    options = {**common, NODES: {}, SHARD_COLUMN: column, AVAILABILITY: availability, SAME_KEY: same_key, MADE: 0}
    for shard in shards:
        options = with_shard(name, {**options, "capture": own["capture"], "failover": own["failover"]}, shard)
    return options


def _check_column(column: str) -> None:
    if not re.fullmatch(r"[^\W\d]\w*", column) or column.startswith("__hr_"):
        raise UserError(
            "INVALID_NAME", f"'{column}' cannot be the shard column.", hint="Use letters, digits and underscores."
        )


def with_shard(source: str, options: Json, shard: Shard) -> dict[str, Any]:
    """Return options with a further server.

    Args:
        source: The source.
        options: As they are.
        shard: The server.

    Raises:
        UserError: `INVALID_OPTION`, `INVALID_NAME`, `SOURCE_URL_INVALID`, `SHARD_EXISTS`, `SHARD_TWICE`.
    """
    nodes, made = options[NODES], int(options[MADE])
    name = shard.name
    while name is None or (shard.name is None and name in nodes):
        made += 1
        name = f"s{made}"
    if name in nodes:
        raise UserError(
            "SHARD_EXISTS", f"Source {source} has a shard {name} already.", hint="Give this one another name: AS …"
        )
    own = _own(source, options, name, shard)
    common = {option: of for option, of in options.items() if option not in OWN}
    return {**common, NODES: {**nodes, name: own}, MADE: made}


def with_shard_as_others(source: str, options: Json, shard: Shard) -> dict[str, Any]:
    """Return options with a further server, captured as those that are there; see `with_shard`.

    Raises:
        UserError: `INVALID_OPTION`, `INVALID_NAME`, `SOURCE_URL_INVALID`, `SHARD_EXISTS`, `SHARD_TWICE`.
    """
    others = options[NODES].values()
    ways = {of["capture"] for of in others}
    common = {"capture": ways.pop() if len(ways) == 1 else "wal", "failover": any(of["failover"] for of in others)}
    return with_shard(source, {**options, **common}, shard)


def _own(source: str, options: Json, name: str, shard: Shard) -> dict[str, Any]:
    way = shard.capture or options.get("capture", "wal")
    if way not in WAYS:
        raise UserError("INVALID_OPTION", f"'{way}' is no way to capture.", hint=f"Use {' or '.join(WAYS)}.")
    refuse_parts(way, options.get("parts", {}))
    check_url(shard.url)
    check_names(name)
    for other, of in options[NODES].items():
        if of["url"] == shard.url and other != name:
            raise shard_twice(name, other, "the same connection string")
    failover = bool(options.get("failover")) and way != "trigger"
    stem = re.sub(r"[^a-z0-9_]", "_", f"{source}_{name}".lower())[:40]
    slot = f"headrace_{stem}_{uuid.uuid4().hex[:8]}"
    return {"url": shard.url, "slot": slot, "capture": way, "failover": failover}


def moved_shard(source: str, options: Json, name: str, url: str) -> dict[str, Any]:
    """Return options with a shard on another server, where it begins anew.

    Raises:
        UserError: `SHARD_UNKNOWN`, `SOURCE_URL_INVALID`, `SHARD_TWICE`.
    """
    require_shards(source, options, [name])
    former = options[NODES][name]
    own = _own(source, {**options, "failover": former["failover"]}, name, Shard(url, name, former["capture"]))
    return {**options, NODES: {**options[NODES], name: own}}


def without_shard(source: str, options: Json, name: str) -> dict[str, Any]:
    """Return options without a server.

    Raises:
        UserError: `SHARD_UNKNOWN`, `SOURCE_WITHOUT_TABLES`.
    """
    require_shards(source, options, [name])
    left = {other: of for other, of in options[NODES].items() if other != name}
    if not left:
        raise UserError(
            "SOURCE_WITHOUT_TABLES",
            f"Source {source} would have no shard left.",
            hint=f"Drop the source instead: `headrace source drop {source}`.",
        )
    return {**options, NODES: left}


def require_shards(source: str, options: Json, names: Collection[str]) -> None:
    """Refuse names that no shard of a source has.

    Raises:
        UserError: `SHARD_UNKNOWN`.
    """
    if not has_shards(options):
        raise UserError(
            "SHARD_UNKNOWN",
            f"Source {source} has no shards; it was created for one server.",
            hint="Create it anew with SHARDS (…).",
        )
    if unknown := [name for name in names if name not in options[NODES]]:
        raise UserError(
            "SHARD_UNKNOWN",
            f"Source {source} has no shard {unknown[0]}.",
            hint=f"It has {', '.join(options[NODES])}.",
        )


def node_options(options: Json, name: str) -> dict[str, Any]:
    """Return the options of one server, as a source of that server alone has them."""
    return {**options, **options[NODES][name]}


def has_shards(options: Json) -> bool:
    """Return whether a source has shards."""
    return NODES in options


def shard_twice(name: str, other: str, why: str) -> UserError:
    """Return the error for one database that is named as two shards."""
    return UserError(
        "SHARD_TWICE",
        f"Shards {other} and {name} are the same database: {why}.",
        hint="Name each database once; every row of it would be there twice.",
    )
