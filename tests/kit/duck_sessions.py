"""`GROUP BY session_window(…)` for DuckDB, which has no such function: sessions are numbered, and rows counted by them.

It is said otherwise than Headrace says it: by position among the rows, and with a number for each session.
"""

from __future__ import annotations

import sqlglot
from sqlglot import exp

_NAME = "session_window"


def with_sessions(tree: exp.Expr) -> None:
    """Put the rows of a table beside their sessions wherever a SELECT over one table groups by them."""
    for select in list(tree.find_all(exp.Select)):
        group = select.args.get("group")
        call = next((each for each in select.find_all(exp.Anonymous) if _is_session(each, select)), None)
        if group is not None and call is not None:
            _with_session(select, group, call)


def _is_session(call: exp.Anonymous, select: exp.Select) -> bool:
    return call.name.lower() == _NAME and call.parent_select is select


def _with_session(select: exp.Select, group: exp.Group, call: exp.Anonymous) -> None:
    keys = [_meant(each, select) for each in group.expressions]
    others = ", ".join(each.sql("duckdb") for each in keys if each != call)
    time, gap = (each.sql("duckdb") for each in call.expressions)
    source, where = select.args["from_"], select.args.get("where")
    rows = f"SELECT *, {time} AS _t, {time} + TRY_CAST({gap} AS INTERVAL) AS _e {source.sql('duckdb')}"
    rows += f" {where.sql('duckdb')}" if where is not None else ""
    partition = f"PARTITION BY {others}" if others else ""
    before = f"max(_e) OVER ({partition} ORDER BY _t ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    flagged = f"SELECT *, CAST(coalesce(_t > {before}, true) AS INT) AS _new FROM ({rows}) WHERE _e > _t"
    numbered = f"SELECT *, sum(_new) OVER ({partition} ORDER BY _t) AS _no FROM ({flagged})"
    of = f"OVER (PARTITION BY {', '.join(filter(None, (others, '_no')))})"
    session = f"{{'start': min(_t) {of}, 'end': max(_e) {of}}}"
    beside = sqlglot.parse_one(
        f"SELECT * EXCLUDE (_t, _e, _new, _no), {session} AS {_NAME} FROM ({numbered})", read="duckdb"
    )
    assert isinstance(beside, exp.Select)
    select.set("from_", exp.From(this=beside.subquery(source.alias_or_name)))
    select.set("where", None)
    for each in list(select.find_all(exp.Anonymous)):
        if _is_session(each, select):
            each.replace(exp.column(_NAME))


def _meant(key: exp.Expr, select: exp.Select) -> exp.Expr:
    """What an ordinal or an alias of GROUP BY stands for."""
    if isinstance(key, exp.Literal) and not key.is_string:
        return select.expressions[int(key.name) - 1].unalias()
    named = {each.alias: each.this for each in select.expressions if isinstance(each, exp.Alias)}
    return named.get(key.name, key) if isinstance(key, exp.Column) and not key.table else key
