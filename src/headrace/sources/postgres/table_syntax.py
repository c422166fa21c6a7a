"""Names of tables and columns as PostgreSQL writes them, with double quotes around odd ones."""

from __future__ import annotations

from headrace.errors import UserError
from headrace.names import split_dotted


def split_table(text: str) -> tuple[str, str]:
    """Return the schema and table of a name as PostgreSQL writes it.

    `public` where there is no schema.

    Raises:
        UserError: `INVALID_NAME`.
    """
    parts = split_postgres(text)
    if len(parts) == 1:
        return "public", parts[0]
    if len(parts) != 2:
        raise _invalid(text)
    return parts[0], parts[1]


def split_column(text: str) -> tuple[str, str, str]:
    """Split a PostgreSQL name into schema (`public` by default), table and column.

    Raises:
        UserError: `INVALID_NAME`.
    """
    parts = split_postgres(text)
    if len(parts) == 2:
        return "public", *parts
    if len(parts) != 3:
        raise UserError(
            "INVALID_NAME",
            f"'{text}' does not name a column of a table in PostgreSQL.",
            hint='Write schema.table.column, with double quotes around odd parts: public.orders."Valid until".',
        )
    return parts[0], parts[1], parts[2]


def split_postgres(text: str) -> tuple[str, ...]:
    """Return the parts of a dotted name: folded to lower case, but for those in double quotes.

    Raises:
        UserError: `INVALID_NAME`.
    """
    parts = split_dotted(text, '"', "_$", _invalid)
    return tuple(part if quoted else part.lower() for part, quoted in parts)


def _invalid(text: str) -> UserError:
    return UserError(
        "INVALID_NAME",
        f"'{text}' is not the name of a table in PostgreSQL.",
        hint='Write schema.table, with double quotes around odd parts: public."Order items".',
    )
