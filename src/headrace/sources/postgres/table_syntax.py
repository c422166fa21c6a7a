"""Names of tables and columns as PostgreSQL writes them, with double quotes around odd ones."""

from __future__ import annotations

from headrace.errors import UserError


def split_table(text: str) -> tuple[str, str]:
    """Schema and table of a name as PostgreSQL writes it; `public` where there is no schema.

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
    parts, at = [], 0
    while at <= len(text):
        if text[at : at + 1] == '"':
            part, at = _quoted(text, at + 1)
        else:
            end = text.find(".", at)
            end = len(text) if end < 0 else end
            part, at = text[at:end].strip().lower(), end
            if not part or not all(c.isalnum() or c in "_$" for c in part):
                raise _invalid(text)
        parts.append(part)
        if text[at : at + 1] not in ("", "."):
            raise _invalid(text)
        at += 1
    return tuple(parts)


def _quoted(text: str, at: int) -> tuple[str, int]:
    out: list[str] = []
    while at < len(text):
        if text[at] == '"':
            if text[at + 1 : at + 2] != '"':
                if not out:
                    break
                return "".join(out), at + 1
            at += 1
        out.append(text[at])
        at += 1
    raise _invalid(text)


def _invalid(text: str) -> UserError:
    return UserError(
        "INVALID_NAME",
        f"'{text}' is not the name of a table in PostgreSQL.",
        hint='Write schema.table, with double quotes around odd parts: public."Order items".',
    )
