"""Every type of PostgreSQL as a type of Spark, with nothing lost.

Values travel as the text that PostgreSQL itself writes (ISO dates, UTC, hex bytes), and Spark turns whole columns of it
into types. A type that Spark has no equal for stays that text. A value that its column's type cannot hold ('NaN' in a
`numeric(10,2)`, 'infinity' in a `date`) stops landing with an error rather than become NULL: declare such a column as
text (`TEXT COLUMNS`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.algebra.schema import Column
from headrace.algebra.types import MAX_PRECISION
from headrace.names import quote


@dataclass(frozen=True, slots=True)
class Mapped:
    """The Spark type of a column, and SQL that converts its text.

    Args:
        type: The Spark type.
        expression: SQL that makes it of the text `{}`; the text itself when None.
        array: Whether the text is an array literal, which is taken apart before Spark sees it.
    """

    type: str
    expression: str | None = None
    array: bool = False

    def sql(self, text: str) -> str:
        """Return SQL for a value.

        Args:
            text: SQL of its text (for arrays, of its list of texts).
        """
        inner = self.expression.replace("{}", "__hr_x" if self.array else text) if self.expression else None
        if not self.array:
            return inner or text
        return f"transform({text}, __hr_x -> {inner})" if inner else text


TEXT = Mapped("string")

_BC_DATE = (
    "make_date(1 - CAST(substring_index({}, '-', 1) AS INT), CAST(split_part({}, '-', 2) AS INT), "
    "CAST(left(split_part({}, '-', 3), 2) AS INT))"
)
"""Years before Christ: 44 BC is the year -43; there is a year 0."""


def _moment(type_: str) -> str:
    year = "CAST(CAST(substring_index({}, '-', 1) AS INT) - 1 AS STRING)"
    rest = "substring(replace({}, ' BC', ''), instr({}, '-'))"
    before = f"concat(CASE WHEN {year} = '0' THEN '' ELSE '-' END, lpad({year}, 4, '0'), {rest})"
    return f"CAST(CASE WHEN {{}} LIKE '% BC' THEN {before} ELSE {{}} END AS {type_})"


TYPES: Mapping[str, Mapped] = {
    "bool": Mapped("boolean", "({} = 't')"),
    "int2": Mapped("int", "CAST({} AS INT)"),  # Iceberg has no shorter one
    "int4": Mapped("int", "CAST({} AS INT)"),
    "int8": Mapped("bigint", "CAST({} AS BIGINT)"),
    "oid": Mapped("bigint", "CAST({} AS BIGINT)"),
    "float4": Mapped("float", "CAST({} AS FLOAT)"),
    "float8": Mapped("double", "CAST({} AS DOUBLE)"),
    "text": TEXT,
    "varchar": TEXT,
    "bpchar": TEXT,
    "bytea": Mapped("binary", "unhex(substring({}, 3))"),
    "date": Mapped("date", f"CASE WHEN {{}} LIKE '% BC' THEN {_BC_DATE} ELSE CAST({{}} AS DATE) END"),
    "timestamp": Mapped("timestamp_ntz", _moment("TIMESTAMP_NTZ")),
    "timestamptz": Mapped("timestamp", _moment("TIMESTAMP")),
    "vector": Mapped("array<float>", "from_json({}, 'array<float>', map('mode', 'FAILFAST'))"),
}
"""By the name in `pg_type`. Domains count as the type they are over; `numeric` goes by its precision (`mapped`); arrays
of these become arrays; every other type stays text."""

_HEADER = 4
"""The number by which the type modifier of a numeric exceeds its precision and scale."""


def mapped(type_name: str, modifier: int = -1, *, element: str | None = None) -> Mapped:
    """Map a PostgreSQL type to a Spark type.

    Args:
        type_name: Name in `pg_type`, of the base type where it is a domain.
        modifier: The type's modifier; -1 without one.
        element: For an array, the name of its elements' type.
    """
    if element is not None:
        inner = mapped(element, modifier)
        return Mapped(f"array<{inner.type}>", inner.expression, array=True)
    if type_name == "numeric":
        return _numeric(modifier)
    return TYPES.get(type_name, TEXT)


def type_name(name: str, is_mapped: bool, modifier: int = -1) -> str:
    """Return the name that a type is mapped by.

    A user's type may have the name of one of `TYPES` (`CREATE TYPE vector AS (x float, y float)`): in quotes it is
    none. Names of types that are text anyway stay as the catalog has them, so that no mirror is copied again.

    Args:
        name: Its name in `pg_type`.
        is_mapped: It is PostgreSQL's own, or pgvector's.
        modifier: The type's modifier.
    """
    return name if is_mapped or mapped(name, modifier) is TEXT else f'"{name}"'


def _numeric(modifier: int) -> Mapped:
    """Map numeric to decimal where Spark's holds every value of the type, else to text.

    The modifier is made of precision and scale; scales may be negative (`numeric(3,-2)`: hundreds) or larger than the
    precision (`numeric(3,5)`) since PostgreSQL 15.
    """
    if modifier < _HEADER:
        return TEXT
    precision, scale = (modifier - _HEADER) >> 16 & 0xFFFF, ((modifier - _HEADER) & 0x7FF ^ 1024) - 1024
    if scale < 0:
        precision, scale = precision - scale, 0
    precision = max(precision, scale)
    if precision > MAX_PRECISION:
        return TEXT
    type_ = f"decimal({precision},{scale})"
    return Mapped(type_, f"CAST({{}} AS {type_.upper()})")


def selected(columns: tuple[tuple[Column, Mapped], ...]) -> str:
    """Return a select list that makes typed columns of the spooled texts `s.c0`, `s.c1`, …"""
    return ", ".join(
        f"{kept.sql(f's.{place_of(i)}')} AS {quote(column.name)}" for i, (column, kept) in enumerate(columns)
    )


def place_of(number: int) -> str:
    """Name of a column in spooled files; users' names may clash by case, or with ours."""
    return f"c{number}"


def parse_array(text: bytes) -> list[bytes | None] | None:
    """Return the elements of a one-dimensional array literal.

    None when it has more dimensions or other bounds than from 1.

    Source: PostgreSQL documentation, "Array Input and Output Syntax".
    """
    if text[:1] != b"{":
        return None
    if text == b"{}":
        return []
    found: list[bytes | None] = []
    at, end = 1, len(text) - 1
    while at < end:
        if text[at] == 0x7B:  # {
            return None
        if text[at] == 0x22:  # "
            part, at = _quoted(text, at + 1)
            found.append(part)
        else:
            stop = text.find(b",", at, end)
            stop = end if stop < 0 else stop
            part = text[at:stop]
            found.append(None if part == b"NULL" else part)
            at = stop
        at += 1
    return found


def _quoted(text: bytes, at: int) -> tuple[bytes, int]:
    out = bytearray()
    while text[at] != 0x22:
        at += text[at] == 0x5C
        out.append(text[at])
        at += 1
    return bytes(out), at + 1
