"""Random queries of the kinds that are maintained, up to three levels deep."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import strategies as st

from kit import aggregates, pivots, windows
from kit.case import Case, Table
from kit.expressions import NUMBERS, TYPES, Field, Scope, condition, expression
from kit.histories import histories
from kit.values import tables

Shown = tuple[Field, ...]
"""The output columns of a query: bare names and types."""


@dataclass
class _Writer:
    """Writes one query; aliases are unique over the whole of it."""

    draw: st.DrawFn
    tables: tuple[Table, ...]
    ctes: dict[str, Shown] = field(default_factory=dict)
    aliases: int = 0
    columns: int = 0

    def choose(self, *options: str) -> str:
        return self.draw(st.sampled_from(options))

    def often(self) -> bool:
        return self.draw(st.integers(0, 2)) > 0

    def seldom(self) -> bool:
        return self.draw(st.integers(0, 3)) == 0

    def alias(self) -> str:
        self.aliases += 1
        return f"q{self.aliases}"

    def type(self, scope: Scope) -> str:
        """A type, mostly of something in scope."""
        return self.choose(*(each.type for each in scope), *(each.type for each in scope), *TYPES)

    def number(self, scope: Scope) -> str:
        return self.choose(*(each.type for each in scope if each.type in NUMBERS), *NUMBERS)

    # queries

    def query(self, depth: int) -> tuple[str, Shown]:
        """A SELECT, or two or three with set operators between them."""
        sql, shown = self.select(depth)
        while depth > 0 and self.seldom():
            other = self.projection(depth - 1, [each.type for each in shown])
            operator = self.choose("UNION", "UNION", "INTERSECT", "EXCEPT", "EXCEPT")
            sql = f"{sql} {operator} {self.choose('ALL ', '')}{other}"
            depth -= 1
        return sql, shown

    def select(self, depth: int) -> tuple[str, Shown]:
        source, scope = self.source(depth)
        where = self.where(scope, depth)
        kind = self.choose("plain", "plain", "distinct", "group", "group", "global", "window")
        if kind == "window" and (columns := windows.chosen(self.draw, scope)):
            return self.windowed(f"{source}{where}", columns)
        if kind in ("group", "global"):
            return self.grouped(f"{source}{where}", scope, depth, keyed=kind == "group")
        types = [self.type(scope) for _ in range(self.draw(st.integers(1, 3)))]
        items = [expression(self.draw, scope, type_) for type_ in types]
        if depth > 0 and self.seldom():
            sql, type_ = self.value(scope, depth - 1)
            items, types = [*items, f"({sql})"], [*types, type_]
        elif depth > 0 and self.seldom():
            items, types = [*items, self.asked(scope, depth - 1)], [*types, "int"]
        distinct = "DISTINCT " if kind == "distinct" else ""
        return self.written(f"SELECT {distinct}", items, types, f" FROM {source}{where}")

    def windowed(self, source: str, scope: Scope) -> tuple[str, Shown]:
        shown = [*((f.sql, f.type) for f in scope if self.often()), *windows.calls(self.draw, scope)]
        return self.written("SELECT ", [sql for sql, _ in shown], [type_ for _, type_ in shown], f" FROM {source}")

    def projection(self, depth: int, types: list[str]) -> str:
        """A SELECT with columns of given types, to stand in a union."""
        source, scope = self.source(depth)
        items = [expression(self.draw, scope, type_, 1) for type_ in types]
        return self.written("SELECT ", items, types, f" FROM {source}")[0]

    def where(self, scope: Scope, depth: int) -> str:
        """WHERE, perhaps with subqueries, these perhaps under OR and NOT."""
        parts = [condition(self.draw, scope)] if self.seldom() else []
        if depth > 0 and self.seldom():
            part = self.asking(scope, depth - 1)
            shape = self.choose("alone", "alone", "or", "not", "nest", "both")
            if shape == "or":
                part = f"({part} OR {condition(self.draw, scope)})"
            elif shape == "not":
                part = f"NOT ({part})"
            elif shape != "alone":
                other = self.asking(scope, depth - 1)
                part = f"NOT ({part} AND {other})" if shape == "nest" else f"{part} AND {other}"
            parts.append(part)
        return f" WHERE {' AND '.join(parts)}" if parts else ""

    def asking(self, scope: Scope, depth: int) -> str:
        """A condition that is a subquery or compares with one."""
        negation = self.choose("", "NOT ")
        kind = self.choose("exists", "in", "in", "pair", "value")
        if kind == "exists":
            return f"{negation}EXISTS ({self.nested(scope, depth, ['int'])})"
        if kind == "value":
            sql, type_ = self.value(scope, depth)
            return f"{expression(self.draw, scope, type_, 1)} {self.choose('=', '<', '>=', '<=>')} ({sql})"
        types = [self.draw(st.sampled_from(scope)).type for _ in range(2 if kind == "pair" else 1)]
        values = [expression(self.draw, scope, type_, 0) for type_ in types]
        row = f"({', '.join(values)})" if kind == "pair" else values[0]
        # DuckDB has no IN over several columns with outer references
        return f"{row} {negation}IN ({self.nested(() if kind == 'pair' else scope, depth, types)})"

    def asked(self, scope: Scope, depth: int) -> str:
        """A number that says whether a condition with a subquery is true."""
        part = self.asking(scope, depth)
        part = self.choose(part, part, f"NOT ({part})", f"{part} OR {condition(self.draw, scope, 0)}")
        return self.choose(f"CASE WHEN {part} THEN 1 ELSE 0 END", f"IF({part}, 1, 2)")

    def nested(self, outer: Scope, depth: int, types: list[str]) -> str:
        """A subquery with columns of given types, with or without outer references."""
        source, scope = self.source(depth)
        items = [expression(self.draw, scope, type_, 1) for type_ in types]
        where = self.related(outer, scope) if outer and self.often() else self.where(scope, depth)
        return self.written(self.choose("SELECT ", "SELECT DISTINCT "), items, types, f" FROM {source}{where}")[0]

    def related(self, outer: Scope, scope: Scope) -> str:
        """A WHERE with outer references, if columns of one type allow that."""
        pairs = [(a.sql, b.sql) for a in outer for b in scope if a.type == b.type]
        if not pairs:
            return ""
        a, b = self.draw(st.sampled_from(pairs))
        parts = [f"{b} {self.choose('=', '=', '=', '<=>', '<')} {a}"]
        if self.seldom():
            parts.append(condition(self.draw, outer + scope))
        return f" WHERE {' AND '.join(parts)}"

    def value(self, outer: Scope, depth: int) -> tuple[str, str]:
        """A scalar subquery and its type."""
        source, scope = self.source(depth)
        exact = [each for each in scope if each.type != "double"]
        first = bool(exact) and self.seldom()
        call, type_ = self.call(scope)
        where = self.related(outer, scope) if outer and self.often() else self.where(scope, depth)
        # a comparison of doubles with outer ones tells equal ones apart
        if first and not any(each.type == "double" and each.sql in where for each in outer + scope):
            field = self.draw(st.sampled_from(exact))
            cut = f" ORDER BY {field.sql}{self.choose('', ' DESC')} LIMIT 1"
            return self.written("SELECT ", [field.sql], [field.type], f" FROM {source}{where}")[0] + cut, field.type
        return self.written("SELECT ", [call], [type_], f" FROM {source}{where}")[0], type_

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
        group = f" GROUP BY {', '.join(sql for sql, _ in keys)}" if keys else ""
        having = ""
        if self.seldom():
            results = tuple(Field(sql, type_) for sql, type_ in calls)
            having = f" HAVING {condition(self.draw, results)}"
        elif depth > 0 and self.seldom():
            sql, type_ = self.value((), depth - 1)
            same = [call for call, each in calls if each == type_]
            having = f" HAVING {self.choose(*same)} >= ({sql})" if same else ""
        # sqlglot does not read a predicate among the columns of ROLLUP
        if keys and {sql for sql, _ in keys} <= {each.sql for each in scope} and self.seldom():
            written = aggregates.grouping(self.draw, [sql for sql, _ in keys])
            # DuckDB has a row for the empty set over no rows, Spark has none
            group, having = (
                f" GROUP BY {written}",
                having.replace("HAVING", "HAVING count(*) > 0 AND") or " HAVING count(*) > 0",
            )
            shown += [(f"CAST(grouping({sql}) AS INT)", "int") for sql, _ in keys if self.seldom()]
        return self.written("SELECT ", [s for s, _ in shown], [t for _, t in shown], f" FROM {source}{group}{having}")

    def call(self, scope: Scope) -> tuple[str, str]:
        """An aggregate call and its type."""
        if self.seldom():
            return aggregates.recomputed(self.draw, scope)
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

    def written(self, head: str, items: list[str], types: list[str], tail: str) -> tuple[str, Shown]:
        """A SELECT; an alias occurs once in a query, so that none is mistaken for a column."""
        names = [f"c{self.columns + i}" for i in range(len(items))]
        self.columns += len(items)
        shown = tuple(Field(name, type_) for name, type_ in zip(names, types, strict=True))
        return head + ", ".join(f"{sql} AS {name}" for sql, name in zip(items, names, strict=True)) + tail, shown

    # FROM

    def source(self, depth: int) -> tuple[str, Scope]:
        sql, scope = self.item(depth)
        for _ in range(self.draw(st.sampled_from([0, 0, 0, 1, 1, 2]))):
            if self.seldom() and ", " not in sql:
                sql, scope = self.lateral(sql, scope, depth - 1)
                continue
            right, added = self.item(depth - 1)
            kind = self.choose("", "", "LEFT ", "RIGHT ", "FULL ", "LEFT SEMI ", "LEFT ANTI ")
            sql = f"{sql}{self.join(kind, right, scope, added)}"
            if " ON " in sql.rpartition(right)[2] and depth > 1 and self.seldom():
                # a subquery in ON reads one side, but in an inner join
                sql += (
                    f" AND {self.asking(scope + added if not kind else self.draw(st.sampled_from([scope, added])), 0)}"
                )
            scope += () if "SEMI" in kind or "ANTI" in kind else added
        # behind a comma DuckDB would not see what stands before it
        if self.seldom() and ", " not in sql:
            return self.exploded(sql, scope)
        return sql, scope

    def lateral(self, source: str, outer: Scope, depth: int) -> tuple[str, Scope]:
        """A source with a LATERAL subquery that reads its columns."""
        inner, scope = self.item(depth)
        kind, alias = self.choose("", "", "LEFT "), self.alias()
        pairs = [(a.sql, b.sql) for a in outer for b in scope if a.type == b.type]
        a, b = self.draw(st.sampled_from(pairs or [("1", "1")]))
        where = f"{b} {self.choose('=', '=', '<=>', '<')} {a}"
        if self.seldom():
            where = f"{where} AND {condition(self.draw, outer + scope, 0)}"
        doubles = any(each.type == "double" and each.sql in where for each in outer + scope)
        # equal doubles can be told apart: 0.0 and -0.0
        shape = "plain" if doubles else self.choose("plain", "plain", "one", "groups", "distinct", "first")
        own = scope if kind or shape != "plain" else outer + scope
        types = [self.type(own) for _ in range(self.draw(st.integers(1, 2)))]
        items = [expression(self.draw, own, type_, 1) for type_ in types]
        tail = f" FROM {inner} WHERE {where}"
        if shape in ("one", "groups"):
            (call, type_), (first, kept) = self.call(scope), (items[0], types[0])
            keyed = shape == "groups" and any(each.sql in first for each in scope)
            items, types = ([first, call], [kept, type_]) if keyed else ([call], [type_])
            tail += f" GROUP BY {first}" if keyed else ""
            tail += f" HAVING count(*) {self.choose('>', '<=')} 1" if self.seldom() else ""
        sql, shown = self.written("SELECT DISTINCT " if shape == "distinct" else "SELECT ", items, types, tail)
        if shape == "first" and not any(each.type == "double" for each in shown):
            sql += f" ORDER BY {', '.join(each.sql for each in shown)} LIMIT {self.choose('1', '2')}"
        added = tuple(Field(f"{alias}.{each.sql}", each.type) for each in shown)
        on = condition(self.draw, outer + added) if self.seldom() else "true"
        return f"{source} {kind}JOIN LATERAL ({sql}) AS {alias} ON {on}", outer + added

    def exploded(self, source: str, scope: Scope) -> tuple[str, Scope]:
        """A source with LATERAL VIEW."""
        field, alias = self.draw(st.sampled_from(scope)), self.alias()
        same = [each.sql for each in scope if each.type == field.type]
        values = ", ".join(self.draw(st.lists(st.sampled_from(same), min_size=1, max_size=3)))
        array = self.choose(f"array({values})", f"CASE WHEN {condition(self.draw, scope, 0)} THEN array({values}) END")
        if self.choose("explode", "explode", "posexplode") == "explode":
            return f"{source} LATERAL VIEW explode({array}) {alias} AS x", (*scope, Field(f"{alias}.x", field.type))
        # sqlglot loses the alias of the view
        added = (Field(f"{alias}_p", "int"), Field(f"{alias}_x", field.type))
        return f"{source} LATERAL VIEW posexplode({array}) {alias} AS {alias}_p, {alias}_x", scope + added

    def join(self, kind: str, right: str, scope: Scope, added: Scope) -> str:
        pairs = [(a.sql, b.sql) for a in scope for b in added if a.type == b.type]
        if kind and (not pairs or self.seldom()):
            return f" {kind}JOIN {right} ON {condition(self.draw, scope + added)}"
        if not pairs or self.seldom():
            return self.choose(f", {right}", f" CROSS JOIN {right}")
        left_key, right_key = self.draw(st.sampled_from(pairs))
        on = f"{left_key} {self.choose('=', '=', '=', '<=>', '<')} {right_key}"
        if self.seldom():
            on += f" AND {condition(self.draw, scope + added)}"
        return f" {kind}JOIN {right} ON {on}"

    def item(self, depth: int) -> tuple[str, Scope]:
        alias = self.alias()
        options: list[Callable[[], tuple[str, Shown]]] = [self.table]
        if depth > 0:
            options.append(lambda: self.bracketed(depth - 1))
        if depth > 0 and self.seldom():
            options.append(lambda: self.pivot(depth - 1))
        if self.ctes:
            options.append(self.cte)
        sql, shown = self.draw(st.sampled_from(options))()
        return f"{sql} AS {alias}", tuple(Field(f"{alias}.{each.sql}", each.type) for each in shown)

    def table(self) -> tuple[str, Shown]:
        table = self.draw(st.sampled_from(self.tables))
        return table.name, tuple(Field(c.name, c.type.split("(")[0]) for c in table.columns)

    def bracketed(self, depth: int) -> tuple[str, Shown]:
        sql, shown = self.query(depth)
        return f"({self.cut(sql, shown)})", shown

    def pivot(self, depth: int) -> tuple[str, Shown]:
        sql, shown = self.bracketed(depth)
        self.columns += 10
        names = iter(f"p{self.columns - i}" for i in range(10))
        found = pivots.pivoted(self.draw, sql, shown, lambda: next(names))
        return (sql, shown) if found is None else (f"({found[0]})", found[1])

    def cut(self, sql: str, shown: Shown) -> str:
        """A query, sometimes with ORDER BY of all its columns and LIMIT."""
        if not self.seldom() or any(each.type == "double" for each in shown):
            return sql
        order = ", ".join(f"{each.sql}{self.choose('', ' DESC', ' NULLS LAST')}" for each in shown)
        return f"{sql} ORDER BY {order} LIMIT {self.choose('1', '2', '3')}{self.choose('', '', ' OFFSET 1')}"

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
        step = f"SELECT s.{b}, w.n + 1 FROM {source} WHERE w.n < {self.choose('1', '2')}{where}"
        self.ctes["w"] = (Field("r", type_.split("(")[0]), Field("n", "int"))
        return f"WITH RECURSIVE w(r, n) AS (SELECT {a}, 0 FROM {name}{start} UNION ALL {step}) "

    def cte(self) -> tuple[str, Shown]:
        name = self.draw(st.sampled_from(sorted(self.ctes)))
        return name, self.ctes[name]


@st.composite
def queries(draw: st.DrawFn, over: tuple[Table, ...], depth: int = 2) -> str:
    """A query over tables, sometimes with a CTE that is used more than once."""
    writer = _Writer(draw, over)
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
