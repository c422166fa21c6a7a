"""Statements about database sources, as they are read."""

from __future__ import annotations

import pytest

from headrace.errors import UserError
from headrace.sql.statements import AlterSource, parse_statement


def read(sql: str) -> tuple[object, ...]:
    found = parse_statement(sql)
    assert isinstance(found, AlterSource)
    return found.name, found.change, found.tables, found.text_columns


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            'ALTER SOURCE shop ADD TABLES (a.b AS c, "D d") TEXT COLUMNS (a.b.x)',
            ("shop", "ADD", (("a.b", "c"), ('"D d"', None)), ("a.b.x",)),
        ),
        ("alter source shop drop tables (b)", ("shop", "DROP", (("b", None),), ())),
        ("ALTER SOURCE shop RESNAPSHOT", ("shop", "RESNAPSHOT", (), ())),
        ("ALTER SOURCE shop RESNAPSHOT TABLES (a.b)", ("shop", "RESNAPSHOT", (("a.b", None),), ())),
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
