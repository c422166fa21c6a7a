"""`window_time(w)`: the last moment of a time window, a microsecond before its end.

Spark gives it only for columns that it has marked as windows. Whether one is, Spark's own analysis of the query says;
the mark may be gone where the algebra reads the column, so the function is said in words that need none.
"""

from __future__ import annotations

from headrace.sql.reader.scalars.lexemes import Lexeme, Lexemes, Role, closing_bracket

_NAME = "window_time"


def with_window_times(lexemes: Lexemes) -> Lexemes:
    """Return an expression, its names not resolved yet, without calls of `window_time`."""
    out: list[Lexeme] = []
    at = 0
    while at < len(lexemes):
        lexeme = lexemes[at]
        if lexeme.role is not Role.CALL or lexeme.parts[0] != _NAME or lexemes[at + 2].role is not Role.NAME:
            out.append(lexeme)
            at += 1
            continue
        closing = closing_bracket(lexemes, at + 1)
        brackets = (Lexeme(Role.OPERATOR, "(", lexeme.at, lexeme.spaced), Lexeme(Role.OPERATOR, ")", lexeme.at, False))
        inside = with_window_times(lexemes[at + 2 : closing])
        out += [brackets[0], *inside, Lexeme(Role.OPERATOR, ".", lexeme.at, False)]
        out += [Lexeme(Role.LITERAL, "end", lexeme.at, False), Lexeme(Role.OPERATOR, "-", lexeme.at, True)]
        out += [Lexeme(Role.LITERAL, text, lexeme.at, True) for text in ("INTERVAL", "1", "MICROSECOND")]
        out.append(brackets[1])
        at = closing + 1
    return tuple(out)
