"""The relations behind a query's names."""

import pytest

from headrace.definitions.user_text import bind_text, own_place, refuse_unclear_names, relations_read
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


def bound(query: str, *subqueries: str) -> str:
    """Put subqueries in the place of some tables, as for a table with more columns than there were."""
    return bind_text(
        query,
        namespace=("n",),
        catalogs=frozenset({"lake"}),
        views={},
        bind=lambda name: f"(SELECT 1 FROM {name.sql})" if ".".join(name.parts[1:]) in subqueries else name.sql,
    )


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT a.o.id FROM a.o WHERE NOT EXISTS (SELECT 1 FROM b.o WHERE b.o.id = a.o.id)",
            "SELECT `__hr_0_o`.id FROM (SELECT 1 FROM `lake`.`a`.`o`) AS `__hr_0_o` WHERE NOT EXISTS "
            "(SELECT 1 FROM `lake`.`b`.`o` WHERE b.o.id = `__hr_0_o`.id)",
        ),
        (
            "SELECT a.o.id FROM a.o JOIN lake.b.o ON lake.A.O.id = b.o.id",
            "SELECT `__hr_0_o`.id FROM (SELECT 1 FROM `lake`.`a`.`o`) AS `__hr_0_o` JOIN `lake`.`b`.`o` "
            "ON `__hr_0_o`.id = b.o.id",
        ),
        (
            "SELECT 1 FROM a.o WHERE EXISTS (SELECT 1 FROM b.l AS p, c.l o WHERE p.id = a.o.id)",
            "SELECT 1 FROM (SELECT 1 FROM `lake`.`a`.`o`) AS `__hr_0_o` WHERE EXISTS "
            "(SELECT 1 FROM `lake`.`b`.`l` AS p, `lake`.`c`.`l` o WHERE p.id = `__hr_0_o`.id)",
        ),
        (
            "SELECT o.id FROM a.o WHERE EXISTS (SELECT 1 FROM b.o WHERE o.id = 1)",
            "SELECT o.id FROM (SELECT 1 FROM `lake`.`a`.`o`) AS `o` WHERE EXISTS "
            "(SELECT 1 FROM `lake`.`b`.`o` WHERE o.id = 1)",
        ),
        (
            "SELECT a.o.id, o.id AS o FROM a.o",
            "SELECT o.id, o.id AS o FROM (SELECT 1 FROM `lake`.`a`.`o`) AS `o`",
        ),
        (
            "WITH O AS (SELECT 1) SELECT a.o.id FROM a.o, o AS p",
            "WITH O AS (SELECT 1) SELECT `__hr_0_o`.id FROM (SELECT 1 FROM `lake`.`a`.`o`) AS `__hr_0_o`, o AS p",
        ),
    ],
)
def test_a_subquery_is_called_as_nothing_else_is(query: str, expected: str) -> None:
    assert bound(query, "a.o") == expected


def test_a_name_is_known_within_its_brackets_only() -> None:
    query = "WITH o AS (SELECT a.o.id FROM a.o WHERE a.o.v > (SELECT 1)) SELECT o.id FROM o GROUP BY o.id"
    refuse_unclear_names(query, ("n",), frozenset({"lake"}))
    assert bound(query, "a.o") == (
        "WITH o AS (SELECT `__hr_0_o`.id FROM (SELECT 1 FROM `lake`.`a`.`o`) AS `__hr_0_o` "
        "WHERE `__hr_0_o`.v > (SELECT 1)) SELECT o.id FROM o GROUP BY o.id"
    )


def test_which_table_is_meant_depends_on_no_place() -> None:
    unclear = "SELECT 1 FROM c o WHERE EXISTS (SELECT 1 FROM a.o WHERE o.id = a.o.id)"
    with pytest.raises(UserError, match="COLUMN_AMBIGUOUS"):
        refuse_unclear_names(unclear, ("n",), frozenset({"lake"}))
    with pytest.raises(UserError, match="COLUMN_AMBIGUOUS") as caught:
        bound("SELECT 1 FROM a.o WHERE EXISTS (SELECT 1 FROM b.o WHERE o.id = a.o.id)", "a.o")
    assert caught.value.place is not None
    assert caught.value.place.column == 57
    assert bound("SELECT 1 FROM a.b, a.b.c", "a.b") == (
        "SELECT 1 FROM (SELECT 1 FROM `lake`.`a`.`b`) AS `b`, `lake`.`a`.`b`.`c`"
    )


def test_a_table_read_under_another_name_is_called_as_in_the_query() -> None:
    text = bind_text(
        "SELECT shop.l.part, l.v FROM shop.l JOIN shop.p AS l2 ON l2.x = lake.shop.l.x",
        namespace=(),
        catalogs=frozenset({"lake"}),
        views={},
        bind=lambda name: f"{TableName(LAKE, ('shop__green',), name.table).sql} VERSION AS OF 5",
    )
    assert text == (
        "SELECT l.part, l.v FROM `lake`.`shop__green`.`l` VERSION AS OF 5 AS `l` "
        "JOIN `lake`.`shop__green`.`p` VERSION AS OF 5 AS l2 ON l2.x = l.x"
    )
