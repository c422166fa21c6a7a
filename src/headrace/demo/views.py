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


ORDER_REVENUE = View(
    "tpch.order_revenue",
    "a row for each order",
    """\
SELECT o.o_orderkey, o.o_custkey, o.o_orderdate, sum(l.l_extendedprice * (1 - l.l_discount)) AS revenue,
       count(*) AS order_lines, max(l.l_shipdate) AS last_shipped
FROM tpch.orders o
JOIN tpch.lineitem l ON l.l_orderkey = o.o_orderkey
GROUP BY o.o_orderkey, o.o_custkey, o.o_orderdate""",
)

SEGMENT_REVENUE = View(
    "tpch.segment_revenue",
    "over that stream table",
    """\
SELECT c.c_mktsegment, year(r.o_orderdate) AS order_year, sum(r.revenue) AS revenue, count(*) AS orders,
       sum(r.order_lines) AS order_lines
FROM tpch.order_revenue r
JOIN tpch.customer c ON c.c_custkey = r.o_custkey
GROUP BY c.c_mktsegment, year(r.o_orderdate)""",
)

PRICING_SUMMARY = View(
    "tpch.pricing_summary",
    "TPC-H's query 1",
    """\
SELECT l_returnflag, l_linestatus, sum(l_quantity) AS sum_quantity, sum(l_extendedprice) AS sum_price,
       sum(l_extendedprice * (1 - l_discount)) AS sum_discounted, avg(l_discount) AS average_discount,
       count(*) AS order_lines
FROM tpch.lineitem
GROUP BY l_returnflag, l_linestatus""",
)

LARGE_ORDERS = View(
    "tpch.large_orders",
    "TPC-H's query 18",
    """\
SELECT c.c_name, c.c_custkey, o.o_orderkey, o.o_orderdate, o.o_totalprice, sum(l.l_quantity) AS quantity
FROM tpch.customer c
JOIN tpch.orders o ON o.o_custkey = c.c_custkey
JOIN tpch.lineitem l ON l.l_orderkey = o.o_orderkey
WHERE o.o_orderkey IN (SELECT l_orderkey FROM tpch.lineitem GROUP BY l_orderkey HAVING sum(l_quantity) > 300)
GROUP BY c.c_name, c.c_custkey, o.o_orderkey, o.o_orderdate, o.o_totalprice""",
)

VIEWS = (ORDER_REVENUE, SEGMENT_REVENUE, PRICING_SUMMARY, LARGE_ORDERS)
"""In the order they are created: producers before consumers."""
