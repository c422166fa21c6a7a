"""Names of tables and columns as PostgreSQL writes them."""

from __future__ import annotations

from headrace.errors import UserError
from headrace.names import split_dotted


def split_target(text: str) -> tuple[str, str]:
    """Return schema and table of a name as PostgreSQL writes it, in `public` by default.

    Raises:
        UserError: `INVALID_NAME`.
    """
    parts = tuple(part if quoted else part.lower() for part, quoted in split_dotted(text, '"', "_$", _invalid))
    if len(parts) > 2:
        raise _invalid(text)
    return ("public", parts[0]) if len(parts) == 1 else (parts[0], parts[1])


def _invalid(text: str) -> UserError:
    return UserError(
        "INVALID_NAME",
        f"'{text}' is not the name of a table in PostgreSQL.",
        hint='Write schema.table, with double quotes around odd parts: public."Order items".',
    )
