"""Names of tables and columns as PostgreSQL writes them."""

from __future__ import annotations

import re

from headrace.errors import UserError
from headrace.names import split_dotted

_PLAIN = re.compile(r"[a-z_][a-z0-9_$]*")


def split_target(text: str) -> tuple[str, str]:
    """Return schema and table of a name as PostgreSQL writes it, in `public` by default.

    Raises:
        UserError: `INVALID_NAME`.
    """
    parts = tuple(part if quoted else part.lower() for part, quoted in split_dotted(text, '"', "_$", _invalid))
    if len(parts) > 2:
        raise _invalid(text)
    return ("public", parts[0]) if len(parts) == 1 else (parts[0], parts[1])


def target_text(schema: str, name: str) -> str:
    """Return the name of a table as `split_target` reads it, with quotes around odd parts."""
    return ".".join(_quoted(part) for part in (schema, name))


def _quoted(part: str) -> str:
    if _PLAIN.fullmatch(part):
        return part
    doubled = part.replace('"', '""')
    return f'"{doubled}"'


def _invalid(text: str) -> UserError:
    return UserError(
        "INVALID_NAME",
        f"'{text}' is not the name of a table in PostgreSQL.",
        hint='Write schema.table, with double quotes around odd parts: public."Order items".',
    )
