"""A small shop, and specs in text: a query, `=>`, and what is made of it."""

from __future__ import annotations

from pathlib import Path

from headrace.algebra.schema import Column
from headrace.errors import UserError
from headrace.names import TableName, qualify
from headrace.sql.reader.context import ViewText

TABLES = {
    "orders": {
        "id": "bigint",
        "customer": "bigint",
        "region": "string",
        "amount": "decimal(12,2)",
        "address": "struct",
    },
    "customers": {"id": "bigint", "name": "string", "region": "string"},
    "t": {"a": "int", "b": "int", "c": "int"},
}


def resolve(parts: tuple[str, ...]) -> TableName:
    return qualify(parts, ("shop",))


VIEWS = {
    "big": ViewText(
        "SELECT region, sum(amount) s FROM orders WHERE amount > 10 GROUP BY region", resolve, ("region", "total")
    ),
    "random": ViewText("SELECT a,\n rand() AS r FROM t", resolve),
    "circle": ViewText("SELECT * FROM circle", resolve),
}


def schema(name: TableName) -> tuple[Column, ...] | ViewText:
    if name.table in VIEWS:
        return VIEWS[name.table]
    if name.table not in TABLES:
        raise UserError("TABLE_NOT_FOUND", f"There is no table {name}.")
    return tuple(Column(column, type_) for column, type_ in TABLES[name.table].items())


def cases(file: str) -> list[tuple[str, str]]:
    """The pairs of a spec file: query and expectation; lines that begin with # are comments."""
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    blocks = "\n".join(line for line in text.splitlines() if not line.startswith("#")).strip().split("\n\n")
    pairs = [block.partition("\n=>\n") for block in blocks]
    return [(query.strip(), expected.strip("\n")) for query, _, expected in pairs]
