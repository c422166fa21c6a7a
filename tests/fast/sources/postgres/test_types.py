"""Types and texts."""

from __future__ import annotations

import pyarrow as pa
import pytest
from fast.sources.postgres import messages as m

from headrace.connection_strings import SECRETS
from headrace.errors import EnvironmentFault, UserError
from headrace.sources.postgres.connection import check_url
from headrace.sources.postgres.remote_tables import RemoteColumn, RemoteTable, from_json, to_json
from headrace.sources.postgres.spool.spool import csv_batches
from headrace.sources.postgres.spool.text_columns import text_column
from headrace.sources.postgres.table_syntax import split_column, split_table
from headrace.sources.postgres.type_mapping import mapped, parse_array
from headrace.sources.postgres.wal.slots import lsn_of, position_of


def modifier(precision: int, scale: int) -> int:
    return (precision << 16 | scale & 0x7FF) + 4


@pytest.mark.parametrize(
    ("precision", "scale", "type_"),
    [
        (12, 2, "decimal(12,2)"),
        (38, 0, "decimal(38,0)"),
        (39, 0, "string"),
        (3, -2, "decimal(5,0)"),
        (3, 5, "decimal(5,5)"),
        (1000, 500, "string"),
    ],
)
def test_numerics_that_decimals_hold(precision: int, scale: int, type_: str) -> None:
    assert mapped("numeric", modifier(precision, scale)).type == type_


def test_types_without_an_equal_stay_text() -> None:
    assert [mapped(t).type for t in ("numeric", "interval", "mood", "jsonb")] == ["string"] * 4
    assert mapped("_numeric", modifier(5, 1), element="numeric").type == "array<decimal(5,1)>"
    assert mapped("_uuid", element="uuid").sql("x") == "x"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("{}", []),
        ("{1,NULL,3}", [b"1", None, b"3"]),
        (r'{"a,b","c\"d","e\\f","NULL",""}', [b"a,b", b'c"d', b"e\\f", b"NULL", b""]),
        ("{{1},{2}}", None),
        ("[0:1]={1,2}", None),
    ],
)
def test_array_literals(text: str, values: list[bytes | None] | None) -> None:
    assert parse_array(text.encode()) == values


def test_values_that_no_mirror_can_hold_are_refused() -> None:
    table = RemoteTable(1, "s", "t", "d", (), (RemoteColumn(1, "a", 1007, -1, "_int4", -1, "int4"),))
    assert text_column([b"{1,NULL}", None], table, 0).to_pylist() == [["1", None], None]
    with pytest.raises(EnvironmentFault, match="TEXT COLUMNS"):
        text_column([b"{{1}}"], table, 0)
    with pytest.raises(EnvironmentFault, match="UTF-8"):
        text_column([b"\xff"], m.table(), 0)


def test_copies_tell_null_from_empty() -> None:
    pieces = iter([b'1,,""\n2,"a\nb', b'","x""y"\n', b""])
    (batch,) = csv_batches(m.table(), lambda: next(pieces, b""))
    assert batch.to_pylist() == [{"c0": "1", "c1": None, "c2": ""}, {"c0": "2", "c1": "a\nb", "c2": 'x"y'}]
    assert batch.schema.field("c0").type == pa.string()
    nothing = iter([b""])
    assert list(csv_batches(m.table(), lambda: next(nothing, b""))) == []
    alone = iter([b"\n1\n", b""])
    (batch,) = csv_batches(m.table(columns="id"), lambda: next(alone, b""))
    assert batch.to_pydict() == {"c0": [None, "1"]}


def test_what_the_catalog_keeps_comes_back() -> None:
    table = RemoteTable(
        7, "s", "t", "i", ("a",), (RemoteColumn(3, "a", 1700, 9, "numeric", 9, None, True),), "5 1:2", True
    )
    assert from_json(to_json(table)) == table


def test_positions_and_names() -> None:
    assert position_of("16/B374D848") == 0x16B374D848
    assert lsn_of(position_of("16/B374D848")) == "16/B374D848"
    assert split_table("Orders") == ("public", "orders")
    assert split_table('shop."Order ""items"""') == ("shop", 'Order "items"')
    assert split_column('orders."Until"') == ("public", "orders", "Until")
    for wrong in ("", "a.b.c", 'a."', "a b", '"x"y'):
        with pytest.raises(UserError, match="INVALID_NAME"):
            split_table(wrong)


def test_passwords_are_refused() -> None:
    check_url("postgresql://reader@db/shop?sslmode=require&sslpassword=")
    others = [f"postgresql://reader@db/shop?{name}=hunter2" for name in SECRETS]
    for url in ("postgresql://reader:hunter2@db/shop", "host=db password=hunter2", "mysql://x", *others):
        with pytest.raises(UserError, match="SOURCE_URL_INVALID") as caught:
            check_url(url)
        assert "hunter2" not in str(caught.value)


def test_rows_that_arrow_cannot_read_are_told() -> None:
    rows = iter([b"1,caf\xe9,\n", b""])
    with pytest.raises(EnvironmentFault, match="VALUE_NOT_REPRESENTABLE"):
        list(csv_batches(m.table(), lambda: next(rows)))
