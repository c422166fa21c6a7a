"""Random PIVOTs, with names for all their columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import strategies as st

from kit.expressions import Field

_VALUES = {"int": ["0", "1", "2"], "string": ["'a'", "'b'", "''"], "boolean": ["true", "false"]}


def pivoted(
    draw: st.DrawFn, source: str, shown: Sequence[Field], name: Callable[[], str]
) -> tuple[str, tuple[Field, ...]] | None:
    """A SELECT from a source in brackets with some of its values as columns; None without a column to pivot.

    The aggregates give NULL over no rows, as DuckDB and Spark differ about the others.
    """
    fields = [field for field in shown if field.type in _VALUES]
    others = [field for field in shown if field.type in ("int", "bigint", "decimal", "string", "date")]
    if not fields or len(others) < 2:
        return None
    turned = draw(st.lists(st.sampled_from(fields), min_size=1, max_size=2, unique=True))
    rest = [each for each in others if each not in turned]
    if not rest:
        return None
    rows = st.tuples(*(st.sampled_from([*_VALUES[each.type], "NULL"]) for each in turned))
    values = [_row(row) for row in draw(st.lists(rows, min_size=1, max_size=2, unique=True))]
    calls = [_call(draw, rest) for _ in range(draw(st.integers(1, 2)))]
    aliases = [name() for _ in calls]
    written = [f"{call} AS {alias}" for (call, _), alias in zip(calls, aliases, strict=True)]
    named = [(value, name()) for value in values]
    inside = ", ".join(f"{value} AS {alias}" for value, alias in named)
    one = len(calls) == 1
    text = ", ".join([calls[0][0]] if one else written)
    used = {*(each.sql for each in turned), *(field.sql for call, _ in calls for field in others if field.sql in call)}
    columns = [field for field in shown if field.sql not in used]
    for _, value in named:
        for (_, type_), alias in zip(calls, aliases, strict=True):
            columns.append(Field(value if one else f"{value}_{alias}", type_))
    return f"SELECT * FROM {source} PIVOT ({text} FOR {_row([f.sql for f in turned])} IN ({inside}))", tuple(columns)


def _row(values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else f"({', '.join(values)})"


def _call(draw: st.DrawFn, fields: Sequence[Field]) -> tuple[str, str]:
    field = draw(st.sampled_from(fields))
    if field.type in ("int", "bigint", "decimal") and draw(st.booleans()):
        return f"sum({field.sql})", "bigint" if field.type == "int" else field.type
    return f"{draw(st.sampled_from(['min', 'max']))}({field.sql})", field.type
