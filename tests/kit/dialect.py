"""What sqlglot leaves of Spark's generators when it writes DuckDB's SQL, said in words that both have."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp


def for_duckdb(tree: exp.Expr) -> exp.Expr:
    """A tree of Spark's SQL with `stack`, `inline` and what is OUTER in terms of arrays."""
    for lateral in list(tree.find_all(exp.Lateral)):
        if isinstance(lateral.this, exp.Stack):
            lateral.set("this", exp.Inline(this=_rows(lateral.this)))
        if lateral.args.get("outer"):
            lateral.this.set("this", _filled(lateral.this.this))
    for outer in list(tree.find_all(exp.ExplodeOuter)):
        outer.replace(exp.Explode(this=_filled(outer.this)))
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
