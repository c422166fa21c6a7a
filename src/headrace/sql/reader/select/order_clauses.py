"""Notes where a query's text orders rows, and how columns are written there, to refine it.

`ORDER BY … LIMIT` is refined by the numbers of the columns that the query shows; the order of a window function by the
names that its SELECT sees. An order that rows share on purpose is not refined: functions of peers, and frames by value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from headrace.names import quote
from headrace.semantics import ORDER_BY_ORDINAL
from headrace.sql.reader.context import Context, OrderClause, Output
from headrace.sql.reader.names.scope import AmbiguousNameError, Scope, Visible
from headrace.sql.reader.scalars.lexemes import Lexemes, Role, render
from headrace.sql.reader.syntax.query_shape import Extra, Range

Texts = Mapping[str, str]
"""By column of a relation: how the text names it."""


def note_cut(context: Context, extras: Mapping[str, Extra], cuts: list[Extra], output: Output) -> None:
    """Note where the rows of a query are ordered before some are cut off.

    Args:
        context: The text.
        extras: What follows the query's body, by construct.
        cuts: LIMIT and OFFSET.
        output: Its rows, with what only ORDER BY reads.
    """
    if context.outer is not None or not extras.keys().isdisjoint(("SORT BY", "CLUSTER BY", "DISTRIBUTE BY")):
        return
    if ORDER_BY_ORDINAL in context.unusual:  # numbers are no columns
        return
    tokens, order = context.cursor.tokens, extras.get("ORDER BY")
    columns, names = output.relation.columns, output.names
    shown = next((i for i, name in enumerate(columns) if name in output.hidden), len(columns))
    terms = {name: str(i) for i, name in enumerate(columns[:shown], 1)}
    folded = [context.fold(name or "") for name in names]
    named = {c: quote(n) for c, n in zip(columns, names, strict=True) if n and folded.count(context.fold(n)) == 1}
    values = {**output.written, **named}
    if order is None:
        first = min(tokens[cut.at].start for cut in cuts)
        clause = OrderClause(first, 0, "ORDER BY ", " ", terms, values)
    else:
        clause = OrderClause(tokens[order.range[1] - 1].end, 0, ", ", "", terms, values)
    context.orders[context.place(cuts[0].at)] = clause


def note_over(
    context: Context,
    call: Lexemes,
    clause: Lexemes,
    frame_at: int,
    named: Sequence[tuple[str, Range]],
    texts: Texts,
    *,
    ordered: bool,
) -> None:
    """Note where the rows of a window function are ordered.

    Args:
        context: The text.
        call: The function with its arguments.
        clause: From OVER to the closing bracket, definitions of named windows put in.
        frame_at: Index of the frame within the brackets; their end where there is none.
        named: Named windows of the SELECT.
        texts: How the SELECT names its rows' columns.
        ordered: Whether there is an ORDER BY.
    """
    inside, sql, tokens = clause[2:-1], context.cursor.sql, context.cursor.tokens
    frame = " ".join(lexeme.text.upper() for lexeme in inside[frame_at:])
    added = _frame_added(call, frame, ordered=ordered)
    if context.outer is not None or added is None or clause[-1].text != ")":
        return
    opening, closing = clause[1].at, clause[-1].at
    start, end = opening + 1, closing
    elsewhere = bool(inside) and not opening < inside[0].at < closing
    if elsewhere:
        # a named window, which others may share: its definition is put in the place of its name
        within = next((within for _, within in named if tokens[within[0]].start == inside[0].at), None)
        if within is None:
            return
        start, end = tokens[within[0]].start, tokens[within[1] - 1].end
    stop = inside[frame_at].at if frame_at < len(inside) else end
    last = max((token.end for token in tokens if start <= token.start < stop), default=start)
    before = ", " if ordered else " ORDER BY " if last > start else "ORDER BY "
    after = added or (" " if sql[last:stop] == "" and stop < end else "")
    at, removed = last, 0
    if elsewhere:
        bare = sql[opening] != "("
        name = next(token for token in tokens if token.start >= opening + (not bare))
        at, removed = name.start, name.end - name.start
        before, after = f"{'(' * bare}{sql[start:last]}{before}", f"{after}{sql[last:end]}{')' * bare}"
    context.orders[context.place_of(call[0].at)] = OrderClause(at, removed, before, after, texts, texts)


_NUMBERING = frozenset({"row_number", "ntile", "lag", "lead"})
_FIRST = frozenset({"first", "first_value", "any_value"})
_WHOLE = "BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


def _frame_added(call: Lexemes, frame: str, *, ordered: bool) -> str | None:
    """Return the frame that a function needs beside a finer order.

    None where that would give it other rows. In a frame by value, rows that tie are in each other's frame, and would
    not be any more. The first row of a frame that begins with the partition is one that the function may take as it is
    written.
    """
    if call[0].parts[0] in _NUMBERING:
        return "" if ordered else None
    if frame.startswith("ROWS ") or frame == f"RANGE {_WHOLE}":
        return ""
    if not frame and not ordered:
        return f" ROWS {_WHOLE}"
    # with an argument or words more it passes over NULLs, and looks at later rows, too
    plain = call[0].parts[0] in _FIRST and not any(each.text.upper() in (",", "IGNORE") for each in call)
    return "" if plain and re.fullmatch(r"(RANGE (BETWEEN )?UNBOUNDED PRECEDING( AND CURRENT ROW)?)?", frame) else None


def texts_of(scope: Scope) -> dict[str, str]:
    """Return how a SELECT names the columns of its FROM, as shortly as it can."""
    found: dict[str, str] = {}
    for each in scope.columns:
        if (text := _named(scope, each)) is not None:
            found.setdefault(each.internal, text)
    return found


def _named(scope: Scope, column: Visible) -> str | None:
    for length in range(len(column.qualifier) + 1):
        parts = (*column.qualifier[len(column.qualifier) - length :], column.name)
        try:
            resolved = scope.resolve(parts)
        except AmbiguousNameError:
            continue
        if resolved is not None and resolved.parts == len(parts) and resolved.column.internal == column.internal:
            return ".".join(map(quote, parts))
    return None


def written(lexemes: Lexemes, texts: Texts) -> str | None:
    """Return an expression over columns as the text may write it.

    None where it cannot name one of them.
    """
    columns = [lexeme.parts[0] for lexeme in lexemes if lexeme.role is Role.INPUT]
    if not all(name in texts for name in columns) or any(lexeme.role is Role.SUBQUERY for lexeme in lexemes):
        return None
    shown = [replace(each, text=texts[each.parts[0]]) if each.role is Role.INPUT else each for each in lexemes]
    return render(shown)
