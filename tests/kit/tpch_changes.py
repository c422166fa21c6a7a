"""Rounds of changes to TPC-H's tables: RF1, RF2, and updates of every table, keys and filtered columns included.

The statements are the same in Spark and DuckDB, and choose rows by their keys, so that every run sees the same rounds.
"""

from __future__ import annotations

from collections.abc import Iterator

from headrace.demo.tpch import TABLES

NEW_KEYS = 100_000_000
"""Distance between the keys of one round's new rows and the next's."""


def rf1(number: int, every: int) -> Iterator[str]:
    """New orders with their line items: one for `every` old ones."""
    shift = number * NEW_KEYS
    for table, key, rest in _COPIED:
        chosen = f"{key} < {NEW_KEYS} AND {key} % {every} = {3 * number % every}"
        yield f"INSERT INTO {table} SELECT {key} + {shift}, {rest} FROM {table} WHERE {chosen}"


_COPIED = (
    (
        "orders",
        "o_orderkey",
        "o_custkey, o_orderstatus, o_totalprice, o_orderdate, o_orderpriority, o_clerk, o_shippriority, o_comment",
    ),
    (
        "lineitem",
        "l_orderkey",
        "l_partkey, l_suppkey, l_linenumber, l_quantity, l_extendedprice, l_discount, l_tax, l_returnflag, "
        "l_linestatus, l_shipdate, l_commitdate, l_receiptdate, l_shipinstruct, l_shipmode, l_comment",
    ),
)


def rf2(number: int, every: int) -> Iterator[str]:
    """As many old orders leave with their line items."""
    for table, key in (("lineitem", "l_orderkey"), ("orders", "o_orderkey")):
        yield f"DELETE FROM {table} WHERE {key} < {NEW_KEYS} AND {key} % {every} = {(3 * number + 1) % every}"


_OTHER = "CASE {c} WHEN '{a}' THEN '{b}' WHEN '{b}' THEN '{a}' ELSE {c} END"


def _swapped(column: str, a: str, b: str) -> str:
    return f"{column} = {_OTHER.format(c=column, a=a, b=b)}"


_UPDATES: dict[str, tuple[tuple[str, str, int], ...]] = {
    # what is set, the key that chooses rows, and how many times rarer than a round's other changes
    "lineitem": (
        ("l_extendedprice = l_extendedprice + 1.00, l_quantity = l_quantity + 1", "l_orderkey", 1),
        ("l_commitdate = l_receiptdate, l_receiptdate = l_commitdate", "l_orderkey", 1),
        ("l_partkey = l_partkey % 200 + 1, l_suppkey = l_suppkey % 10 + 1", "l_orderkey", 2),
        (_swapped("l_returnflag", "R", "N") + ", " + _swapped("l_shipmode", "MAIL", "AIR"), "l_orderkey", 1),
        ("l_extendedprice = l_extendedprice + 9000.00", "l_suppkey", 1),
        ("l_quantity = 3, l_shipinstruct = 'DELIVER IN PERSON', l_shipmode = 'AIR'", "l_partkey", 1),
    ),
    "orders": (
        ("o_custkey = o_custkey % 150 + 1", "o_orderkey", 1),
        (
            _swapped("o_orderstatus", "F", "O") + ", " + _swapped("o_orderpriority", "1-URGENT", "5-LOW"),
            "o_orderkey",
            1,
        ),
        ("o_comment = 'most special of requests', o_totalprice = o_totalprice + 1", "o_orderkey", 1),
        ("o_orderkey = o_orderkey + 3", "o_orderkey", 4),
    ),
    "customer": (
        (_swapped("c_mktsegment", "BUILDING", "MACHINERY") + ", c_acctbal = -c_acctbal", "c_custkey", 1),
        ("c_nationkey = (c_nationkey + 7) % 25, c_phone = concat('13', substring(c_phone, 3))", "c_custkey", 1),
        ("c_custkey = c_custkey + 1", "c_custkey", 2),
    ),
    "part": (
        ("p_size = 15, p_type = 'PROMO POLISHED BRASS'", "p_partkey", 1),
        ("p_type = 'ECONOMY ANODIZED STEEL', p_name = concat('forest green ', p_name)", "p_partkey", 1),
        ("p_brand = 'Brand#23', p_container = 'MED BOX', p_size = 3", "p_partkey", 1),
        ("p_partkey = p_partkey + 1", "p_partkey", 2),
    ),
    "supplier": (
        ("s_nationkey = (s_nationkey + 3) % 25, s_acctbal = s_acctbal + 1", "s_suppkey", 1),
        ("s_comment = 'Customer and Complaints'", "s_suppkey", 1),
        ("s_suppkey = s_suppkey + 1", "s_suppkey", 2),
    ),
    "partsupp": (
        ("ps_supplycost = ps_supplycost / 2, ps_availqty = ps_availqty * 3", "ps_partkey", 1),
        ("ps_suppkey = ps_suppkey % 10 + 1", "ps_partkey", 1),
        ("ps_availqty = 1", "ps_partkey", 1),
    ),
}


def updates(table: str, number: int, every: int) -> Iterator[str]:
    """Updates of one table."""
    if table == "nation":
        one, other = _NATIONS[number % len(_NATIONS)]
        yield f"UPDATE nation SET {_swapped('n_name', one, other)}"
        yield f"UPDATE nation SET n_regionkey = (n_regionkey + 1) % 5 WHERE n_nationkey = {number % 25}"
    elif table == "region":
        one, other = _REGIONS[number % len(_REGIONS)]
        yield f"UPDATE region SET {_swapped('r_name', one, other)}"
    for i, (sets, key, rarer) in enumerate(_UPDATES.get(table, ())):
        buckets = max(1, every * rarer)
        yield f"UPDATE {table} SET {sets} WHERE {key} % {buckets} = {(7 * number + i + 2) % buckets}"


_NATIONS = (("GERMANY", "FRANCE"), ("SAUDI ARABIA", "CHINA"), ("CANADA", "BRAZIL"), ("FRANCE", "PERU"))
_REGIONS = (("EUROPE", "ASIA"), ("AMERICA", "AFRICA"), ("ASIA", "AMERICA"))


def every_for(table: str, every: int) -> int:
    """One row of how many changes: small tables have a tenth as many values of their keys."""
    return every if table in ("orders", "lineitem") else max(2, every // 10)


def everything(number: int, every: int) -> Iterator[str]:
    """A whole round.

    Args:
        number: From 1.
        every: One row of so many changes, roughly, in each way that it can.
    """
    yield from rf1(number, every)
    yield from rf2(number, every)
    for table in TABLES:
        yield from updates(table, number, every_for(table, every))
