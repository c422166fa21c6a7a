"""Random queries of the kinds that are maintained, up to three levels deep."""

from __future__ import annotations

from hypothesis import strategies as st

from kit import aggregates, generators, windows
from kit.case import Case, Table
from kit.expressions import Field, Scope, condition, expression
from kit.histories import histories
from kit.subqueries import Subqueries
from kit.values import tables
from kit.writing import Shown


class _Queries(Subqueries):
    """Writes whole queries."""

    def query(self, depth: int) -> tuple[str, Shown]:
        """A SELECT, or two or three with set operators between them."""
        sql, shown = self.select(depth)
        while depth > 0 and self.seldom():
            other = self.projection(depth - 1, [each.type for each in shown])
            operator = self.choose("UNION", "UNION", "INTERSECT", "EXCEPT", "EXCEPT")
            if self.seldom():
                last = self.projection(depth - 1, [each.type for each in shown])
                other = f"({other} {self.choose('UNION ALL', 'INTERSECT', 'EXCEPT ALL')} {last})"
            sql = f"{sql} {operator} {self.choose('ALL ', '')}{other}"
            depth -= 1
        return sql, shown

    def select(self, depth: int) -> tuple[str, Shown]:
        source, scope = self.source(depth)
        where = self.where(scope, depth)
        kind = self.choose(
            "plain", "plain", "distinct", "group", "group", "group", "global", "window", "window", "rows"
        )
        if kind == "window" and self.seldom():
            return self.one_of_each(f"{source}{where}", scope)
        if kind == "window" and (columns := windows.chosen(self.draw, scope)):
            return self.windowed(f"{source}{where}", columns)
        if kind in ("group", "global"):
            return self.grouped(f"{source}{where}", scope, depth, keyed=kind == "group")
        types = [self.type(scope) for _ in range(self.draw(st.integers(1, 3)))]
        items = [expression(self.draw, scope, type_) for type_ in types]
        if kind == "rows":
            return self.generated(items, types, scope, f" FROM {source}{where}")
        if depth > 0 and self.seldom():
            sql, type_ = self.value(scope, depth - 1)
            items, types = [*items, f"({sql})"], [*types, type_]
        elif depth > 0 and self.seldom():
            items, types = [*items, self.asked(scope, depth - 1)], [*types, "int"]
        distinct = "DISTINCT " if kind == "distinct" else ""
        return self.written(f"SELECT {distinct}", items, types, f" FROM {source}{where}")

    def windowed(self, source: str, scope: Scope) -> tuple[str, Shown]:
        calls, named = windows.calls(self.draw, scope)
        shown = [*((f.sql, f.type) for f in scope if self.often()), *calls]
        tail = f" FROM {source}{named}"
        return self.written("SELECT ", [sql for sql, _ in shown], [type_ for _, type_ in shown], tail)

    def one_of_each(self, source: str, scope: Scope) -> tuple[str, Shown]:
        """The first rows of each partition, in an order that leaves ties."""
        shown = [field for field in scope if self.often()] or [*scope[:1]]
        by = f"{self.draw(st.sampled_from(scope)).sql}{self.choose('', ' DESC', ' DESC NULLS LAST')}"
        place = f"row_number() OVER (PARTITION BY {self.draw(st.sampled_from(scope)).sql} ORDER BY {by})"
        items = [*(field.sql for field in shown), place]
        inner, fields = self.written("SELECT ", items, [*(field.type for field in shown), "int"], f" FROM {source}")
        outer = [field.sql for field in fields[:-1]]
        tail = f" FROM ({inner}) AS {self.alias()} WHERE {fields[-1].sql} <= {self.choose('1', '1', '2')}"
        return self.written("SELECT ", outer, [field.type for field in fields[:-1]], tail)

    def generated(self, items: list[str], types: list[str], scope: Scope, tail: str) -> tuple[str, Shown]:
        """A SELECT with an item that gives several rows."""
        sql, shown = self.written("SELECT ", items, types, "")
        call, made = generators.item(self.draw, scope)
        _, added = self.written("", list(made), list(made), "")
        names = ", ".join(each.sql for each in added)
        return f"{sql}, {call} AS {names if len(added) == 1 else f'({names})'}{tail}", shown + added

    def projection(self, depth: int, types: list[str]) -> str:
        """A SELECT with columns of given types, to stand in a union."""
        source, scope = self.source(depth)
        items = [expression(self.draw, scope, type_, 1) for type_ in types]
        return self.written("SELECT ", items, types, f" FROM {source}")[0]

    def grouped(self, source: str, scope: Scope, depth: int, *, keyed: bool) -> tuple[str, Shown]:
        keys = []
        if keyed:
            types = [self.type(scope) for _ in range(self.draw(st.integers(1, 2)))]
            keys = [(expression(self.draw, scope, type_, 1), type_) for type_ in types]
            keys = [(sql, type_) for sql, type_ in dict(keys).items() if any(f.sql in sql for f in scope)]
        calls = [self.call(scope) for _ in range(self.draw(st.integers(1, 3)))]
        if depth > 0 and keyed and self.seldom():
            keys.append((self.asked(scope, depth - 1), "int"))
        shown = [*(k for k in keys if self.often()), *calls]
        if depth > 0 and self.seldom():
            shown.append((f"sum({self.asked(scope, depth - 1)})", "bigint"))
        elif depth > 0 and self.seldom():
            shown.append((f"count(*) FILTER (WHERE {self.asking(scope, depth - 1)})", "bigint"))
        group = f" GROUP BY {', '.join(sql for sql, _ in keys)}" if keys else ""
        having = ""
        if self.seldom():
            results = tuple(Field(sql, type_) for sql, type_ in calls)
            having = f" HAVING {condition(self.draw, results)}"
        elif depth > 0 and self.seldom():
            sql, type_ = self.value((), depth - 1)
            same = [call for call, each in calls if each == type_]
            having = f" HAVING {self.choose(*same)} >= ({sql})" if same else ""
        elif depth > 0 and self.seldom():
            results = tuple(Field(sql, type_) for sql, type_ in [*keys, *calls] if "SELECT" not in sql)
            plain = tuple(Field(sql, type_) for sql, type_ in keys if any(sql == each.sql for each in scope))
            having = f" HAVING {self.asking(results, depth - 1, plain)}"
        # sqlglot does not read a predicate among the columns of ROLLUP
        if keys and {sql for sql, _ in keys} <= {each.sql for each in scope} and self.seldom():
            written = aggregates.grouping(self.draw, [sql for sql, _ in keys])
            # DuckDB has a row for the empty set over no rows, Spark has none
            group, having = (
                f" GROUP BY {written}",
                having.replace("HAVING", "HAVING count(*) > 0 AND") or " HAVING count(*) > 0",
            )
            shown += [(f"CAST(grouping({sql}) AS INT)", "int") for sql, _ in keys if self.seldom()]
            if "SETS" not in written and self.seldom():
                shown.append((f"CAST(grouping_id({', '.join(sql for sql, _ in keys)}) AS INT)", "int"))
        elif keys and self.seldom():
            shown += self.above_groups(keys, calls)
        return self.written("SELECT ", [s for s, _ in shown], [t for _, t in shown], f" FROM {source}{group}{having}")

    def above_groups(self, keys: list[tuple[str, str]], calls: list[tuple[str, str]]) -> list[tuple[str, str]]:
        """Window functions over groups, and aggregates that choose where there is nothing to choose."""
        fields = tuple(Field(sql, type_) for sql, type_ in keys if "SELECT" not in sql and type_ != "double")
        if len(fields) < len(keys):
            return []
        if self.seldom():
            return [(f"{self.choose('first', 'any_value', 'last')}({field.sql})", field.type) for field in fields]
        exact = tuple(Field(sql, type_) for sql, type_ in calls if type_ != "double")
        return windows.calls(self.draw, fields + exact[:2], named=False)[0]

    def call(self, scope: Scope) -> tuple[str, str]:
        """An aggregate call and its type."""
        if self.seldom():
            return aggregates.recomputed(self.draw, scope, inexact=self.inexact)
        function = self.choose("count(*)", "count", "sum", "sum", "avg", "min", "max")
        filter_ = f" FILTER (WHERE {condition(self.draw, scope)})" if self.seldom() else ""
        if function == "count(*)":
            return f"count(*){filter_}", "bigint"
        type_ = self.number(scope) if function in ("sum", "avg") else self.type(scope)
        call = f"{function}({expression(self.draw, scope, type_, 1)}){filter_}"
        if function == "count":
            return call, "bigint"
        if function == "avg":
            return (f"CAST({call} AS DECIMAL(18,6))", "decimal") if type_ == "decimal" else (call, "double")
        return call, {"int": "bigint"}.get(type_, type_) if function == "sum" else type_

    def recursion(self) -> str:
        """WITH RECURSIVE over two columns of one type, a few rounds deep; nothing where no table has such."""
        pairs = [
            (table.name, a.name, b.name, a.type)
            for table in self.tables
            for i, a in enumerate(table.columns)
            for b in table.columns[i + 1 :]
            if a.type == b.type
        ]
        if not pairs:
            return ""
        name, a, b, type_ = self.draw(st.sampled_from(pairs))
        scope = (Field(f"s.{a}", type_.split("(")[0]), Field("w.r", type_.split("(")[0]))
        source = self.choose(f"w JOIN {name} AS s ON s.{a} = w.r", f"{name} AS s JOIN w ON s.{a} <=> w.r")
        where = f" AND {condition(self.draw, scope, 0)}" if self.seldom() else ""
        start = f" WHERE {a} IS NOT NULL" if self.often() else ""
        where += self.choose("", "", f" AND EXISTS (SELECT 1 FROM {name} AS e WHERE e.{b} = w.r)")
        step = f"SELECT s.{b}, w.n + 1 FROM {source} WHERE w.n < {self.choose('1', '2')}{where}"
        if self.seldom():
            again = "SELECT w.r, w.n + 1 FROM w WHERE w.n < 1"
            step = self.choose(f"({step} UNION ALL {again})", f"({again} UNION ALL {step})")
        self.ctes["w"] = (Field("r", type_.split("(")[0]), Field("n", "int"))
        return f"WITH RECURSIVE w(r, n) AS (SELECT {a}, 0 FROM {name}{start} UNION ALL {step}) "


@st.composite
def queries(draw: st.DrawFn, over: tuple[Table, ...], depth: int = 2) -> str:
    """A query over tables, sometimes with a CTE that is used more than once."""
    writer = _Queries(draw, over, inexact=draw(st.integers(0, 4)) == 4)
    head = ""
    if recursive := writer.recursion() if writer.seldom() and writer.seldom() else "":
        head = recursive
    elif writer.seldom():
        sql, shown = writer.query(depth - 1)
        head = f"WITH w AS ({sql}) "
        writer.ctes["w"] = shown
    return head + writer.cut(*writer.query(depth))


@st.composite
def cases(draw: st.DrawFn, depth: int = 2, windows: int = 4) -> Case:
    """A query with a history of its tables."""
    over = draw(tables())
    return Case(draw(queries(over, depth)), over, draw(histories(over, windows)))
