"""Compares a source with its declaration in `headrace.toml`; connects to no server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headrace.sources.postgres.option_names import SHARDS
from headrace.sources.postgres.shards.declared_shards import require_same_shards
from headrace.sources.postgres.shards.shard_options import has_shards
from headrace.sources.postgres.source_tables import SourceTable, by_mirror
from headrace.sources.source_kind import KeptSource, SourceRequest, TableChanges, differs


def changes(source: KeptSource, declared: SourceRequest) -> TableChanges:
    """Compare a source with what is declared.

    Args:
        source: The source.
        declared: What is declared; columns to keep as text as `schema.table.column`.

    Raises:
        UserError: `SOURCE_DIFFERS`, `DUPLICATE_TABLE`, `INVALID_NAME`, `SYNTAX_ERROR`.
    """
    options, said = source.options, declared.options
    if has_shards(options) or SHARDS in said:
        require_same_shards(source, declared)
    else:
        _require_same_server(source, declared)
    tables = by_mirror(declared.tables)
    written = declared.tables.values() if isinstance(declared.tables, Mapping) else declared.tables
    _refuse_other_tables(source, tables, said["text_columns"])
    added = tuple(text for mirror, text in zip(tables, written, strict=True) if mirror not in options["tables"])
    return TableChanges(added, tuple(sorted(options["tables"].keys() - tables.keys())))


def _require_same_server(source: KeptSource, declared: SourceRequest) -> None:
    options, said = source.options, declared.options
    if options["url"] != declared.address:
        raise differs(source.name, "its connection string", "drop it and declare it anew, or correct the file")
    if said.get("capture", options.get("capture", "wal")) != options.get("capture", "wal"):
        raise differs(source.name, "how it is captured", "drop it and apply again, or correct the file")
    if said.get("failover", False) != options.get("failover", False):
        raise differs(source.name, "failover", "drop it and apply again, or correct the file")


def _refuse_other_tables(source: KeptSource, tables: Mapping[str, SourceTable], texts: Iterable[str]) -> None:
    followed = {tuple(of): mirror for mirror, of in source.options["tables"].items()}
    for mirror, table in tables.items():
        if followed.get((table.schema, table.table), mirror) != mirror:
            what = f"the name of {table.table}'s mirror"
        elif mirror in source.options["tables"] and _kept(source, mirror) != _meant(table, texts):
            what = f"table {mirror}"
        else:
            continue
        raise differs(source.name, what, "drop that table from it, and apply again")


def _kept(source: KeptSource, mirror: str) -> object:
    schema, table = source.options["tables"][mirror]
    part = source.options.get("parts", {}).get(mirror, {"columns": [], "where": None})
    texts = {c for c in source.options["as_text"] if c.rpartition(".")[0] == f"{schema}.{table}"}
    return schema, table, list(part["columns"]), part["where"], texts


def _meant(table: SourceTable, texts: Iterable[str]) -> object:
    own = {c for c in texts if c.rpartition(".")[0] == f"{table.schema}.{table.table}"}
    return table.schema, table.table, list(table.columns), table.where, own
