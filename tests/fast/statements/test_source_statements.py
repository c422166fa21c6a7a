"""Statements about database sources, as they are read."""

from __future__ import annotations

import pytest
from kit.one_statement import parse_statement

from headrace.errors import UserError
from headrace.sources.postgres.source_tables import SourceTable, source_table
from headrace.statements.parsed_statements import AlterSource


def read(sql: str) -> tuple[object, ...]:
    found = parse_statement(sql)
    assert isinstance(found, AlterSource)
    return found.name, found.change, found.tables, found.text_columns


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            'ALTER SOURCE shop ADD TABLES (a.b AS c, "D d") TEXT COLUMNS (a.b.x)',
            ("shop", "ADD", ("a.b AS c", '"D d"'), ("a.b.x",)),
        ),
        ("alter source shop drop tables (b)", ("shop", "DROP", ("b",), ())),
        ("ALTER SOURCE shop RESNAPSHOT", ("shop", "RESNAPSHOT", (), ())),
        ("ALTER SOURCE shop RESNAPSHOT TABLES (a.b)", ("shop", "RESNAPSHOT", ("a.b",), ())),
    ],
)
def test_sources_are_altered(sql: str, expected: tuple[object, ...]) -> None:
    assert read(sql) == expected


@pytest.mark.parametrize(
    "sql",
    [
        "ALTER SOURCE shop",
        "ALTER SOURCE shop SET x = 1",
        "ALTER SOURCE shop ADD (a)",
        "ALTER SOURCE shop DROP TABLES (a) TEXT COLUMNS (a.b)",
        "ALTER SOURCE shop RESNAPSHOT TABLES (a) CASCADE",
    ],
)
def test_other_forms_are_refused_with_the_right_one(sql: str) -> None:
    with pytest.raises(UserError, match="SYNTAX_ERROR") as caught:
        parse_statement(sql)
    assert "ALTER SOURCE name ADD TABLES" in str(caught.value.hint) + str(caught.value.detail)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Orders", SourceTable("public", "orders")),
        ('a."Odd AS one"', SourceTable("a", "Odd AS one")),
        ("a.b AS c", SourceTable("a", "b", "c")),
        (
            "a.b COLUMNS (id, \"X, y\") WHERE (id > 0 AND (t = 'it''s)')) AS c",
            SourceTable("a", "b", "c", ("id", "X, y"), "id > 0 AND (t = 'it''s)')"),
        ),
        ("b where (id = 1)", SourceTable("public", "b", where="id = 1")),
    ],
)
def test_tables_are_named_with_what_is_wanted_of_them(text: str, expected: SourceTable) -> None:
    assert source_table(text) == expected
    found = parse_statement(f"ALTER SOURCE s ADD TABLES ({text}, b.c)")
    assert isinstance(found, AlterSource)
    assert found.tables == (text, "b.c")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a.b.c", "INVALID_NAME"),
        ("a b", "INVALID_NAME"),
        ("WHERE (id > 0)", "INVALID_NAME"),
        ("a COLUMNS ()", "INVALID_NAME"),
        ("a COLUMNS (b,)", "INVALID_NAME"),
        ("a COLUMNS (b.c)", "INVALID_NAME"),
        ("a COLUMNS id", "SYNTAX_ERROR"),
        ("a WHERE ()", "SYNTAX_ERROR"),
        ("a WHERE id > 0", "SYNTAX_ERROR"),
        ("a WHERE (id > 0", "SYNTAX_ERROR"),
        ("a WHERE (id > 0) COLUMNS (id)", "SYNTAX_ERROR"),
        ("a AS b AS c", "SYNTAX_ERROR"),
        ("a WHERE (id > 0)) OR (true", "SYNTAX_ERROR"),
    ],
)
def test_what_is_no_table_is_refused(text: str, code: str) -> None:
    with pytest.raises(UserError, match=code):
        source_table(text)
