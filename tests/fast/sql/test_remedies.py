"""What is no function of the sources is refused with what to do instead."""

from __future__ import annotations

import pytest

from headrace.algebra.schema import Column
from headrace.names import LAKE, TableName
from headrace.sql.reader.reader import read


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("now()", "on a schedule"),
        ("current_date", "in conditions of WHERE"),
        ("DATE 'today'", "on a schedule"),
        ("unix_timestamp()", "on a schedule"),
        ("uuid()", "from the row"),
        ("current_user()", "its value"),
    ],
)
def test_a_remedy_is_told(item: str, said: str) -> None:
    columns = (Column("a", "int"),)
    query = f"WITH w AS (SELECT a, {item} AS x FROM t) SELECT x FROM w WHERE a > 1"
    reading = read(query, resolve=lambda parts: TableName(LAKE, ("shop",), parts[-1]), schema=lambda _: columns)
    (refusal,) = reading.refusals
    assert said in (refusal.hint or "")
    assert refusal.place is not None
    assert refusal.place.column == query.index(item) + 1
