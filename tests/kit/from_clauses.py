"""Random FROM clauses: tables, queries in brackets, joins, LATERAL."""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from kit import generators, named_joins, pivots, windows
from kit.expressions import Field, Scope, condition, expression
from kit.writing import Shown, Writing

_Turn = Callable[[st.DrawFn, str, Shown, Callable[[], str]], tuple[str, Shown] | None]
"""Makes a SELECT over a source in brackets: see `pivots.pivoted`."""


class FromClauses(Writing):
    """Writes what stands behind FROM."""

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
            return generators.viewed(self.draw, sql, scope, self.alias())
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
        shape = "plain" if doubles else self.choose("plain", "plain", "one", "groups", "distinct", "first", "window")
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
        if shape == "window" and (columns := windows.chosen(self.draw, scope)):
            calls, _ = windows.calls(self.draw, columns, named=False)
            items, types = [sql for sql, _ in calls], [type_ for _, type_ in calls]
        sql, shown = self.written("SELECT DISTINCT " if shape == "distinct" else "SELECT ", items, types, tail)
        if shape == "first" and not any(each.type == "double" for each in shown):
            sql += f" ORDER BY {', '.join(each.sql for each in shown)} LIMIT {self.choose('1', '2')}"
        added = tuple(Field(f"{alias}.{each.sql}", each.type) for each in shown)
        on = condition(self.draw, outer + added) if self.seldom() else "true"
        if not kind and on == "true":
            return f"{source}{self.choose(', LATERAL', ' CROSS JOIN LATERAL')} ({sql}) AS {alias}", outer + added
        return f"{source} {kind}JOIN LATERAL ({sql}) AS {alias} ON {on}", outer + added

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
            options += [
                lambda: self.turned(depth - 1, pivots.pivoted),
                lambda: self.turned(depth - 1, generators.unpivoted),
            ]
        if depth > 0 and self.seldom():
            options += [self.by_names, self.constants]
        if self.ctes:
            options.append(self.cte)
        sql, shown = self.draw(st.sampled_from(options))()
        return f"{sql} AS {alias}", tuple(Field(f"{alias}.{each.sql}", each.type) for each in shown)

    def table(self) -> tuple[str, Shown]:
        table = self.draw(st.sampled_from(self.tables))
        return table.name, tuple(Field(c.name, c.type.split("(")[0]) for c in table.columns)

    def bracketed(self, depth: int) -> tuple[str, Shown]:
        sql, shown = self.query(depth)
        if depth > 0 and self.seldom():
            return f"({self.with_its_own(sql, shown, depth - 1)})", shown
        return f"({self.cut(sql, shown)})", shown

    def with_its_own(self, sql: str, shown: Shown, depth: int) -> str:
        """A query with a condition on its columns, and with a CTE that it may ask."""
        name, defined = self.alias(), self.query(depth)
        self.ctes[name] = defined[1]
        where = f"{condition(self.draw, shown)} OR {self.asking(shown, 0)}" if self.often() else "true"
        del self.ctes[name]
        return f"WITH {name} AS ({defined[0]}) SELECT * FROM ({sql}) AS {name}_of WHERE {where}"

    def turned(self, depth: int, turn: _Turn) -> tuple[str, Shown]:
        """A PIVOT or an UNPIVOT."""
        sql, shown = self.bracketed(depth)
        self.columns += 10
        names = iter(f"p{self.columns - i}" for i in range(10))
        found = turn(self.draw, sql, shown, lambda: next(names))
        return (sql, shown) if found is None else (f"({found[0]})", found[1])

    def by_names(self) -> tuple[str, Shown]:
        """Tables joined by USING or NATURAL."""
        aliases = tuple(self.alias() for _ in range(self.draw(st.integers(2, 3))))
        source, scope = named_joins.joined(self.draw, self.tables, aliases)
        where = f" WHERE {condition(self.draw, scope)}" if self.seldom() else ""
        sql, shown = self.written("SELECT ", [f.sql for f in scope], [f.type for f in scope], f" FROM {source}{where}")
        return f"({sql})", shown

    def constants(self) -> tuple[str, Shown]:
        """VALUES."""
        name, columns = self.alias(), (f"c{self.columns}", f"c{self.columns + 1}")
        self.columns += 2
        rows = self.draw(st.lists(st.sampled_from(["(0, 'a')", "(1, 'b')", "(1, NULL)", "(NULL, 'a')"]), max_size=2))
        values = ", ".join(["(2, '')", *rows])
        return f"(SELECT * FROM VALUES {values} AS {name}({', '.join(columns)}))", (
            Field(columns[0], "int"),
            Field(columns[1], "string"),
        )

    def cte(self) -> tuple[str, Shown]:
        name = self.draw(st.sampled_from(sorted(self.ctes)))
        return name, self.ctes[name]
