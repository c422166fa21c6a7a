"""What is no function of the sources is refused with what to do instead."""

from __future__ import annotations

import pytest

from headrace.algebra.schema import Column
from headrace.names import LAKE, TableName
from headrace.sql.reader import read


@pytest.mark.parametrize(
    ("item", "said"),
    [
        ("now()", "on a schedule"),
        ("current_date", "a column of a source"),
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


def test_a_name_of_a_query_further_out_is_told_to_be_too_far() -> None:
    columns = (Column("a", "int"), Column("b", "int"))
    query = (
        "SELECT a FROM t WHERE EXISTS (SELECT 1 FROM t AS u WHERE u.b = t.b\n"
        "AND NOT EXISTS (SELECT 1 FROM t AS w WHERE w.a = u.a AND w.b = t.a))"
    )
    reading = read(query, resolve=lambda parts: TableName(LAKE, ("shop",), parts[-1]), schema=lambda _: columns)
    assert reading.tree is None
    told = [refusal for refusal in reading.refusals if refusal.hint is not None]
    assert told
    assert all("next around" in (refusal.hint or "") for refusal in told)
    assert {refusal.place.line for refusal in told if refusal.place is not None} == {2}
