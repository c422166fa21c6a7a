"""Scripts fall apart at the right semicolons."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import UserError
from headrace.sql.reader.syntax.tokens import tokenize
from headrace.statements.script import split_script

STATEMENTS = [
    "SELECT 1",
    "SELECT ';' AS a, \";\" b, `;`",
    "SELECT 'it''s; \\'; x'",
    "SELECT 1 /* ; /* ; */ ; */ + 2",
    "SELECT a -- ; not here\n, b",
    "BEGIN SELECT 1; SELECT 2; END",
    "BEGIN DECLARE x INT; IF x > 1 THEN SELECT CASE WHEN 1 THEN 2 END; END IF; BEGIN SELECT 1; END; END",
    "lbl: BEGIN WHILE a DO SET b = 1; END WHILE; LOOP SELECT 1; END LOOP; END lbl",
    "BEGIN CASE a WHEN 1 THEN SELECT 1; END CASE; SELECT 2; END",
    "BEGIN DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN SELECT 1; END; SELECT 2; END",
    "SELECT r'\\' AS x",
    "CREATE TABLE begin (end INT)",
    "SELECT $$ ; $$",
]
SEPARATORS = [";", " ; ", ";\n-- done;\n", ";;", " /* ; */ ;"]


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(STATEMENTS), st.sampled_from(SEPARATORS))))
def test_splitting_undoes_joining(parts: list[tuple[str, str]]) -> None:
    script = "".join(statement + separator for statement, separator in parts)
    found = split_script(script)
    assert [part.text for part in found] == [statement for statement, _ in parts]
    assert all(script[part.start : part.start + len(part.text)] == part.text for part in found)


@settings(deadline=None)
@given(st.text(alphabet="ab;'`\"-/*\n () BEGIN END CASE", max_size=40))
def test_nothing_but_blanks_comments_and_semicolons_is_lost(script: str) -> None:
    with contextlib.suppress(UserError):
        at = 0
        for part in split_script(script):
            between = script[at : part.start]
            assert part.start >= at
            assert not any(token.text != ";" for token in tokenize(between))
            at = part.start + len(part.text)


@pytest.mark.parametrize("script", ["", " ", ";", "-- only a comment", "/* ; */ ;"])
def test_nothing_to_do(script: str) -> None:
    assert split_script(script) == ()
