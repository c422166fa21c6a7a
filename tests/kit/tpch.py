"""TPC-H's tables in DuckDB, as the demonstration's generator makes them."""

from __future__ import annotations

from functools import cache

from headrace.algebra.schema import Column
from headrace.compiler.compiled_view import CompiledView
from headrace.compiler.view_compiler import ViewCompiler
from kit.duck import DuckExecutor
from kit.maintained import table_name

_MONEY = "decimal(15,2)"

COLUMNS: dict[str, tuple[Column, ...]] = {
    table: tuple(Column(*each.split()) for each in columns.replace("money", _MONEY).split(", "))
    for table, columns in {
        "region": "r_regionkey bigint, r_name string, r_comment string",
        "nation": "n_nationkey bigint, n_name string, n_regionkey bigint, n_comment string",
        "supplier": "s_suppkey bigint, s_name string, s_address string, s_nationkey bigint, s_phone string, "
        "s_acctbal money, s_comment string",
        "customer": "c_custkey bigint, c_name string, c_address string, c_nationkey bigint, c_phone string, "
        "c_acctbal money, c_mktsegment string, c_comment string",
        "part": "p_partkey bigint, p_name string, p_mfgr string, p_brand string, p_type string, p_size int, "
        "p_container string, p_retailprice money, p_comment string",
        "partsupp": "ps_partkey bigint, ps_suppkey bigint, ps_availqty int, ps_supplycost money, ps_comment string",
        "orders": "o_orderkey bigint, o_custkey bigint, o_orderstatus string, o_totalprice money, o_orderdate date, "
        "o_orderpriority string, o_clerk string, o_shippriority int, o_comment string",
        "lineitem": "l_orderkey bigint, l_partkey bigint, l_suppkey bigint, l_linenumber int, l_quantity money, "
        "l_extendedprice money, l_discount money, l_tax money, l_returnflag string, l_linestatus string, "
        "l_shipdate date, l_commitdate date, l_receiptdate date, l_shipinstruct string, l_shipmode string, "
        "l_comment string",
    }.items()
}
"""Columns of each table, with Spark's types."""


@cache
def _schema() -> DuckExecutor:
    executor = DuckExecutor()
    for table, columns in COLUMNS.items():
        executor.define(table, columns, ())
    return executor


def compiled(query: str) -> CompiledView:
    """A query over the tables, compiled; types are DuckDB's."""

    def describe(sql: str) -> tuple[Column, ...]:
        for table in COLUMNS:
            sql = sql.replace(table_name(table).sql, table)
        return _schema().describe(sql)

    return ViewCompiler(
        resolve=lambda parts: table_name(parts[-1]), schema=lambda name: COLUMNS[name.table], describe=describe
    ).compile(query)
