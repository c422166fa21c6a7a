"""Random scalar expressions in Spark SQL, by type. None of them can fail."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

NUMBERS = ("int", "bigint", "decimal", "double")
TYPES = (*NUMBERS, "string", "boolean", "date")


@dataclass(frozen=True)
class Field:
    """A column in scope.

    Args:
        sql: How it is written.
        type: Its type without parameters, such as `decimal`.
    """

    sql: str
    type: str


Scope = tuple[Field, ...]

_LITERALS = {
    "int": ["0", "1", "2"],
    "bigint": ["CAST(1 AS BIGINT)"],
    "decimal": ["CAST(1.50 AS DECIMAL(8,2))"],
    "double": ["CAST(0.5 AS DOUBLE)"],
    "string": ["'a'", "''"],
    "boolean": ["true", "false"],
    "date": ["DATE '2024-03-01'"],
}


def expression(draw: st.DrawFn, scope: Scope, type_: str, depth: int = 2) -> str:
    """An expression of a type."""
    fields = [field.sql for field in scope if field.type == type_]
    if depth == 0 or draw(st.integers(0, 2)) > 0:
        use_field = bool(fields) and draw(st.integers(0, 5)) > 0
        return draw(st.sampled_from(fields) if use_field else _literal(type_))
    if type_ == "boolean":
        return condition(draw, scope, depth - 1)
    first = expression(draw, scope, type_, depth - 1)
    second = expression(draw, scope, type_, depth - 1)
    shapes = [f"COALESCE({first}, {second})", f"NULLIF({first}, {second})"]
    if type_ in ("int", "double"):
        shapes += [f"{first} + {second}", f"-({first})"]
    # with one column these begin and end as the reference t1.`x` does
    if type_ == "double":
        shapes += [f"tanh(0.0) - {first}"]
    if type_ == "string":
        shapes += [f"UPPER({first})", f"CONCAT({first}, '-', {second})", f"trim('a') || {first}"]
    shape = draw(st.sampled_from([*shapes, "CASE"]))
    if shape == "CASE":
        return f"CASE WHEN {condition(draw, scope, depth - 1)} THEN {first} ELSE {second} END"
    return shape


def _literal(type_: str) -> st.SearchStrategy[str]:
    return st.sampled_from(_LITERALS[type_])


def condition(draw: st.DrawFn, scope: Scope, depth: int = 1) -> str:
    """A condition, often NULL."""
    kind = draw(st.sampled_from(["compare", "compare", "null", "between", "and", "or", "not", "in"]))
    if kind in ("and", "or", "not") and depth > 0:
        first = condition(draw, scope, depth - 1)
        if kind == "not":
            return f"NOT ({first})"
        second = condition(draw, scope, depth - 1)
        return draw(st.sampled_from([f"({first} {kind.upper()} {second})", f"true AND {first}"]))
    type_ = draw(st.sampled_from(scope)).type
    first = expression(draw, scope, type_, depth)
    if kind == "null":
        return f"{first} IS {draw(st.sampled_from(['', 'NOT ']))}NULL"
    if type_ == "boolean":
        return first
    # another column or a constant: a column compared with itself says little
    others = [field.sql for field in scope if field.type == type_ and field.sql != first]
    second = draw(st.sampled_from([*others, *_LITERALS[type_]]))
    if kind == "between":
        return f"{first} BETWEEN {second} AND {expression(draw, scope, type_, 0)}"
    if kind == "in":
        return f"{first} IN ({second}, {draw(_literal(type_))})"
    return f"{first} {draw(st.sampled_from(['=', '<>', '<', '>=', '<=>']))} {second}"
