"""Columns written with more of their table's name than its last part.

A source in whose place a subquery or another table is put can be called by one name only: `shop.orders.id` must become
`orders.id` then; or, where something else in the query is called `orders`, by a name that nothing else has.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from headrace.errors import UserError, place_at
from headrace.names import TableName, quote
from headrace.sql.reader.syntax.tokens import Token, tokenize
from headrace.sql.references import names_given

Span = tuple[int, int]


def unqualify(query: str, aliases: Mapping[TableName, str], names: Sequence[Span] = ()) -> str:
    """Write qualifiers longer than the last part of a table's name as its alias.

    Args:
        query: The text.
        aliases: By table.
        names: Offsets of the first and after the last character where the text names tables, in order; these stay.

    Returns:
        The text; every other character stays.
    """
    pieces: list[str] = []
    at = 0
    tokens = tokenize(query)
    for index, size, name in _qualifiers(tokens, aliases, names):
        pieces.append(query[at : tokens[index].start])
        last = tokens[index + 2 * (size - 1)]
        at = last.start
        if aliases[name] != name.table:
            pieces.append(quote(aliases[name]))
            at = last.end
    return "".join(pieces) + query[at:]


def aliases_of(
    query: str, tables: Collection[TableName], subqueries: Sequence[TableName], names: Sequence[Span]
) -> dict[TableName, str]:
    """Return aliases of tables in whose place subqueries, or other tables, are put.

    Args:
        query: The text.
        tables: What it reads without an alias.
        subqueries: Those of them in whose place something else is put.
        names: As for `unqualify`.

    Raises:
        UserError: `COLUMN_AMBIGUOUS`: something else is called as one of them, and where that is read, columns are
            qualified by its whole name here, by the last part there, whose meaning depends on where it stands.
    """
    tokens, given = tokenize(query), names_given(query)
    called: defaultdict[str, list[TableName]] = defaultdict(list)
    for each in tables:
        called[each.table.lower()].append(each)
    found = {name: name.table for name in subqueries}
    numbers = {name: number for number, name in enumerate(subqueries)}
    for own, alike in called.items():
        renamed = [name for name in alike if name in numbers]
        if not renamed or (len(alike) == 1 and own not in given):
            continue
        whole = {index for index, _, _ in _qualifiers(tokens, alike, names)}
        if whole:
            _refuse_unclear(query, tokens, renamed[0], whole, names)
            found |= {name: f"__hr_{numbers[name]}_{name.table}" for name in renamed}
    return found


def _refuse_unclear(
    query: str, tokens: Sequence[Token], name: TableName, whole: Collection[int], names: Sequence[Span]
) -> None:
    """Refuse columns that are qualified by the last part only where such a table is read."""
    places = [i for i in _places(tokens, name.table, names) if i not in whole and _follows_dot(tokens, i)]
    if not places:
        return
    last = {token.end: token.name.lower() for token in tokens if token.is_name}
    within = [_block(tokens, start) for start, end in names if last.get(end) == name.table.lower()]
    for index in places:
        if any(index in block for block in within):
            raise _unclear(query, tokens[index], name)


def _block(tokens: Sequence[Token], offset: int) -> range:
    """Return the tokens in the innermost brackets around a place.

    Beyond them the name of a table that is read there is not known.
    """
    at = next(index for index, token in enumerate(tokens) if token.start >= offset)
    first, last = at, at
    for step, edge in ((-1, "("), (1, ")")):
        depth, index = 0, at
        while 0 <= index < len(tokens) and not (tokens[index].text == edge and not depth):
            depth += step * ((tokens[index].text == "(") - (tokens[index].text == ")"))
            index += step
        first, last = (index + 1, last) if step < 0 else (first, index)
    return range(first, last)


def _unclear(query: str, token: Token, name: TableName) -> UserError:
    return UserError(
        "COLUMN_AMBIGUOUS",
        f"Several things are called {name.table} here, and columns are qualified by {name.table} and by "
        f"{'.'.join(name.parts[-2:])}.",
        hint="Give each table an alias, and qualify columns by that.",
        place=place_at(query, token.start),
    )


def _places(tokens: Sequence[Token], name: str, names: Sequence[Span]) -> Iterator[int]:
    """Yield where a name stands that is no part of a longer one, but at its beginning."""
    for index, token in enumerate(tokens):
        begins = token.is_name and (not index or tokens[index - 1].text != ".")
        if begins and token.name.lower() == name.lower() and not _within(token, names):
            yield index


def _follows_dot(tokens: Sequence[Token], index: int) -> bool:
    return index + 1 < len(tokens) and tokens[index + 1].text == "."


def _qualifiers(
    tokens: Sequence[Token], tables: Iterable[TableName], names: Sequence[Span]
) -> Iterator[tuple[int, int, TableName]]:
    """Yield first token, number of parts and table of qualifiers longer than a last part."""
    meant = {_folded(table.parts[i:]): table for table in tables for i in range(len(table.parts) - 1)}
    longest = max(map(len, meant), default=0)
    done = 0
    for index, token in enumerate(tokens):
        if index < done or not token.is_name or (index and tokens[index - 1].text == ".") or _within(token, names):
            continue
        parts = _dotted(tokens, index)
        for size in range(min(longest, len(parts) - 1), 1, -1):
            if (table := meant.get(_folded(p.name for p in parts[:size]))) is not None:
                yield index, size, table
                done = index + 2 * size - 1
                break


def _within(token: Token, names: Sequence[Span]) -> bool:
    at = bisect_right(names, (token.start, math.inf)) - 1
    return at >= 0 and token.start < names[at][1]


def _folded(parts: Iterable[str]) -> tuple[str, ...]:
    return tuple(part.lower() for part in parts)


def _dotted(tokens: Sequence[Token], index: int) -> list[Token]:
    """Return the names of `a.b.c` that begins at a token; a star may stand last."""
    parts = [tokens[index]]
    while index + 2 < len(tokens) and tokens[index + 1].text == ".":
        index += 2
        if not tokens[index].is_name and tokens[index].text != "*":
            break
        parts.append(tokens[index])
    return parts
