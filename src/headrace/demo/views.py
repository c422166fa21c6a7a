"""The stream tables of the demonstration: where following changes pays at this size."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class View:
    """A stream table to create.

    Args:
        name: `namespace.table`.
        what: The kind of query.
        query: The query.
    """

    name: str
    what: str
    query: str


ORDER_LINES = View(
    "tpch.order_lines",
    "a join of three tables",
    """\
SELECT l.l_orderkey, l.l_linenumber, c.c_custkey, c.c_mktsegment, c.c_nationkey, o.o_orderdate, o.o_orderpriority,
       l.l_partkey, l.l_quantity, l.l_extendedprice, l.l_discount, l.l_shipmode
FROM tpch.customer c
JOIN tpch.orders o ON o.o_custkey = c.c_custkey
JOIN tpch.lineitem l ON l.l_orderkey = o.o_orderkey""",
)

SEGMENT_REVENUE = View(
    "tpch.segment_revenue",
    "an aggregate over a stream table",
    """\
SELECT c_mktsegment, year(o_orderdate) AS order_year, sum(l_extendedprice * (1 - l_discount)) AS revenue,
       count(*) AS order_lines, avg(l_quantity) AS average_quantity
FROM tpch.order_lines
GROUP BY c_mktsegment, year(o_orderdate)""",
)

PRICING_SUMMARY = View(
    "tpch.pricing_summary",
    "an aggregate into few groups",
    """\
SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_quantity, sum(l_extendedprice) AS sum_price,
       sum(l_extendedprice * (1 - l_discount)) AS sum_discounted, avg(l_discount) AS average_discount,
       count(*) AS order_lines
FROM tpch.lineitem
GROUP BY l_returnflag, l_linestatus""",
)

LARGE_ORDERS = View(
    "tpch.large_orders",
    "a join with an aggregate's few groups",
    """\
SELECT c.c_custkey, c.c_name, o.o_orderkey, o.o_orderdate, o.o_totalprice, large.quantity
FROM tpch.orders o
JOIN tpch.customer c ON c.c_custkey = o.o_custkey
JOIN (
  SELECT l_orderkey, sum(l_quantity) AS quantity FROM tpch.lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 250
) AS large ON large.l_orderkey = o.o_orderkey""",
)

VIEWS = (ORDER_LINES, SEGMENT_REVENUE, PRICING_SUMMARY, LARGE_ORDERS)
"""In the order they are created: producers before consumers."""
