"""Qualified columns of a table that is put in as a subquery."""

import pytest

from headrace.names import TableName
from headrace.sql.unqualify import unqualify

TABLES = [TableName("lake", ("shop",), "orders"), TableName("other", ("a", "b"), "c.d")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("SELECT shop.orders.id FROM t", "SELECT orders.id FROM t"),
        ("SELECT lake.SHOP.`orders`.id, orders.id", "SELECT `orders`.id, orders.id"),
        ("SELECT shop.orders.*, shop.orders.s.f", "SELECT orders.*, orders.s.f"),
        ("SELECT b.`c.d`.x + a /* . */ . b.`c.d`.x", "SELECT `c.d`.x + `c.d`.x"),
        (
            "SELECT x FROM shop.orders WHERE 'shop.orders.id' = 1",
            "SELECT x FROM shop.orders WHERE 'shop.orders.id' = 1",
        ),
        (
            "SELECT p.shop.orders.id, shops.orders.id, shop.order.id",
            "SELECT p.shop.orders.id, shops.orders.id, shop.order.id",
        ),
        ("", ""),
    ],
)
def test_only_qualifiers_are_cut(text: str, expected: str) -> None:
    assert unqualify(text, {table: table.table for table in TABLES}) == expected
