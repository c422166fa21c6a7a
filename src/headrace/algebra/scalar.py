"""Scalars: SQL expressions with extracted facts.

Relations are modelled, scalars are not: a scalar stays the SQL the user wrote (Spark dialect, column references
reduced to back-quoted names of the input relation), next to the facts the algebra needs about it. Whatever is done to
one here, renaming its columns, splitting it at its ANDs, is done to the text, so that no parser can change its meaning.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from headrace.names import quote


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar expression over the columns of one relation.

    Args:
        sql: The expression in Spark SQL; every column reference is one back-quoted name of the input relation.
        columns: The input columns it reads.
        deterministic: False when two evaluations over the same row may differ.
    """

    sql: str
    columns: frozenset[str] = frozenset()
    deterministic: bool = True

    def __str__(self) -> str:
        return self.sql


TRUE = Scalar("true")
FALSE = Scalar("false")


def column(name: str) -> Scalar:
    """The scalar that reads one column."""
    return Scalar(quote(name), frozenset({name}))


def literal(value: int) -> Scalar:
    """An integer literal."""
    return Scalar(str(value))


def compose(template: str, **parts: Scalar) -> Scalar:
    """Build a scalar from others.

    Args:
        template: SQL with `{name}` where a part goes; parts that are not atomic arrive in parentheses.
        parts: The scalars to put there.
    """
    return Scalar(
        template.format(**{name: enclose(part.sql) for name, part in parts.items()}),
        frozenset().union(*(part.columns for part in parts.values())),
        all(part.deterministic for part in parts.values()),
    )


def all_of(conditions: Iterable[Scalar]) -> Scalar | None:
    """The conjunction of conditions, evaluated from left to right; None for no condition."""
    parts = tuple(conditions)
    if not parts:
        return None
    if len(parts) == 1:
        return parts[0]
    return Scalar(
        " AND ".join(_operand_of_and(part.sql) for part in parts),
        frozenset().union(*(part.columns for part in parts)),
        all(part.deterministic for part in parts),
    )


def any_of(conditions: Iterable[Scalar]) -> Scalar:
    """The disjunction of conditions; FALSE for no condition."""
    parts = tuple(conditions)
    if not parts:
        return FALSE
    return Scalar(
        " OR ".join(enclose(part.sql) for part in parts) if len(parts) > 1 else parts[0].sql,
        frozenset().union(*(part.columns for part in parts)),
        all(part.deterministic for part in parts),
    )


def as_column(scalar: Scalar) -> str | None:
    """The name of the column that a scalar is, if it is nothing but a column."""
    if len(scalar.columns) != 1:
        return None
    (name,) = scalar.columns
    return name if scalar.sql == quote(name) else None


def substitute(scalar: Scalar, replacements: Mapping[str, Scalar]) -> Scalar:
    """Replace columns by other scalars.

    Args:
        scalar: The expression.
        replacements: What each column becomes; columns not named stay.
    """
    if not scalar.columns & replacements.keys():
        return scalar
    used = [replacements[name] for name in sorted(scalar.columns & replacements.keys())]
    return Scalar(
        replace_columns(scalar, {name: enclose(new.sql) for name, new in replacements.items()}),
        frozenset(scalar.columns - replacements.keys()).union(*(new.columns for new in used)),
        scalar.deterministic and all(new.deterministic for new in used),
    )


def replace_columns(scalar: Scalar, texts: Mapping[str, str]) -> str:
    """The scalar's SQL with each column reference replaced by a text that can stand in its place."""
    sql, out, end = scalar.sql, list[str](), 0
    for token in _TOKEN.finditer(sql):
        if not _is_column(sql, token, scalar.columns):
            continue
        text = texts.get(_unquoted(token))
        if text is not None:
            out += [sql[end : token.start()], text]
            end = token.end()
    return "".join([*out, sql[end:]])


