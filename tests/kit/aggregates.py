"""Random aggregate calls that are maintained by computing touched groups again, and random grouping sets."""

from __future__ import annotations

from hypothesis import strategies as st

from kit.expressions import NUMBERS, Scope, condition, expression


def recomputed(draw: st.DrawFn, scope: Scope, *, inexact: bool) -> tuple[str, str]:
    """A call and its type. Floating-point results are rounded, as the order of an addition shows in the last digits."""
    kinds = ["distinct", "distinct", "truth", "bits", "array", "count_if", "by", "list", "share", "kinds", "extreme"]
    kinds += ["moments", "pairs"] if inexact else []
    kind = draw(st.sampled_from(kinds))
    number = draw(st.sampled_from([each for each in NUMBERS if inexact or each != "double"]))
    if kind == "distinct":
        function = draw(st.sampled_from(["count", "count", "sum", "min"]))
        type_ = number if function == "sum" else draw(st.sampled_from(scope)).type
        result = {"count": "bigint", "sum": "bigint" if type_ == "int" else type_}.get(function, type_)
        return f"{function}(DISTINCT {expression(draw, scope, type_, 1)})", result
    if kind == "truth":
        return f"{draw(st.sampled_from(['bool_and', 'bool_or']))}({condition(draw, scope, 0)})", "boolean"
    if kind == "bits":
        return f"{draw(st.sampled_from(['bit_and', 'bit_or', 'bit_xor']))}({expression(draw, scope, 'int', 1)})", "int"
    if kind == "moments":
        function = draw(st.sampled_from(["stddev_samp", "stddev_pop", "var_samp", "var_pop", "median"]))
        return f"CAST({function}({expression(draw, scope, 'int', 1)}) AS DECIMAL(18,6))", "decimal"
    if kind == "pairs":
        function = draw(st.sampled_from(["covar_pop", "regr_count", "covar_samp", "regr_avgx", "regr_sxy"]))
        arguments = ", ".join(expression(draw, scope, "int", 1) for _ in range(2))
        return f"CAST({function}({arguments}) AS DECIMAL(18,6))", "decimal"
    if kind == "by":
        return _chosen(draw, scope)
    if kind == "list":
        # DuckDB does not order by constants
        texts = [field.sql for field in scope if field.type == "string"]
        if not texts:
            return "count(*)", "bigint"
        if draw(st.integers(0, 2)) == 0:
            loose = (
                "listagg({}, '-')",
                "listagg({}, '-') WITHIN GROUP (ORDER BY {})",
                "array_join(collect_list({}), '-')",
            )
            return draw(st.sampled_from(loose)).format(draw(st.sampled_from(texts)), scope[0].sql), "string"
        text, direction = draw(st.sampled_from(texts)), draw(st.sampled_from(["", " DESC"]))
        first = draw(st.sampled_from(["", f"{draw(st.sampled_from(scope)).sql}, "]))
        return f"listagg({text}, '-') WITHIN GROUP (ORDER BY {first}{text}{direction})", "string"
    if kind == "share":
        function = draw(st.sampled_from(["percentile_cont(0.5)", "percentile_disc(0.5)"]))
        argument = draw(
            st.sampled_from(
                [f"{function} WITHIN GROUP (ORDER BY {{}})", "try_sum(CAST({} AS INT))", "try_avg(CAST({} AS INT))"]
            )
        )
        numbers = [field.sql for field in scope if field.type == "int"]
        if not numbers:
            return "count(*)", "bigint"
        return f"CAST({argument.format(draw(st.sampled_from(numbers)))} AS DECIMAL(18,6))", "decimal"
    if kind == "kinds":
        return f"approx_count_distinct({draw(st.sampled_from(scope)).sql})", "bigint"
    if kind == "extreme":
        field = draw(st.sampled_from(scope))
        function = draw(st.sampled_from(["array_min(collect_set({}))", "array_max(collect_list({}))", "{}"]))
        if function == "{}" or field.type == "boolean":
            return f"mode() WITHIN GROUP (ORDER BY {field.sql}{draw(st.sampled_from(['', ' DESC']))})", field.type
        return function.format(field.sql), field.type
    if kind == "count_if":
        return f"COALESCE(count_if({condition(draw, scope, 0)}), 0)", "bigint"
    function = draw(st.sampled_from(["collect_list", "collect_set"]))
    return f"size({function}({expression(draw, scope, draw(st.sampled_from(scope)).type, 1)}))", "int"


def _chosen(draw: st.DrawFn, scope: Scope) -> tuple[str, str]:
    """The value in a row that is told apart from all others with another value."""
    exact = [field for field in scope if field.type != "double"]
    if not exact:
        return "count(*)", "bigint"
    field, by = draw(st.sampled_from(exact)), draw(st.sampled_from(exact))
    if draw(st.integers(0, 2)) == 0:
        # what is left to choose is settled in the text
        other = draw(st.sampled_from(scope)).sql
        loose = ("max_by({}, {})", "min_by({}, {})", "any_value({})", "first({})", "last({})")
        return draw(st.sampled_from(loose)).format(field.sql, other), field.type
    columns = f"{by.sql} AS y, {field.sql} AS x"
    return f"{draw(st.sampled_from(['max_by', 'min_by']))}({field.sql}, struct({columns}))", field.type


def grouping(draw: st.DrawFn, keys: list[str]) -> str:
    """A GROUP BY clause over keys, with grouping sets."""
    kind = draw(st.sampled_from(["ROLLUP", "CUBE", "SETS", "PART"]))
    # of one key, a part would be no grouping sets, of which Spark has no grouping()
    if kind == "PART" and keys[1:]:
        return f"{keys[0]}, {draw(st.sampled_from(['ROLLUP', 'CUBE']))}({', '.join(keys[1:])})"
    if kind != "SETS":
        return f"{'CUBE' if kind == 'CUBE' else 'ROLLUP'}({', '.join(keys)})"
    sets = draw(st.lists(st.lists(st.sampled_from(keys), unique=True), min_size=1, max_size=3))
    return f"GROUPING SETS ({', '.join(f'({chr(44).join(each)})' for each in [*sets, keys])})"
