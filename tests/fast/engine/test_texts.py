"""The relations behind a query's names."""

import pytest

from headrace.engine.texts import relations_read
from headrace.errors import UserError

VIEWS = {
    "a": "SELECT * FROM lake.n.b",
    "b": "SELECT * FROM lake.n.t, lake.n.c",
    "c": "SELECT 1 AS x",
    "round": "SELECT * FROM lake.n.trip",
    "trip": "SELECT * FROM lake.n.c, lake.n.round",
}


def read(query: str) -> tuple[list[str], list[str]]:
    tables, views = relations_read(
        query, namespace=("n",), catalogs=frozenset({"lake"}), view_text=lambda name: VIEWS.get(name.table)
    )
    return [t.table for t in tables], [v.table for v in views]


def test_views_are_read_through_once_each() -> None:
    assert read("SELECT * FROM a, c, u, a AS again") == (["t", "u"], ["a", "b", "c"])


@pytest.mark.parametrize("view", ["round", "trip"])
def test_a_view_that_reads_itself_is_refused(view: str) -> None:
    with pytest.raises(UserError, match="CYCLE"):
        read(f"SELECT * FROM {view}")
