"""FROM clauses: tables, views, subqueries, inline rows, and the joins between them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.algebra.moving import moving_filter
from headrace.algebra.relations import Filter, Join, Project, Relation, Scan, Values
from headrace.algebra.scalar import Scalar, all_of, column, compose, equals
from headrace.algebra.tree import identity
from headrace.names import NOW
from headrace.semantics import RELATION_PRECEDENCE
from headrace.sql.reader.context import BoundCte, Context, Ctes, Output, ViewText
from headrace.sql.reader.names.column_names import Names
from headrace.sql.reader.names.resolve import lexemes_of, of_one_row, resolved, scalar_of
from headrace.sql.reader.names.scope import AmbiguousNameError, Scope, Visible
from headrace.sql.reader.recursive_cte import recursion
from headrace.sql.reader.refusals import not_deterministic, not_maintained
from headrace.sql.reader.scalars.booleans import has_subquery
from headrace.sql.reader.scalars.lexemes import Lexemes, Role, cells, scalar
from headrace.sql.reader.subqueries.by_time import by_time
from headrace.sql.reader.subqueries.on_subqueries import Side, both, on_sides, told_apart
from headrace.sql.reader.syntax.query_shape import (
    Alias,
    Extra,
    From,
    FunctionItem,
    GroupItem,
    Item,
    JoinStep,
    QueryItem,
    Select,
    TableItem,
    ValuesItem,
)
from headrace.sql.reader.tables import lateral
from headrace.sql.reader.tables.generators import KNOWN, VIEW, function_item, lateral_view
from headrace.sql.reader.tables.join_kinds import JoinKind, joined_as, kind_of, merged, with_common
from headrace.sql.reader.tables.lateral_item import Lateral
from headrace.sql.reader.tables.pivot import pivoted
from headrace.sql.reader.tables.unpivot import unpivoted
from headrace.sql.reader.unusual_options import refuse_unusual


@dataclass(frozen=True, slots=True)
class Joined:
    """A relation and how its columns are named in the query."""

    relation: Relation
    scope: Scope


class FromReader:
    """Reads one FROM clause.

    Args:
        context: The text.
        ctes: The common table expressions in sight.
    """

    def __init__(self, context: Context, ctes: Ctes) -> None:
        self.context = context
        self.ctes = ctes
        self.names = Names()

    def read(self, source: From) -> Joined:
        """Return the joined inputs."""
        joined = self._item(source.first)
        listed = False
        for step in source.joins:
            if listed and (step.kind != "," or step.extras):
                refuse_unusual(self.context, RELATION_PRECEDENCE, step.at)
            listed = listed or step.kind == ","
            joined = self._extras(self._join(joined, step), step.extras, None)
        return joined

    def _item(self, item: Item) -> Joined:
        match item:
            case TableItem():
                joined = self._table(item)
            case QueryItem():
                if item.lateral:
                    self.context.refuse_at("LATERAL", item.at)
                output = self.context.read_query(self.context, item.query, self.ctes)
                joined = self._renamed(output, item.alias, at=item.at, opaque=item.lateral)
            case ValuesItem():
                joined = self._values(item)
            case GroupItem():
                joined = self.read(item.source)
                if item.alias is not None:
                    # Spark keeps only the alias as qualifier of a parenthesised join
                    shown = joined.scope.star() or ()
                    names = tuple(v.name for v in shown)
                    narrowed = Project(joined.relation, tuple((v.internal, column(v.internal)) for v in shown))
                    joined = self._renamed(Output(narrowed, names, joined.scope.opaque), item.alias, at=item.at)
            case FunctionItem():
                return self._function(Joined(Values((), ((),)), self._scope(())), item)
        return self._extras(joined, item.extras, item.alias)

    def _extras(self, joined: Joined, extras: tuple[Extra, ...], alias: Alias | None) -> Joined:
        qualifier = (alias.name,) if alias else ()
        if len(extras) == 1 and extras[0].construct == "UNPIVOT" and not (alias and alias.columns):
            found = unpivoted(self.context, joined.relation, joined.scope, extras[0], qualifier, self.names)
            if found is not None:
                return Joined(*found)
        if len(extras) == 1 and extras[0].construct == "PIVOT":
            found = pivoted(self.context, joined.relation, joined.scope, extras[0], self.names)
            if found is not None:
                return Joined(*found)
        for extra in extras:
            if extra.construct == "TABLESAMPLE":
                why = "picks rows at random"
                self.context.refuse(not_deterministic(extra.construct, self.context.place(extra.at), why))
            else:
                self.context.refuse_at(extra.construct, extra.at)
        return replace(joined, scope=replace(joined.scope, opaque=True)) if extras else joined

    def _scope(self, columns: tuple[Visible, ...], *, opaque: bool = False) -> Scope:
        return Scope(columns, self.context.case_sensitive, opaque)

    # leaves

    def _table(self, item: TableItem) -> Joined:
        bound = self.ctes.get(self.context.fold(item.parts[0])) if len(item.parts) == 1 else None
        if bound is not None:
            return self._renamed(self._cte(bound), item.alias or Alias(item.parts[0]), at=item.name[0])
        name, found = self.context.table(item.parts, item.name[0])
        if isinstance(found, ViewText):
            output = self.context.read_view(self.context, name, found, item.name[0])
            alias = item.alias or Alias(item.parts[-1])
            return self._renamed(output, alias, at=item.name[0], qualifier=None if item.alias else name.parts)
        alias = item.alias or Alias(item.parts[-1])
        shown = tuple(alias.columns) or tuple(c.name for c in found)
        if len(shown) != len(found):
            self.context.refuse_at("column aliases of another number than the columns", item.name[0])
            shown = tuple(c.name for c in found)
        internal = [self.names.take(f"{alias.name}.{name}") for name in shown]
        qualifier = (alias.name,) if item.alias else name.parts
        visible = tuple(Visible(qualifier, s, i) for s, i in zip(shown, internal, strict=True))
        fields = tuple(zip(internal, (c.name for c in found), strict=True))
        return Joined(Scan(name, fields), self._scope(visible))

    def _cte(self, bound: BoundCte) -> Output:
        known = self.context.read_ctes
        if bound.cte.at not in known:
            output = recursion(self.context, bound) if bound.recursive else None
            if output is None:
                output = self.context.read_query(self.context, bound.cte.query, bound.env)
            known[bound.cte.at] = self.relabelled(output, bound.cte.columns, bound.cte.at)
        return known[bound.cte.at]

    def relabelled(self, output: Output, columns: tuple[str, ...], token: int) -> Output:
        """Return column names from an alias or a WITH clause."""
        if not columns:
            return output
        if len(columns) != len(output.names):
            self.context.refuse_at("column aliases of another number than the columns", token)
            return output
        return replace(output, names=columns)

    def _renamed(
        self,
        output: Output,
        alias: Alias | None,
        *,
        at: int,
        qualifier: tuple[str, ...] | None = None,
        opaque: bool = False,
    ) -> Joined:
        """Return a nested query as an input: its columns under `alias.name`."""
        output = self.relabelled(output, alias.columns, at) if alias else output
        prefix = alias.name if alias else "q"
        internal = [self.names.take(f"{prefix}.{name or i}") for i, name in enumerate(output.names, 1)]
        items = tuple((new, column(old)) for new, old in zip(internal, output.relation.columns, strict=True))
        own = qualifier or ((alias.name,) if alias else ())
        visible = tuple(
            Visible(own, name or f"\0{i}", new)
            for i, (name, new) in enumerate(zip(output.names, internal, strict=True))
        )
        return Joined(Project(output.relation, items), self._scope(visible, opaque=output.opaque or opaque))

    def _values(self, item: ValuesItem) -> Joined:
        """Return inline rows of constants."""
        empty = self._scope(())
        rows: list[tuple[Scalar, ...]] = []
        for row in item.rows:
            written = cells(lexemes_of(self.context, row))
            rows.append(tuple(scalar(resolved(self.context, cell, empty)) for cell in written))
        width = len(rows[0])
        if any(len(row) != width for row in rows) or any(not p.sql for row in rows for p in row):
            self.context.refuse_at("VALUES with rows of different length", item.at)
            return Joined(Values((), ((),)), self._scope((), opaque=True))
        names = tuple(f"col{i}" for i in range(1, width + 1))
        return self._renamed(Output(Values(names, tuple(rows)), names), item.alias, at=item.at)

    def _function(self, left: Joined, item: FunctionItem) -> Joined:
        """Return a function that gives several rows, beside each row of what stands before it."""
        found = function_item(self.context, left.relation, left.scope, item, self.names)
        if found is not None:
            return Joined(*found)
        named = item.name.lower() in KNOWN and not (item.alias and item.alias.columns)
        return self._refused(left, item, hint=f"Name its columns: {item.name}(…) AS alias(column)." if named else None)

    def _refused(self, left: Joined, item: FunctionItem, message: str | None = None, hint: str | None = None) -> Joined:
        construct = f"{item.name}() in FROM"
        self.context.refuse(not_maintained(construct, self.context.place(item.at), message, hint))
        return replace(left, scope=replace(left.scope, opaque=True))

    # joins

    def _join(self, left: Joined, step: JoinStep) -> Joined:
        kind = kind_of(step.kind)
        if kind is None:
            self.context.refuse_at(f"{step.kind} JOIN", step.at)
            kind = JoinKind.INNER
        if isinstance(step.item, QueryItem) and step.item.lateral:
            found = self._lateral(left, step.item, step, kind)
            if found is not None:
                return found
        if isinstance(step.item, FunctionItem):
            return self._joined_function(left, step.item, step, kind)
        return self._joined(left, self._item(step.item), step, kind)

    def _joined_function(self, left: Joined, item: FunctionItem, step: JoinStep, kind: JoinKind) -> Joined:
        on = () if step.on is None else lexemes_of(self.context, step.on)
        if kind is not JoinKind.INNER and item.name.lower() in KNOWN:
            return self._refused(left, item, _LOST, "Write LATERAL VIEW OUTER explode(…) alias AS column.")
        if kind is not JoinKind.INNER or step.natural or step.using or has_subquery(on):
            return self._refused(left, item)
        found = self._function(left, item)
        condition = scalar(resolved(self.context, on, found.scope)) if on else None
        return found if condition is None else replace(found, relation=Filter(found.relation, condition))

    def _joined(self, left: Joined, right: Joined, step: JoinStep, kind: JoinKind) -> Joined:
        names = self._common(left.scope, right.scope, step.at) if step.natural else step.using
        if names:
            return self._join_using(left, right, names, step, kind)
        scope = left.scope.beside(right.scope)
        lexemes = () if step.on is None else lexemes_of(self.context, step.on)
        of_one_row(self.context, lexemes, "ON")
        if has_subquery(lexemes):
            return self._joined_on(left, right, lexemes, kind)
        condition = scalar(resolved(self.context, lexemes, scope)) if lexemes else None
        if kind.one_sided:
            scope = replace(left.scope, opaque=scope.opaque)
        return Joined(joined_as(kind, left.relation, right.relation, condition), scope)

    def _joined_on(self, left: Joined, right: Joined, lexemes: Lexemes, kind: JoinKind) -> Joined:
        """Return a join by a condition with subqueries."""
        plain, parts = told_apart(lexemes)
        scope = left.scope.beside(right.scope)
        on = resolved(self.context, plain, scope)
        if kind is JoinKind.INNER:
            relation = joined_as(kind, left.relation, right.relation, scalar(on) if on else None)
            for part in parts:
                relation = self.context.keep(self.context, self.ctes, relation, scope, self.names, part)
            return Joined(relation, scope)

        left, right, parts = self._by_time(left, right, parts, kind)

        def read(context: Context, side: Side, part: Lexemes) -> tuple[Relation, Lexemes]:
            return context.read_on(context, self.ctes, *side, self.names, part)

        sides = (left.relation, left.scope), (right.relation, right.scope)
        before, behind, asked = on_sides(self.context, *sides, parts, read)
        shown = replace(left.scope, opaque=scope.opaque) if kind.one_sided else scope
        condition = both(on, asked)
        return Joined(joined_as(kind, before, behind, scalar(condition) if condition else None), shown)

    def _by_time(
        self, left: Joined, right: Joined, parts: list[Lexemes], kind: JoinKind
    ) -> tuple[Joined, Joined, list[Lexemes]]:
        """Return both sides, filtered by what ON compares with the time, and other conditions."""
        sides, rest = [left, right], list[Lexemes]()
        scope = left.scope.beside(right.scope)
        for part in parts:
            moving, others = by_time(part)
            over = [resolved(self.context, each, scope) for each in moving] if not others else []
            read = {p.parts[0] for each in over for p in each if p.role is Role.INPUT} - {NOW}
            at = [i for i, side in enumerate(sides) if kind.sides_of_on[i] and read <= set(side.relation.columns)]
            if not (read and at):
                rest.append(part)
                continue
            for each in over:
                filtered = moving_filter(sides[at[0]].relation, scalar(each))
                sides[at[0]] = replace(sides[at[0]], relation=filtered)
        return sides[0], sides[1], rest

    def _lateral(self, left: Joined, item: QueryItem, step: JoinStep, kind: JoinKind) -> Joined | None:
        """Return a subquery that reads columns of what stands before it.

        None where it is no more than a derived table.
        """
        output = lateral.alone(self.context, lambda context: context.read_query(context, item.query, self.ctes))
        if output is not None:
            right = self._extras(self._renamed(output, item.alias, at=item.at), item.extras, item.alias)
            return self._joined(left, right, step, kind)
        alias = item.alias or Alias("q")
        rows = lateral.correlated(self.context, item, left.scope, self._inner)
        plain = not (step.natural or step.using or item.extras or alias.columns or left.scope.opaque)
        qualifier = alias.name if item.alias else ""
        if not plain or kind not in (JoinKind.INNER, JoinKind.LEFT):
            return None

        def condition(columns: tuple[Visible, ...]) -> Scalar | None:
            scope = left.scope.beside(self._scope(columns))
            return None if step.on is None else scalar(scalar_of(self.context, step.on, scope))

        if rows is None:
            padded = kind is JoinKind.LEFT
            asked = Lateral(
                item.query, alias.name, qualifier, left.relation, left.scope, self.names, self._inner, padded, condition
            )
            found = self.context.read_lateral(self.context, self.ctes, asked)
        elif kind is JoinKind.INNER:
            relation, columns = lateral.joined(left.relation, rows, self.names, alias.name, qualifier)
            on = condition(columns)
            found = (relation if on is None else Filter(relation, on)), columns
        else:
            found = lateral.padded(left.relation, rows, self.names, alias.name, qualifier, condition)
        return None if found is None else Joined(found[0], left.scope.beside(self._scope(found[1])))

    def _inner(self, select: Select) -> tuple[Relation, Scope]:
        """Return the FROM of a lateral subquery; its columns get names that are free here."""
        reader = FromReader(self.context, self.ctes)
        reader.names = self.names
        joined = reader.block(select)
        return joined.relation, joined.scope

    def block(self, select: Select) -> Joined:
        """Read FROM and the LATERAL VIEWs behind it."""
        assert select.source is not None
        joined = self.read(select.source)
        relation, scope = joined.relation, joined.scope
        for extra in select.extras:
            if extra.construct == VIEW:
                relation, scope = lateral_view(self.context, relation, scope, extra, self.names)
            else:
                scope = replace(scope, opaque=True)
        return Joined(relation, scope)

    def _common(self, left: Scope, right: Scope, at: int) -> tuple[str, ...]:
        """Return the columns of NATURAL JOIN, which Spark 4.1 always compares by case."""
        theirs = {b.name for b in right.star() or ()}
        common = tuple(a.name for a in left.star() or () if any(left.same(a.name, name) for name in theirs))
        if not theirs.issuperset(common):
            message = "NATURAL JOIN of columns whose names differ by case joins by others in Spark."
            self.context.refuse_at("NATURAL JOIN", at, message)
        return common

    def _join_using(
        self, left: Joined, right: Joined, names: tuple[str, ...], step: JoinStep, kind: JoinKind
    ) -> Joined:
        pairs: list[tuple[Visible, Visible]] = []
        for name in names:
            try:
                a, b = left.scope.resolve((name,)), right.scope.resolve((name,))
            except AmbiguousNameError:
                a = b = None
            if a is None or b is None:
                offset = self.context.cursor.offset(step.at)
                self.context.doubt("USING", f"USING ({name}) could not be traced to one column of each side.", offset)
                return Joined(Join(left.relation, right.relation), left.scope.beside(right.scope))
            pairs.append((a.column, b.column))
        condition = all_of(equals(column(a.internal), column(b.internal)) for a, b in pairs)
        assert condition is not None
        joined = joined_as(kind, left.relation, right.relation, condition)
        if kind is JoinKind.FULL:
            return self._either(joined, left.scope, right.scope, pairs)
        return Joined(joined, merged(kind, left.scope, right.scope, tuple(pairs)))

    def _either(self, joined: Relation, left: Scope, right: Scope, pairs: list[tuple[Visible, Visible]]) -> Joined:
        """Join by USING in a full join: common columns of the side that is there."""
        both = tuple(Visible((), a.name, self.names.take(f"using.{a.name}")) for a, _ in pairs)
        chosen = tuple(
            (each.internal, compose("COALESCE({a}, {b})", a=column(a.internal), b=column(b.internal)))
            for each, (a, b) in zip(both, pairs, strict=True)
        )
        relation = Project(joined, (*identity(joined.columns), *chosen))
        return Joined(relation, with_common(left, right, tuple(pairs), both))


# InferFiltersFromGenerate takes the join for an inner one where it can push the filter to a table
_LOST = "In outer joins Spark itself keeps or loses rows for which a function gives none, as it happens to plan."
