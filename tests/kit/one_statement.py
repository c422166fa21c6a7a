"""A script of one statement."""

from __future__ import annotations

from headrace.statements.grammar import parse_script
from headrace.statements.parsed_statements import Statement


def parse_statement(sql: str) -> Statement:
    """Read a single statement; fails for no or several."""
    (statement,) = parse_script(sql)
    return statement
