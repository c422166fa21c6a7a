"""The seven stream tables of the demonstration, one of each kind."""

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


URGENT_ORDERS = View(
    "tpch.urgent_orders",
    "a filter",
    """\
SELECT o_orderkey, o_custkey, o_orderdate, o_orderpriority, o_totalprice
FROM tpch.orders
WHERE o_orderpriority IN ('1-URGENT', '2-HIGH') AND o_orderstatus <> 'F'""",
)

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

SUPPLIER_RANGE = View(
    "tpch.supplier_range",
    "min and max",
    """\
SELECT l_suppkey, min(l_extendedprice) AS lowest, max(l_extendedprice) AS highest, max(l_shipdate) AS last_shipped
FROM tpch.lineitem
GROUP BY l_suppkey""",
)

CUSTOMER_PRIORITIES = View(
    "tpch.customer_priorities",
    "DISTINCT",
    "SELECT DISTINCT o_custkey, o_orderpriority FROM tpch.orders",
)

ORDER_EVENTS = View(
    "tpch.order_events",
    "UNION ALL",
    """\
SELECT o_orderkey AS order_key, 'ordered' AS event, o_orderdate AS day FROM tpch.orders
UNION ALL
SELECT l_orderkey, 'shipped', l_shipdate FROM tpch.lineitem WHERE l_shipmode = 'AIR'""",
)

VIEWS = (
    URGENT_ORDERS,
    ORDER_LINES,
    SEGMENT_REVENUE,
    PRICING_SUMMARY,
    SUPPLIER_RANGE,
    CUSTOMER_PRIORITIES,
    ORDER_EVENTS,
)
"""In the order they are created: producers before consumers."""
