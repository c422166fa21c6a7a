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


PART_SALES = View(
    "tpch.part_sales",
    "a row for each part",
    """\
SELECT l.l_partkey, p.p_brand, p.p_container, sum(l.l_extendedprice * (1 - l.l_discount)) AS revenue,
       sum(l.l_quantity) AS quantity, count(*) AS order_lines
FROM tpch.lineitem l
JOIN tpch.part p ON p.p_partkey = l.l_partkey
GROUP BY l.l_partkey, p.p_brand, p.p_container""",
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

LATE_SHIPMENTS = View(
    "tpch.late_shipments",
    "by month and carrier",
    """\
SELECT date_trunc('MONTH', l_receiptdate) AS month, l_shipmode, count(*) AS order_lines,
       count_if(l_receiptdate > l_commitdate) AS late, avg(datediff(l_receiptdate, l_shipdate)) AS average_days,
       sum(l_extendedprice) AS worth
FROM tpch.lineitem
GROUP BY date_trunc('MONTH', l_receiptdate), l_shipmode""",
)

CUSTOMER_ORDERS = View(
    "tpch.customer_orders",
    "a row for each customer",
    """\
SELECT o.o_custkey, c.c_name, c.c_mktsegment, count(*) AS orders, sum(o.o_totalprice) AS worth
FROM tpch.orders o
JOIN tpch.customer c ON c.c_custkey = o.o_custkey
GROUP BY o.o_custkey, c.c_name, c.c_mktsegment""",
)

VIEWS = (PART_SALES, PRICING_SUMMARY, LATE_SHIPMENTS, CUSTOMER_ORDERS)
