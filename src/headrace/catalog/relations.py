"""Names and ids: how a `TableName` is written in the catalog's tables, and which row is its."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from headrace.catalog import schema as t
from headrace.catalog.records import Relation, RelationKind
from headrace.errors import UserError
from headrace.names import TableName, quote, split_identifier
from headrace.suggestions import did_you_mean

MANY = 200
"""From this many names on, a query reads the whole table rather than listing them."""


def stored_name(name: TableName) -> str:
    """Return a name as stored: with its catalog, parts quoted where they are ambiguous."""
    return ".".join(p if p.replace("_", "a").replace("-", "a").isalnum() else quote(p) for p in name.parts)


@lru_cache(maxsize=100_000)  # of ten thousand tables a look parses a hundred thousand names
def parse_name(text: str) -> TableName:
    """Return the inverse of `stored_name`."""
    parts = split_identifier(text) if "`" in text else tuple(text.split("."))
    return TableName(parts[0], parts[1:-1], parts[-1])


def optional_name(text: str | None) -> TableName | None:
    """Return `parse_name`, for a column that may be NULL."""
    return None if text is None else parse_name(text)


def name_condition(names: Iterable[TableName], most: int = MANY) -> sa.ColumnElement[bool]:
    """Return the condition that a `hr_relation` row is one of at most so many names; else true."""
    texts = sorted({stored_name(n) for n in names})
    return sa.true() if len(texts) > most else t.relation.c.name.in_(texts)


def relation_ids(connection: Connection, names: Iterable[TableName]) -> dict[TableName, int]:
    """Return the ids of relations, by name; unknown ones are left out."""
    wanted = set(names)
    if not wanted:
        return {}
    rows = connection.execute(sa.select(t.relation.c.name, t.relation.c.id).where(name_condition(wanted)))
    return {name: row_id for text, row_id in rows if (name := parse_name(text)) in wanted}


def former_names(connection: Connection, names: Iterable[TableName]) -> dict[TableName, tuple[str, ...]]:
    """Return the names, as stored, that relations had before.

    Relations that always had the name that they have are left out.
    """
    wanted = set(names)
    query = sa.select(t.relation.c.name, t.relation.c.former_json).where(name_condition(wanted))
    rows = connection.execute(query.where(t.relation.c.former_json.is_not(None)))
    return {name: tuple(former) for text, former in rows if (name := parse_name(text)) in wanted}


@dataclass(frozen=True, slots=True)
class RelationHead:
    """A relation's id and newest version, from which its next one is numbered.

    Args:
        head: Its newest version; -1 while it has none.
    """

    id: int
    head: int


def relation_heads(connection: Connection, names: Iterable[TableName]) -> dict[TableName, RelationHead]:
    """Return ids and newest versions of relations, from one query; unknown ones are left out."""
    wanted = set(names)
    if not wanted:
        return {}
    newest = sa.select(sa.func.max(t.version.c.version)).where(t.version.c.relation_id == t.relation.c.id)
    head = sa.func.coalesce(newest.scalar_subquery(), -1)
    rows = connection.execute(sa.select(t.relation.c.name, t.relation.c.id, head).where(name_condition(wanted)))
    return {name: RelationHead(*rest) for text, *rest in rows if (name := parse_name(text)) in wanted}


def ensure_relations(connection: Connection, names: Iterable[TableName]) -> dict[TableName, int]:
    """Return the ids of relations, by name; unknown ones become sources."""
    wanted = set(names)
    ids = relation_ids(connection, wanted)
    if missing := sorted(wanted - ids.keys()):
        # Somebody else may be inserting the same names: theirs are waited for, skipped, and then found.
        connection.execute(_INSERT, [_new_row(name) for name in missing])
        ids |= relation_ids(connection, missing)
    return ids


_INSERT = t.insert_or_skip(t.relation, "name", "catalog_name", "table_namespace", "table_name", "kind")


def lock_relations(connection: Connection, ids: Iterable[int]) -> None:
    """Keep others from changing relations until the transaction ends.

    Foreign keys to them can still be added.
    """
    rows = sa.select(t.relation.c.id).where(t.relation.c.id.in_(sorted(ids))).order_by(t.relation.c.id)
    connection.execute(rows.with_for_update(key_share=True)).all()


def read_by_others(connection: Connection, ids: Collection[int]) -> set[int]:
    """Return the ids of those relations that stream tables read, or have in their frontiers."""
    tables = (t.dependency, t.frontier)
    reads = sa.union(*(sa.select(table.c.source_id).where(table.c.source_id.in_(ids)) for table in tables))
    return set(connection.execute(reads).scalars())


def forget_relations(connection: Connection, ids: Collection[int]) -> None:
    """Delete relations with their versions."""
    connection.execute(sa.delete(t.version).where(t.version.c.relation_id.in_(ids)))
    connection.execute(sa.delete(t.relation).where(t.relation.c.id.in_(ids)))


def _new_row(name: TableName) -> dict[str, object]:
    return {
        "name": stored_name(name),
        "catalog_name": name.catalog,
        "table_namespace": name.namespace_text,
        "table_name": name.table,
        "kind": RelationKind.SOURCE.value,
    }


def stream_id(connection: Connection, name: TableName) -> int:
    """Return the id of a stream table, whose row is locked until the transaction ends.

    Raises:
        UserError: `STREAM_TABLE_NOT_FOUND`.
    """
    found = connection.execute(
        sa.select(t.stream_table.c.relation_id)
        .join(t.relation, t.relation.c.id == t.stream_table.c.relation_id)
        .where(t.relation.c.name == stored_name(name))
        .with_for_update(of=t.stream_table)
    ).scalar_one_or_none()
    if found is None:
        raise not_found(name, _stream_names(connection))
    return int(found)


def _stream_names(connection: Connection) -> list[TableName]:
    rows = sa.select(t.relation.c.name).join(t.stream_table, t.relation.c.id == t.stream_table.c.relation_id)
    return [parse_name(name) for name in connection.execute(rows).scalars()]


def not_found(name: TableName, known: Iterable[TableName] = ()) -> UserError:
    """Return the error for a name that is no stream table.

    Args:
        name: The name.
        known: Stream tables that exist.
    """
    return UserError(
        "STREAM_TABLE_NOT_FOUND",
        f"There is no stream table {name}.",
        hint=f"{did_you_mean(str(name), map(str, known))}SHOW STREAM TABLES (or `headrace status`) lists those that "
        "exist.",
    )


def relation_of(row: RowMapping) -> Relation:
    """Return a `hr_relation` row as a record."""
    return Relation(
        id=row["id"],
        name=parse_name(row["name"]),
        kind=RelationKind(row["kind"]),
        table_uuid=row["table_uuid"],
        schema=row["schema_json"],
    )
