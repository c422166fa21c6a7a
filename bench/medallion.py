"""A pipeline of twenty tables in three layers over TPC-H, against computing all of them anew with plain Spark.

Bronze keeps the columns that are used, silver joins, gold aggregates. Headrace brings the stream tables up to date in
one run; plain Spark overwrites twenty tables of the same queries, each reading those before it, one after the other:
side by side they would take longer, on two cores.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress

from bench.measure import Figure, listed, median, project, show
from bench.tpch import change
from bench.tpch22 import load
from headrace.api.facade import Headrace

SHARE = 0.001

TABLES: dict[str, str] = {
    # bronze
    "b_orders": "SELECT o_orderkey, o_custkey, o_orderstatus, o_totalprice, o_orderdate, o_orderpriority "
    "FROM tpch.orders",
    "b_lines": "SELECT l_orderkey, l_linenumber, l_partkey, l_suppkey, l_quantity, l_extendedprice, l_discount, "
    "l_returnflag, l_shipdate, l_commitdate, l_receiptdate, l_shipmode FROM tpch.lineitem",
    "b_customers": "SELECT c_custkey, c_name, c_nationkey, c_mktsegment FROM tpch.customer",
    "b_suppliers": "SELECT s_suppkey, s_name, s_nationkey FROM tpch.supplier",
    "b_parts": "SELECT p_partkey, p_brand, p_type FROM tpch.part",
    # silver
    "s_nations": "SELECT n_nationkey, n_name, r_name FROM tpch.nation JOIN tpch.region ON n_regionkey = r_regionkey",
    "s_customers": "SELECT c_custkey, c_name, c_mktsegment, n_name, r_name FROM m.b_customers "
    "JOIN m.s_nations ON c_nationkey = n_nationkey",
    "s_suppliers": "SELECT s_suppkey, s_name, n_name, r_name FROM m.b_suppliers "
    "JOIN m.s_nations ON s_nationkey = n_nationkey",
    "s_orders": "SELECT o_orderkey, o_orderstatus, o_totalprice, o_orderdate, o_orderpriority, c_custkey, "
    "c_mktsegment, n_name FROM m.b_orders JOIN m.s_customers ON o_custkey = c_custkey",
    "s_sales": "SELECT l_orderkey, l_linenumber, l_partkey, l_suppkey, l_quantity, "
    "l_extendedprice * (1 - l_discount) AS revenue, o_orderdate, c_mktsegment, n_name AS nation "
    "FROM m.b_lines JOIN m.s_orders ON l_orderkey = o_orderkey",
    "s_late": "SELECT l_orderkey, l_linenumber, l_suppkey, l_shipmode FROM m.b_lines "
    "WHERE l_receiptdate > l_commitdate AND l_shipdate < l_commitdate",
    # gold
    "g_nations": "SELECT nation, sum(revenue) AS revenue, count(*) AS lines FROM m.s_sales GROUP BY nation",
    "g_months": "SELECT trunc(o_orderdate, 'MM') AS month, sum(revenue) AS revenue FROM m.s_sales GROUP BY 1",
    "g_segments": "SELECT c_mktsegment, o_orderpriority, count(*) AS orders, sum(o_totalprice) AS total "
    "FROM m.s_orders GROUP BY c_mktsegment, o_orderpriority",
    "g_brands": "SELECT p_brand, sum(revenue) AS revenue, sum(l_quantity) AS quantity FROM m.s_sales "
    "JOIN m.b_parts ON l_partkey = p_partkey GROUP BY p_brand",
    "g_suppliers": "SELECT r_name, s.n_name, sum(revenue) AS revenue FROM m.s_sales "
    "JOIN m.s_suppliers s ON l_suppkey = s_suppkey GROUP BY r_name, s.n_name",
    "g_late": "SELECT n_name, l_shipmode, count(*) AS late FROM m.s_late JOIN m.s_suppliers ON l_suppkey = s_suppkey "
    "GROUP BY n_name, l_shipmode",
    "g_flags": "SELECT l_returnflag, l_shipmode, count(*) AS lines, sum(l_extendedprice) AS price FROM m.b_lines "
    "GROUP BY l_returnflag, l_shipmode",
    "g_status": "SELECT o_orderstatus, count(*) AS orders, sum(o_totalprice) AS total FROM m.b_orders "
    "GROUP BY o_orderstatus",
    "g_best": "SELECT nation, month, revenue FROM (SELECT n_name AS nation, trunc(o_orderdate, 'MM') AS month, "
    "sum(o_totalprice) AS revenue FROM m.s_orders GROUP BY 1, 2) WHERE revenue > 20000000",
}
"""Query by table, each after those it reads."""


def run(options: argparse.Namespace) -> list[Figure]:
    """Measure one change of 0.1 % of orders and line items through the pipeline, several times."""
    with project(options.master) as hr:
        load(hr, options.scale)
        for namespace in ("m", "plain"):
            hr.sql(f"CREATE NAMESPACE lake.{namespace}")
        start = time.perf_counter()
        for name, query in TABLES.items():
            hr.create_stream_table(f"m.{name}", query, schedule="ON CHANGE")
            hr.spark.sql(f"CREATE TABLE {plain(name)} USING iceberg AS {plain_query(query)}")
        print(f"  {len(TABLES)} tables loaded twice in {time.perf_counter() - start:.0f} s", flush=True)
        followed: list[float] = []
        recomputed: list[float] = []
        reads: dict[str, int] = {}
        warm_up = min(options.warm_up, 4)
        for turn in range(warm_up + options.rounds):
            change(hr, turn + 1, SHARE)
            for follows in (True, False) if turn % 2 else (False, True):
                with counted(hr, reads) if turn >= warm_up and follows else nullcontext():
                    start = time.perf_counter()
                    (follow if follows else recompute)(hr)
                    took = time.perf_counter() - start
                if turn >= warm_up:
                    (followed if follows else recomputed).append(took)
        wrong = [v.name for v in hr.verify([f"m.{name}" for name in TABLES]) if not v.ok]
    if wrong:
        raise SystemExit(f"measured tables are wrong: {wrong}")
    for name, size in sorted(reads.items(), key=lambda item: -item[1]):
        print(f"    {name}: {size // options.rounds:,} rows read a turn", flush=True)
    ratio = median(recomputed) / median(followed)
    detail = f"plain Spark {listed(recomputed)} s, Headrace {listed(followed)} s"
    total = sum(reads.values()) // options.rounds
    rows = Figure("medallion", "rows read a turn by the stream tables of the pipeline", total, "rows")
    return [
        show(Figure("medallion", "20 tables over TPC-H, 0.1 % changed, plain / Headrace", ratio, "x", 2, True, detail)),
        show(rows),
    ]


def plain(name: str) -> str:
    """The table that plain Spark overwrites."""
    return f"lake.plain.{name}"


def plain_query(query: str) -> str:
    """A query over the tables of plain Spark."""
    return re.sub(r"\bm\.", "lake.plain.", query).replace("tpch.", "lake.tpch.")


def follow(hr: Headrace) -> None:
    """Bring the stream tables up to date."""
    summary = hr.run(once=True)
    if summary.failed or not summary.results:
        raise SystemExit(f"the pipeline was not refreshed: {summary}")


def recompute(hr: Headrace) -> None:
    """Overwrite the plain tables, each after those it reads."""
    for name, query in TABLES.items():
        hr.spark.sql(f"INSERT OVERWRITE {plain(name)} {plain_query(query)}")


@contextmanager
def counted(hr: Headrace, reads: dict[str, int]) -> Iterator[None]:
    """Add up the rows that each stream table's refresh reads, by the description of its Spark jobs.

    PySpark has no public way to ask a task's input; a measurement may look into Spark's own store.
    """
    store = hr.spark.sparkContext._jsc.sc().statusStore()  # type: ignore[union-attr]
    before = {job.jobId() for job in listed_jobs(store)}
    yield
    for job in listed_jobs(store):
        if job.jobId() in before or not job.description().isDefined():
            continue
        label = job.description().get()
        stages = job.stageIds()
        for i in range(stages.size()):
            with suppress(Exception):  # a stage whose output was there already was never tried
                reads[label] = reads.get(label, 0) + store.lastStageAttempt(stages.apply(i)).inputRecords()


def listed_jobs(store: object) -> list[object]:
    """All jobs that Spark remembers."""
    jobs = store.jobsList(None)  # type: ignore[attr-defined]
    return [jobs.apply(i) for i in range(jobs.size())]
