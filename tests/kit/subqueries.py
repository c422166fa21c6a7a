"""Random subqueries: conditions, values, with and without outer columns."""

from __future__ import annotations

from hypothesis import strategies as st

from kit.expressions import Field, Scope, condition, expression
from kit.from_clauses import FromClauses


class Subqueries(FromClauses):
    """Writes subqueries, and the conditions that have them."""

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

    def asking(self, scope: Scope, depth: int, outer: Scope | None = None) -> str:
        outer = scope if outer is None else outer
        negation = self.choose("", "NOT ")
        kind = self.choose("exists", "in", "in", "pair", "value")
        if kind == "exists":
            return f"{negation}EXISTS ({self.nested(outer, depth, ['int'])})"
        if kind == "value":
            sql, type_ = self.value(outer, depth)
            return f"{expression(self.draw, scope, type_, 1)} {self.choose('=', '<', '>=', '<=>')} ({sql})"
        types = [self.draw(st.sampled_from(scope)).type for _ in range(2 if kind == "pair" else 1)]
        values = [expression(self.draw, scope, type_, 0) for type_ in types]
        row = f"({', '.join(values)})" if kind == "pair" else values[0]
        # DuckDB has no IN over several columns with outer references
        return f"{row} {negation}IN ({self.nested(() if kind == 'pair' else outer, depth, types)})"

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
        tail = f" FROM {source}{where}"
        if self.seldom():
            return self.summed_up(scope, types, tail)
        return self.written(self.choose("SELECT ", "SELECT DISTINCT "), items, types, tail)[0]

    def summed_up(self, scope: Scope, types: list[str], tail: str) -> str:
        """The same over groups, or over one row for all, that HAVING may drop."""
        by = [self.draw(st.sampled_from(scope))] if self.often() else []
        items = [f"{self.choose('min', 'max')}({expression(self.draw, scope, type_, 1)})" for type_ in types]
        if by and types[0] == by[0].type and self.often():
            items[0] = by[0].sql
        group = f" GROUP BY {by[0].sql}" if by else ""
        call, type_ = self.call(scope)
        having = f" HAVING {condition(self.draw, (Field(call, type_),), 0)}" if self.often() else ""
        return self.written("SELECT ", items, types, f"{tail}{group}{having}")[0]

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
        if same := [(a, b) for a in outer for b in exact if a.type == b.type]:
            a, b = self.draw(st.sampled_from(same))
            if self.seldom():
                only = f" FROM {source} WHERE {b.sql} {self.choose('=', '<=>')} {a.sql}"
                return self.written("SELECT DISTINCT ", [b.sql], [b.type], only)[0], b.type
        # a comparison of doubles with outer ones tells equal ones apart
        if first and not any(each.type == "double" and each.sql in where for each in outer + scope):
            field = self.draw(st.sampled_from(exact))
            cut = f" ORDER BY {field.sql}{self.choose('', ' DESC')} LIMIT 1"
            return self.written("SELECT ", [field.sql], [field.type], f" FROM {source}{where}")[0] + cut, field.type
        return self.written("SELECT ", [call], [type_], f" FROM {source}{where}")[0], type_
