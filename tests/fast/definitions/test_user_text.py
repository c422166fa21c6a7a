"""The relations behind a query's names."""

import pytest

from headrace.definitions.user_text import bind_text, own_place, relations_read
from headrace.errors import Place, UserError, place_at
from headrace.names import LAKE, TableName

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
    assert read("SELECT * FROM a, c, u, a AS again") == (["t", "u"], ["c", "b", "a"])


@pytest.mark.parametrize("view", ["round", "trip"])
def test_a_view_that_reads_itself_is_refused(view: str) -> None:
    with pytest.raises(UserError, match="CYCLE"):
        read(f"SELECT * FROM {view}")


def written(query: str, at: str, views: dict[TableName, str] | None = None) -> str:
    """What stands in a query where its bound text has some words."""
    names = {"namespace": ("n",), "catalogs": frozenset({"lake"}), "views": views or {}}
    bound = bind_text(query, bind=lambda name: name.sql, **names)  # type: ignore[arg-type]
    place = own_place(query, place_at(bound, bound.index(at)), bind=lambda name: name.sql, **names)  # type: ignore[arg-type]
    return place.text[place.column - 1 :]


def test_places_are_those_of_the_text_as_written() -> None:
    query = "SELECT a,\n  b FROM t JOIN n.u ON t.x = y\nWHERE nope = 1"
    assert written(query, "b FROM") == "b FROM t JOIN n.u ON t.x = y"
    assert written(query, "y\n") == "y"
    assert written(query, "nope") == "nope = 1"
    assert written(query, "`u`") == "n.u ON t.x = y"


def test_a_place_inside_a_view_is_where_the_view_is_named() -> None:
    views = {TableName(LAKE, ("n",), "v"): "SELECT 1 AS x,\n 2 AS y"}
    query = "SELECT z\nFROM v AS q WHERE z"
    assert written(query, "2 AS y", views) == "v AS q WHERE z"
    assert written(query, "WHERE", views) == "WHERE z"


def test_of_a_long_line_what_is_around_the_place_is_shown() -> None:
    line = "x" * 1_000 + "here" + "y" * 1_000_000
    shown, caret = Place(1, 1_001, line).render().split("\n")
    assert shown[caret.index("^") :].startswith("here")
    assert len(shown) < 200
    assert Place(1, 3, "a b").render() == "1 | a b\n      ^"


def test_what_a_terminal_would_obey_or_not_show_is_shown_by_number() -> None:
    assert Place(1, 5, "a \x1b b\x00").render() == "1 | a \ufffd b\ufffd\n        ^"
    error = UserError("SYNTAX_ERROR", "not '\u202e'.", detail="\x1b[31m", hint="\ufeff")
    assert (error.message, error.detail, error.hint) == ("not 'U+202E'.", "U+001B[31m", "U+FEFF")


def test_of_a_long_name_both_ends_are_shown() -> None:
    error = UserError("TABLE_NOT_FOUND", f"Table {'x' * 2_000_000} is missing.")
    assert error.message.startswith("Table xxx")
    assert error.message.endswith("x is missing.")
    assert len(str(error)) < 2_000
