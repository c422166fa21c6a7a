"""Tokens lie where they say, and nothing but blanks and comments lies between them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import Unsupported, UserError
from headrace.sql.reader.syntax import tokens
from headrace.sql.reader.syntax.tokens import Kind, tokenize

PIECES = [
    "a",
    "`b``c`",
    "'it''s'",
    "'back\\'slash'",
    '"x;y"',
    "r'\\'",
    "1.5BD",
    "1L",
    ".5",
    "<=>",
    "日本",
    "é",
    "(",
    "$$ x $$",
]
GAPS = [" ", "\n", " -- line ; ' comment\n", "/* a /* nested */ b */", "\t"]


@settings(deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from(GAPS))))
def test_tokens_are_found_whatever_lies_between(parts: list[tuple[str, str]]) -> None:
    text = "".join(piece + gap for piece, gap in parts)
    found = tokenize(text)
    assert [t.text for t in found] == [piece for piece, _ in parts]
    assert all(text[t.start : t.end] == t.text for t in found)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("1a", [Kind.WORD]),
        ("a.1b", [Kind.WORD, Kind.OP, Kind.WORD]),
        ("1.5e-3D", [Kind.NUMBER]),
        ("x'1F'", [Kind.WORD, Kind.STRING]),
        ("R'a\\'", [Kind.STRING]),
        ("a->b", [Kind.WORD, Kind.OP, Kind.WORD]),
    ],
)
def test_kinds(text: str, kinds: list[Kind]) -> None:
    assert [t.kind for t in tokenize(text)] == kinds


@pytest.mark.parametrize("text", ["select 'abc", "select `abc", "select /* abc", 'x "y', "select /* a /* b */"])
def test_what_never_ends_is_shown_where_it_begins(text: str) -> None:
    with pytest.raises(UserError) as error:
        tokenize(text)
    assert error.value.code == "SYNTAX_ERROR"
    assert error.value.place is not None
    assert text[error.value.place.column - 1] in "'`/\""


@pytest.mark.parametrize("text", ["SELECT '\ud83d'", "SELECT `a\udcff`", "SELECT 1 /* \udcff */"])
def test_bytes_that_are_no_text_are_shown(text: str) -> None:
    with pytest.raises(UserError, match="half a character") as error:
        tokenize(text)
    assert error.value.place is not None
    assert "\ud800" <= text[error.value.place.column - 1] <= "\udfff"
    str(error.value).encode()


def test_a_number_of_thousands_of_digits_is_shown() -> None:
    with pytest.raises(UserError, match="A number of 2,000,000 characters") as error:
        tokenize(f"SELECT\n a + {'1' * 2_000_000} FROM t")
    assert error.value.place is not None
    assert (error.value.place.line, error.value.place.column) == (2, 6)
    assert len(tokenize(f"SELECT {'x1' * 2_000}, {'1' * 400}e-400")) == 4


def test_comments_in_comments_come_to_an_end() -> None:
    assert len(tokenize(f"SELECT {'/*' * 50} a {'*/' * 50} 1")) == 2
    with pytest.raises(Unsupported, match="QUERY_TOO_DEEP") as error:
        tokenize(f"SELECT {'/*' * 100_000} a {'*/' * 100_000} 1")
    assert error.value.place is not None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a -- b \\\n c\n d", ["a", "d"]),
        ("a -- b \\\r\n c", ["a", "c"]),
        ("a -- b \r c", ["a", "c"]),
        ("a /* b /*+ c */ d", ["a", "d"]),
        ("a /*+ b /* c */ */ d", ["a", "d"]),
    ],
)
def test_comments_end_where_spark_ends_them(text: str, found: list[str]) -> None:
    assert [token.text for token in tokenize(text)] == found


def test_quoted_names_lose_their_quotes() -> None:
    (token,) = tokenize("`a``b`")
    assert token.name == "a`b"
    assert not re.search("``", token.name)


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [*PIECES, "r", "'a'", '"', "1", "x1", "1x", "12", ".", ",", "²", "_", " ", "\u00a0", "--", "::"]
        )
    )
)
def test_what_is_taken_at_first_sight_is_what_a_second_look_takes(parts: list[str]) -> None:
    assert _tokens("".join(parts), tokens._USUAL) == _tokens("".join(parts), re.compile(r"(?!)"))


def _tokens(text: str, usual: re.Pattern[str]) -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tokens, "_USUAL", usual)
        try:
            return tokenize.__wrapped__(text)
        except UserError as error:
            return str(error)
