"""Column names inside the algebra: unique within a relation, readable, and safe to store."""

from __future__ import annotations

import re

from headrace.sql.reader.scalars.lexemes import Lexemes, Role

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Names:
    """Hands out names that differ by more than case."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def take(self, wanted: str) -> str:
        """Return the wanted name, with a number added when it is taken."""
        name, number = wanted, 1
        while name.lower() in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name.lower())
        return name


def plain_name(lexemes: Lexemes) -> str | None:
    """Return a column's or field's bare name if the expression is one, unquoted; else None."""
    if not lexemes or lexemes[0].role is not Role.INPUT:
        return None
    if len(lexemes) == 1:
        name = lexemes[0].parts[0].rpartition(".")[2]
    elif len(lexemes) % 2 and all(p.text == "." for p in lexemes[1::2]):
        name = lexemes[-1].text
    else:
        return None
    return name if _PLAIN.fullmatch(name) else None
