"""Statements about sinks: answered by the registry of their kinds, of which there is none yet."""

from __future__ import annotations

import pytest

from headrace.errors import Unsupported, UserError
from headrace.statements.grammar import parse_script, parse_statement


@pytest.mark.parametrize("words", ["INTO POSTGRES 'postgresql://db/x' TABLE public.t", "into postgres"])
def test_there_is_no_kind_of_sink_yet(words: str) -> None:
    """And nothing of a script that has one is run, since all of it is read first."""
    script = f"INSERT INTO t VALUES (1);\nCREATE SINK out FROM shop.revenue {words}"
    with pytest.raises(Unsupported, match="SINK_KIND_UNKNOWN") as caught:
        parse_script(script)
    error = caught.value
    assert "kind of sink POSTGRES" in error.message
    assert "no kind of sink yet" in (error.detail or "")
    assert error.place is not None
    assert error.place.line == 2
    assert error.place.text[error.place.column - 1 :].lower().startswith("postgres")


@pytest.mark.parametrize(
    "sql", ["CREATE SINK", "CREATE SINK out INTO x", "CREATE SINK out FROM a.b", "CREATE SINK out FROM a.b INTO 'x'"]
)
def test_a_statement_that_cannot_be_read_is_a_mistake(sql: str) -> None:
    with pytest.raises(UserError, match="SYNTAX_ERROR"):
        parse_statement(sql)
