"""Random window functions whose results are functions of the rows."""

from __future__ import annotations

from hypothesis import strategies as st

from kit.expressions import NUMBERS, Field, Scope, expression

_PEERS = {"rank()": "int", "dense_rank()": "int", "percent_rank()": "double", "cume_dist()": "double"}
_FRAMES = ("", "", "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW", "ROWS UNBOUNDED PRECEDING")


def chosen(draw: st.DrawFn, scope: Scope) -> Scope:
    """The columns a SELECT with window functions reads: no more of them than its ORDER BY can name."""
    exact = [field for field in scope if field.type != "double"]
    return tuple(draw(st.lists(st.sampled_from(exact), min_size=1, max_size=3, unique=True))) if exact else ()


def calls(draw: st.DrawFn, scope: Scope) -> list[tuple[str, str]]:
    """Window functions over columns, and their types; one order at most for those that go by position."""
    order = ", ".join(f"{field.sql}{_direction(draw)}" for field in draw(st.permutations(scope)))
    own = draw(st.sampled_from(["", "", f"PARTITION BY {draw(st.sampled_from(scope)).sql} "]))
    found = []
    for _ in range(draw(st.integers(1, 3))):
        if draw(st.booleans()):
            function, type_ = _positional(draw, scope)
            found.append((f"{function.format(f'{own}ORDER BY {order}')}", type_))
        else:
            found.append(_settled(draw, scope))
    return found


def _direction(draw: st.DrawFn) -> str:
    return draw(st.sampled_from(["", " DESC", " ASC NULLS LAST", " DESC NULLS FIRST"]))


def _positional(draw: st.DrawFn, scope: Scope) -> tuple[str, str]:
    """A function with `{}` for what stands inside OVER's brackets."""
    field = draw(st.sampled_from(scope))
    kind = draw(st.sampled_from(["row_number", "ntile", "lag", "lead", "first_value", "last_value", "rows"]))
    if kind == "row_number":
        return "row_number() OVER ({})", "int"
    if kind == "ntile":
        return "ntile(2) OVER ({})", "int"
    if kind in ("lag", "lead"):
        return f"{kind}({field.sql}{draw(st.sampled_from(['', ', 2']))}) OVER ({{}})", field.type
    frame = draw(st.sampled_from(_FRAMES))
    if kind == "rows":
        return f"count({field.sql}) OVER ({{}} {frame})", "bigint"
    return f"{kind}({field.sql}) OVER ({{}} {frame})", field.type


def _settled(draw: st.DrawFn, scope: Scope) -> tuple[str, str]:
    order = draw(st.sampled_from(scope)).sql + _direction(draw)
    partition = ""
    if draw(st.integers(0, 3)):
        first = draw(st.sampled_from(scope))
        partition = f"PARTITION BY {expression(draw, scope, first.type, 1) if draw(st.booleans()) else first.sql} "
    if draw(st.booleans()):
        function = draw(st.sampled_from(sorted(_PEERS)))
        return f"{function} OVER ({partition}ORDER BY {order})", _PEERS[function]
    field = draw(st.sampled_from([*(f for f in scope if f.type in NUMBERS), Field("1", "int")]))
    function = draw(st.sampled_from(["sum", "count", "min", "max"]))
    over = partition + draw(st.sampled_from(["", f"ORDER BY {order}"]))
    return f"{function}({field.sql}) OVER ({over})", {"sum": _summed(field.type), "count": "bigint"}.get(
        function, field.type
    )


def _summed(type_: str) -> str:
    return "bigint" if type_ == "int" else type_
