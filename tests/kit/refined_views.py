"""Views over a few small tables, compiled with what is left open settled in their own text, or not."""

from __future__ import annotations

from headrace.algebra.schema import Column
from headrace.compiler.compiled_view import CompiledView
from headrace.compiler.view_compiler import ViewCompiler
from headrace.names import LAKE, TableName
from headrace.sql.reader.context import ViewText
from headrace.sql.refinements import refined
from kit.duck import DuckExecutor

COLUMNS = tuple(Column(*each.split()) for each in ("id int", "k string", "ts int", "v int", "x double"))
OTHER = (Column("id", "int"), Column("m", "int[]"), Column("at", "time"))
EXECUTOR = DuckExecutor()
for name, columns in {"t": COLUMNS, "u": OTHER}.items():
    EXECUTOR.define(name, columns, ())
KEYS = {TableName(LAKE, ("shop",), "t"): (("id",),)}


def resolve(parts: tuple[str, ...]) -> TableName:
    return TableName(LAKE, ("shop",), parts[-1])


def schema(name: TableName) -> tuple[Column, ...] | ViewText:
    if name.table == "w":
        return ViewText("SELECT k FROM t ORDER BY ts LIMIT 3", resolve)
    return OTHER if name.table == "u" else COLUMNS


def compiled(query: str, *, keys: bool = False, refine: bool = True, in_order: bool | None = None) -> CompiledView:
    def describe(sql: str) -> tuple[Column, ...]:
        sql = sql.replace("`lake`.`shop`.", "").replace("FROM w", "FROM (SELECT k FROM t ORDER BY ts LIMIT 3) AS w")
        return EXECUTOR.describe(sql)

    return ViewCompiler(
        resolve=resolve,
        schema=schema,
        describe=describe,
        keys=KEYS if keys else {},
        refine=refine,
        in_order=refine if in_order is None else in_order,
    ).compile(query)


def check_refined(query: str, expected: str) -> None:
    """A query is maintained with another text, and refused without."""
    view = compiled(query)
    assert refined(query, view.refinements) == expected
    assert view.tree is not None
    assert view.query == query
    assert compiled(query, refine=False).refusals


def check_left_alone(query: str) -> None:
    """A query is refused for the same with and without refinements."""
    view = compiled(query)
    assert view.refusals
    assert not view.refinements
    assert view.refusals == compiled(query, refine=False).refusals