def uses(scalar: Scalar, name: str) -> int:
    """Return how often a scalar reads a column."""
    tokens = _TOKEN.finditer(scalar.sql)
    return sum(1 for t in tokens if _is_column(scalar.sql, t, scalar.columns) and _unquoted(t) == name)


def conjuncts(condition: Scalar) -> tuple[Scalar, ...]:
    """Split a condition at its outermost ANDs; the order is kept."""
    return tuple(_part(condition, text) for text in _split(condition.sql))


def enclose(sql: str) -> str:
    """A text that can stand as an operand anywhere: in parentheses unless it is atomic."""
    return sql if _atomic(sql) else f"({sql})"


_TOKEN = re.compile(
    r"(?s)(?P<name>`(?:``|[^`])*`)"
    r"|(?P<text>\b[rR]'[^']*'|\b[rR]\"[^\"]*\"|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\")"
    r"|(?P<comment>--[^\n]*|/\*.*?\*/)"
)
_CALLED = re.compile(r"\s*\(")
_WORD = re.compile(r"(?i)[()\[\]]|\b(?:and|or|between|case|end)\b")


def _unquoted(token: re.Match[str]) -> str:
    return token.group()[1:-1].replace("``", "`")


def _is_column(sql: str, token: re.Match[str], columns: frozenset[str]) -> bool:
    """A quoted name after a dot is a field of a struct, and one before a parenthesis a function."""
    if token.lastgroup != "name" or _unquoted(token) not in columns:
        return False
    before = token.start() - 1
    while before >= 0 and sql[before].isspace():
        before -= 1
    return not (before >= 0 and sql[before] == ".") and not _CALLED.match(sql, token.end())


def _shape(sql: str) -> str:
    """The text, equally long, with names, strings and comments made unobtrusive."""
    return _TOKEN.sub(lambda t: (" " if t.lastgroup == "comment" else "x") * len(t.group()), sql)


@lru_cache(maxsize=4096)
def _split(sql: str) -> tuple[str, ...]:
    shape = _shape(sql).rstrip()
    lead = len(shape) - len(shape.lstrip())
    sql, shape = sql[lead : len(shape)], shape[lead:]
    if shape.startswith("(") and _closing(shape, 0) == len(shape) - 1:
        return _split(sql[1:-1])
    cuts, depth, betweens = list[re.Match[str]](), 0, 0
    for word in _WORD.finditer(shape):
        text = word.group().lower()
        if text in ("(", "[", "case"):
            depth += 1
        elif text in (")", "]", "end"):
            depth -= 1
        elif depth or text == "between":
            betweens += not depth
        elif text == "or":
            return (sql,)
        elif betweens:
            betweens -= 1
        else:
            cuts.append(word)
    if not cuts:
        return (sql,)
    starts = [0, *(cut.end() for cut in cuts)]
    ends = [*(cut.start() for cut in cuts), len(sql)]
    return tuple(part for start, end in zip(starts, ends, strict=True) for part in _split(sql[start:end]))


def _closing(shape: str, start: int) -> int:
    depth = 0
    for i in range(start, len(shape)):
        depth += (shape[i] in "([") - (shape[i] in ")]")
        if not depth:
            return i
    return -1


@lru_cache(maxsize=4096)
def _atomic(sql: str) -> bool:
    shape = _shape(sql)
    call = re.match(r"\w*\(", shape)
    if call:
        return _closing(shape, call.end() - 1) == len(shape) - 1
    return re.fullmatch(r"[\w.]+", shape) is not None


@lru_cache(maxsize=4096)
def _operand_of_and(sql: str) -> str:
    """An OR binds weaker than AND wherever it stands outside of parentheses."""
    return f"({sql})" if re.search(r"(?i)\bor\b", _shape(sql)) else sql.strip()


def _part(whole: Scalar, sql: str) -> Scalar:
    names = {_unquoted(t) for t in _TOKEN.finditer(sql) if _is_column(sql, t, whole.columns)}
    return Scalar(sql, frozenset(names), whole.deterministic)
