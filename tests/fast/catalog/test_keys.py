"""Declared keys in the catalog, on both databases."""

import pytest
from catalog_kit.clock import START
from catalog_kit.samples import ITEMS, ORDERS, create, lake, see
from catalog_kit.stream_tables import drop_stream_table

from headrace.catalog import Catalog, DeclaredKey, Mirror
from headrace.errors import UserError


def test_keys_are_declared_once_and_dropped_by_their_columns(catalog: Catalog) -> None:
    catalog.declare_key(ORDERS, ["id"])
    catalog.declare_key(ORDERS, ["line", "id"])
    catalog.declare_key(ORDERS, ["id", "line"])
    assert set(catalog.declared_keys()) == {
        DeclaredKey(ORDERS, ("id",), START),
        DeclaredKey(ORDERS, ("id", "line"), START),
    }
    catalog.drop_key(ORDERS, ["line", "id"])
    assert [key.columns for key in catalog.declared_keys()] == [("id",)]
    for source, columns in ((ORDERS, ["line"]), (ITEMS, ["id"])):
        with pytest.raises(UserError, match="KEY_NOT_DECLARED"):
            catalog.drop_key(source, columns)


def test_keys_of_a_former_table_are_forgotten(catalog: Catalog) -> None:
    see(catalog)
    catalog.declare_key(ORDERS, ["id"])
    catalog.create_source("shop", "postgres", {}, [Mirror(ORDERS, lake("_headrace.shop_orders_log"))])
    assert catalog.declared_keys() == ()


def test_a_stream_table_has_no_declared_keys(catalog: Catalog) -> None:
    stream = create(catalog).name
    drop_stream_table(catalog, stream)
    catalog.declare_key(stream, ["id"])
    create(catalog)
    assert catalog.declared_keys() == ()
