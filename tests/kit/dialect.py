"""What sqlglot leaves of Spark's generators when it writes DuckDB's SQL, said in words that both have."""

from __future__ import annotations

import re
from collections.abc import Iterator

import sqlglot
from sqlglot import exp

from kit.duck_sessions import with_sessions


def for_duckdb(tree: exp.Expr) -> exp.Expr:
    """A tree of Spark's SQL with `stack`, `inline` and what is OUTER in terms of arrays."""
    with_sessions(tree)
    for lateral in list(tree.find_all(exp.Lateral)):
        if isinstance(lateral.this, exp.Stack):
            lateral.set("this", exp.Inline(this=_rows(lateral.this)))
        if lateral.args.get("outer"):
            lateral.this.set("this", _filled(lateral.this.this))
    for outer in list(tree.find_all(exp.ExplodeOuter)):
        outer.replace(exp.Explode(this=_filled(outer.this)))
    for call in list(tree.find_all(exp.Anonymous)):
        if call.name.lower() == "window":
            call.replace(exp.Explode(this=_spans(*call.expressions)))
    for fold in list(tree.find_all(exp.Reduce)):
        _with_fields_by_name(fold)
        if (finish := fold.args.get("finish")) is not None:
            fold.set("finish", None)
            last = exp.func("list_transform", exp.Array(expressions=[fold.copy()]), finish)
            fold.replace(exp.func("list_extract", last, exp.Literal.number(1)))
    for item in list(tree.find_all(exp.Aliases)):
        if lists := list(_lists(item)):
            shown = [
                exp.Alias(this=exp.Explode(this=each), alias=name)
                for each, name in zip(lists, item.expressions, strict=True)
            ]
            select = item.parent
            assert isinstance(select, exp.Select)
            own = [new for each in select.expressions for new in (shown if each is item else [each])]
            select.set("expressions", own)
    return tree


def _with_fields_by_name(fold: exp.Reduce) -> None:
    """Have functions over structs take fields by name, as DuckDB takes `a.n` for a column beside GROUP BY."""
    for function in fold.find_all(exp.Lambda):
        names = {each.name for each in function.expressions}
        for field in list(function.find_all(exp.Dot, exp.Column)):
            of = field.this if isinstance(field, exp.Dot) else field.args.get("table")
            if of is not None and of.name in names:
                name = field.expression if isinstance(field, exp.Dot) else field.this
                text = exp.Literal.string(name.name)
                field.replace(exp.func("struct_extract", exp.to_identifier(of.name), text))


def _lists(item: exp.Aliases) -> Iterator[exp.Expr]:
    """A select item's columns, each as an array of its values."""
    call = item.this
    if isinstance(call, exp.Stack):
        width = len(item.expressions)
        for place in range(width):
            yield exp.Array(expressions=[each.copy() for each in call.expressions[place::width]])
        return
    rows = call.this if isinstance(call, exp.Inline) else None
    if isinstance(call, exp.Anonymous) and call.name.lower() == "inline_outer":
        rows = _filled(call.expressions[0])
    for place in range(len(item.expressions) if rows is not None else 0):
        field = exp.func("struct_extract_at", exp.column("s"), exp.Literal.number(place + 1))
        yield exp.func("list_transform", rows.copy(), exp.Lambda(this=field, expressions=[exp.to_identifier("s")]))


def _rows(stack: exp.Stack) -> exp.Array:
    """The rows of a stack as structs."""
    number = int(stack.this.name)
    width = -(-len(stack.expressions) // number)
    cuts = [stack.expressions[at : at + width] for at in range(0, len(stack.expressions), width)]
    return exp.Array(expressions=[_struct(cut) for cut in cuts])


def _struct(values: list[exp.Expr]) -> exp.Struct:
    named = [exp.PropertyEQ(this=exp.to_identifier(f"f{i}"), expression=v.copy()) for i, v in enumerate(values)]
    return exp.Struct(expressions=named)


def _filled(array: exp.Expr) -> exp.Expr:
    """An array that has a NULL where it would have nothing."""
    there = exp.GT(this=exp.ArraySize(this=array.copy()), expression=exp.Literal.number(0))
    one = exp.Array(expressions=[exp.null()])
    return exp.Case(ifs=[exp.If(this=there, true=array.copy())], default=one)


_MICROSECONDS = {"second": 10**6, "minute": 60 * 10**6, "hour": 3600 * 10**6, "day": 86400 * 10**6}


def _spans(time: exp.Expr, *durations: exp.Expr) -> exp.Expr:
    """The spans of a time without a zone that `window` gives, as an array."""
    length, step, offset = ([*map(_microseconds, durations), 0, 0])[:3]
    step = step or length
    t = time.sql("duckdb")
    last = f"epoch_us({t}) - ((epoch_us({t}) - {offset}) % {step} + {step}) % {step}"
    start = f"make_timestamp({last} - i * {step})"
    end = f"make_timestamp({last} - i * {step} + {length})"
    spans = f"list_transform(range({-(-length // step)}), lambda i: {{'start': {start}, 'end': {end}}})"
    return sqlglot.parse_one(f"list_filter({spans}, lambda s: s['end'] > {t})", read="duckdb")


def _microseconds(duration: exp.Expr) -> int:
    return sum(int(number) * _MICROSECONDS[unit] for number, unit in re.findall(r"(\d+) (\w+?)s?\b", duration.name))
