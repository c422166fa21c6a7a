"""Syntax trees of the code, parsed and walked through once for all that is asked of them."""

from __future__ import annotations

import ast
from functools import cache


@cache
def tree(source: str) -> ast.Module:
    """Return the tree of a file's text."""
    return ast.parse(source)


@cache
def nodes(source: str) -> tuple[ast.AST, ...]:
    """Return all nodes of a file's text, outer ones first."""
    return tuple(ast.walk(tree(source)))
