"""Declared databases: the sections `[sources.NAME]` and `[sinks.NAME]`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from headrace.config.sections import texts
from headrace.config.settings import DeclaredSink, DeclaredSource
from headrace.errors import UserError
from headrace.suggestions import did_you_mean

CAPTURES = ("wal", "trigger", "auto")
"""Ways in which a declared source can be captured."""

SOURCE_KEYS = ("url", "url_env", "tables", "text_columns", "capture", "failover", "kind")
SINK_KEYS = (
    *("from", "url", "url_env", "table", "key", "schedule", "kind"),
    *("on_conflict", "placement", "distributed_by", "colocated_with"),
)
"""Keys that a declared source or sink of PostgreSQL may have, besides those of shards."""

SHARD_KEYS = ("shards", "shard_column", "availability", "same_key")
"""Keys that a declared source with shards may have in place of its URL."""


def read_source(file: Path, name: str, of: object) -> DeclaredSource:
    """Read a section `[sources.NAME]`; its kind decides which keys it may hold.

    Raises:
        UserError: `CONFIG_INVALID`.
    """
    given = dict(of) if isinstance(of, dict) else {"": of}
    url = [f"{prefix}{given.pop(key)}" for key, prefix in (("url", ""), ("url_env", "env:")) if key in given]
    tables, text_columns = (texts(given.pop(key, [])) for key in ("tables", "text_columns"))
    shards = {key: given.pop(key) for key in SHARD_KEYS if key in given} if "shards" in given else {}
    url = [*url, ""] if shards else url
    capture, failover = given.pop("capture", None), given.pop("failover", False)
    kind = given.pop("kind", None)
    odd = failover not in (True, False) or (kind is None and bool(given))
    odd = odd or (kind in (None, "postgres") and capture not in (None, *CAPTURES))
    named = isinstance(kind, str | None) and isinstance(capture, str | None)
    if odd or not named or len(url) != 1 or not tables or text_columns is None:
        raise UserError(
            "CONFIG_INVALID",
            f"[sources.{name}] in {file} cannot be read.",
            detail=_unknown(given, SOURCE_KEYS) if given and kind is None else None,
            hint='Write url = "postgresql://…", url_env = "NAME" or shards = ["postgresql://…", …], '
            'tables = ["schema.table", …], and where needed '
            'text_columns = ["schema.table.column", …], failover = true, '
            f'capture = "…", one of {", ".join(CAPTURES)}, and kind = "…" for another kind of database.',
        )
    return DeclaredSource(
        url[0],
        tables,
        text_columns,
        None if capture is None else str(capture),
        bool(failover),
        None if kind is None else str(kind),
        given | shards,
    )


def read_sink(file: Path, name: str, of: object) -> DeclaredSink:
    """Read a section `[sinks.NAME]`; its kind decides which further keys it may hold.

    Raises:
        UserError: `CONFIG_INVALID`.
    """
    given = dict(of) if isinstance(of, dict) else {"": of}
    url = [f"{prefix}{given.pop(key)}" for key, prefix in (("url", ""), ("url_env", "env:")) if key in given]
    stream, table = given.pop("from", None), given.pop("table", None)
    key, schedule, kind = texts(given.pop("key", [])), given.pop("schedule", None), given.pop("kind", None)
    named = isinstance(stream, str) and isinstance(table, str)
    odd = kind is None and bool(given.keys() - SINK_KEYS)
    if odd or len(url) != 1 or not named or key is None or not isinstance(schedule, str | None) or "" in given:
        raise UserError(
            "CONFIG_INVALID",
            f"[sinks.{name}] in {file} cannot be read.",
            detail=_unknown(given, SINK_KEYS) if given.keys() - SINK_KEYS and kind is None else None,
            hint='Write from = "shop.revenue", url = "postgresql://…" or url_env = "NAME", table = "schema.table", and '
            'where needed key = ["column", …], schedule = "…", on_conflict = "refuse" or "overwrite", placement = "…", '
            'distributed_by = "column", colocated_with = "schema.table".',
        )
    return DeclaredSink(str(stream), url[0], str(table), key, schedule, None if kind is None else str(kind), given)


def _unknown(given: Mapping[str, object], known: Iterable[str]) -> str:
    odd = [key for key in given if key not in known]
    return f"It has {', '.join(map(repr, odd or given))}, which nothing is known of. " + (
        did_you_mean(odd[0], known) if odd else ""
    )
