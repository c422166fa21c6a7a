"""Random generators: several rows from one, in LATERAL VIEW and as select items, and UNPIVOT."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from kit.expressions import Field, Scope, condition

Call = tuple[str, tuple[str, ...]]
"""A generator as it is written, and the types of its columns."""


def viewed(draw: st.DrawFn, source: str, scope: Scope, alias: str) -> tuple[str, Scope]:
    """A source with LATERAL VIEW."""
    call, types = _call(draw, scope)
    outer = draw(st.sampled_from(["", "", "OUTER "])) if "posexplode" not in call else ""
    # sqlglot loses the alias of a view of several columns
    names = [f"{alias}_{letter}" for letter in "xyz"[: len(types)]]
    added = tuple(Field(name, type_) for name, type_ in zip(names, types, strict=True))
    return f"{source} LATERAL VIEW {outer}{call} {alias} AS {', '.join(names)}", scope + added


def item(draw: st.DrawFn, scope: Scope) -> Call:
    """A select item; one at most in a SELECT."""
    call, types = _call(draw, scope)
    outer = not call.startswith(("posexplode", "stack")) and draw(st.integers(0, 2)) == 0
    return (call.replace("(", "_outer(", 1) if outer else call), types


def _call(draw: st.DrawFn, scope: Scope) -> Call:
    kind = draw(st.sampled_from(["explode", "explode", "posexplode", "inline", "stack"]))
    # Spark has no common type for decimals in stacks
    firm = [field for field in scope if field.type != "decimal"]
    if kind in ("explode", "posexplode") or not firm:
        field = draw(st.sampled_from(scope))
        array = _array(draw, scope, draw(st.lists(_same(scope, field), min_size=1, max_size=3)))
        return (
            (f"posexplode({array})", ("int", field.type))
            if kind == "posexplode"
            else (
                f"explode({array})",
                (field.type,),
            )
        )
    fields = [draw(st.sampled_from(firm)) for _ in range(2)]
    types = tuple(field.type for field in fields)
    rows = [[draw(_same(scope, field)) for field in fields] for _ in range(draw(st.integers(1, 2)))]
    if kind == "stack":
        return f"stack({len(rows)}, {', '.join(', '.join(row) for row in rows)})", types
    structs = [f"named_struct('x', {x}, 'y', {y})" for x, y in rows]
    return f"inline({_array(draw, scope, structs)})", types


def _same(scope: Scope, field: Field) -> st.SearchStrategy[str]:
    return st.sampled_from([each.sql for each in scope if each.type == field.type])


def _array(draw: st.DrawFn, scope: Scope, values: Sequence[str]) -> str:
    array = f"array({', '.join(values)})"
    return f"CASE WHEN {condition(draw, scope, 0)} THEN {array} END" if draw(st.booleans()) else array


def unpivoted(
    draw: st.DrawFn, source: str, shown: Sequence[Field], name: Callable[[], str]
) -> tuple[str, tuple[Field, ...]] | None:
    """A SELECT from a source in brackets with some of its columns as rows; None without two columns of one type."""
    types = sorted({a.type for i, a in enumerate(shown) for b in shown[:i] if a.type == b.type})
    if not types:
        return None
    type_ = draw(st.sampled_from(types))
    fields = [each for each in shown if each.type == type_][:3]
    value, key = name(), name()
    nulls = draw(st.sampled_from(["", "EXCLUDE NULLS ", "INCLUDE NULLS "]))
    items = ", ".join(each.sql for each in fields)
    kept = [each for each in shown if each not in fields]
    text = f"SELECT * FROM {source} UNPIVOT {nulls}({value} FOR {key} IN ({items}))"
    return text, (*kept, Field(key, "string"), Field(value, type_))
