"""Random window functions whose results are functions of the rows."""

from __future__ import annotations

from hypothesis import strategies as st

from kit.expressions import NUMBERS, Field, Scope, expression

_PEERS = {"rank()": "int", "dense_rank()": "int", "percent_rank()": "double", "cume_dist()": "double"}
_FRAMES = (
    "",
    "",
    "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW",
    "ROWS UNBOUNDED PRECEDING",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING",
    "ROWS BETWEEN 2 PRECEDING AND 1 PRECEDING",
)
_RANGES = (
    "",
    "RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING",
    "RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING",
    "RANGE UNBOUNDED PRECEDING",
    "RANGE CURRENT ROW",
)
_DISTANCES = (
    "RANGE BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "RANGE BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
    "RANGE 1 PRECEDING",
)
"""Frames that only numbers have."""


def chosen(draw: st.DrawFn, scope: Scope) -> Scope:
    """The columns a SELECT with window functions reads: no more of them than its ORDER BY can name."""
    exact = [field for field in scope if field.type != "double"]
    return tuple(draw(st.lists(st.sampled_from(exact), min_size=1, max_size=3, unique=True))) if exact else ()


def calls(draw: st.DrawFn, scope: Scope, *, named: bool = True) -> tuple[list[tuple[str, str]], str]:
    """Window functions over columns, and their types; one order at most for those that go by position.

    Args:
        draw: Draws.
        scope: The columns, none of them a double.
        named: Whether a window may have a name.

    Returns:
        The calls, and the clause that names windows.
    """
    order = ", ".join(f"{field.sql}{_direction(draw)}" for field in draw(st.permutations(scope)))
    own = draw(st.sampled_from(["", "", f"PARTITION BY {draw(st.sampled_from(scope)).sql} "]))
    spec = f"{own}ORDER BY {order}"
    named = named and draw(st.booleans())
    found = []
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            function, type_ = _positional(draw, scope)
            call = function.replace("({})", "named") if named else function
            found.append(_inside(draw, call.format(spec), type_))
        else:
            found.append(_inside(draw, *_settled(draw, scope)))
    used = any(" OVER named" in sql for sql, _ in found)
    return found, f" WINDOW named AS ({spec})" if used else ""


def _inside(draw: st.DrawFn, call: str, type_: str) -> tuple[str, str]:
    """A call, sometimes inside an expression."""
    shapes = ["{0}", "{0}", "COALESCE({0}, {0})", "CASE WHEN {0} IS NULL THEN NULL ELSE {0} END"]
    if type_ == "int":
        shapes.append("{0} + 1")
    return draw(st.sampled_from(shapes)).format(call), type_


def _direction(draw: st.DrawFn) -> str:
    return draw(st.sampled_from(["", " DESC", " ASC NULLS LAST", " DESC NULLS FIRST"]))


def _positional(draw: st.DrawFn, scope: Scope) -> tuple[str, str]:
    """A function with `{}` for what stands inside OVER's brackets."""
    field = draw(st.sampled_from(scope))
    kind = draw(
        st.sampled_from(["row_number", "ntile", "lag", "lead", "first_value", "last_value", "nth", "rows", "rows"])
    )
    if kind == "row_number":
        return "row_number() OVER ({})", "int"
    if kind == "ntile":
        return "ntile(2) OVER ({})", "int"
    if kind in ("lag", "lead"):
        more = draw(st.sampled_from(["", ", 2", f", 1, {field.sql}"]))
        return f"{kind}({field.sql}{more}) OVER ({{}})", field.type
    frame = draw(st.sampled_from(_FRAMES))
    if kind == "rows":
        function = draw(st.sampled_from(["count", "min", "max"]))
        return f"{function}({field.sql}) OVER ({{}} {frame})", "bigint" if function == "count" else field.type
    if kind == "nth":
        return f"nth_value({field.sql}, 2) OVER ({{}} {frame})", field.type
    nulls = draw(st.sampled_from(["", "", " IGNORE NULLS"]))
    return f"{kind}({field.sql}){nulls} OVER ({{}} {frame})", field.type


def _settled(draw: st.DrawFn, scope: Scope) -> tuple[str, str]:
    by = draw(st.sampled_from(scope))
    order = by.sql + _direction(draw)
    partition = ""
    if draw(st.integers(0, 3)):
        first = draw(st.sampled_from(scope))
        partition = f"PARTITION BY {expression(draw, scope, first.type, 1) if draw(st.booleans()) else first.sql} "
    if draw(st.booleans()):
        function = draw(st.sampled_from(sorted(_PEERS)))
        return f"{function} OVER ({partition}ORDER BY {order})", _PEERS[function]
    field = draw(st.sampled_from([*(f for f in scope if f.type in NUMBERS), Field("1", "int")]))
    function = draw(st.sampled_from(["sum", "count", "min", "max"]))
    frame = draw(st.sampled_from([*_RANGES, *(_DISTANCES if by.type == "int" else ())]))
    over = partition + draw(st.sampled_from(["", f"ORDER BY {order} {frame}", f"ORDER BY {order} {frame}"]))
    return f"{function}({field.sql}) OVER ({over})", {"sum": _summed(field.type), "count": "bigint"}.get(
        function, field.type
    )


def _summed(type_: str) -> str:
    return "bigint" if type_ == "int" else type_
