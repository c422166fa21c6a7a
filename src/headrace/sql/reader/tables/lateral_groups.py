"""LATERAL subqueries with GROUP BY, window functions or LIMIT, per outer row.

The subquery's rows get keys that say which outer rows they are for (`decorrelation`); its groups, its partitions and
its first rows are then taken for each key, and outer rows find theirs by the key. An aggregate without GROUP BY has a
row for every outer row, also where it finds none: zero for a count, NULL for the others.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headrace.algebra.relations import (
    Aggregate,
    AggregateCall,
    Filter,
    Join,
    OuterJoin,
    Project,
    Relation,
    SortKey,
    TopK,
    Window,
    WindowCall,
)
from headrace.algebra.scalar import Scalar, all_of, call_of, column, compose, literal, substitute
from headrace.algebra.tree import identity
from headrace.sql.reader.context import Context, Ctes, Output
from headrace.sql.reader.names.column_names import Names
from headrace.sql.reader.names.resolve import lexemes_of
from headrace.sql.reader.names.scope import Visible
from headrace.sql.reader.scalars.booleans import conjuncts, has_subquery
from headrace.sql.reader.scalars.lexemes import Lexemes, Role, input_lexeme, scalar
from headrace.sql.reader.select.aggregates import Grouping, has_aggregate
from headrace.sql.reader.select.group_by_all import without_all
from headrace.sql.reader.select.limits import limited, ordering
from headrace.sql.reader.select.select_reader import SelectReader
from headrace.sql.reader.select.windows import has_window
from headrace.sql.reader.subqueries.decorrelation import beside_nothing, matched, over_nothing
from headrace.sql.reader.subqueries.single_value import checked, unordered
from headrace.sql.reader.syntax.query_shape import Select
from headrace.sql.reader.tables.from_reader import Joined
from headrace.sql.reader.tables.generators import is_generator, more_than_views
from headrace.sql.reader.tables.lateral import OuterReader
from headrace.sql.reader.tables.lateral_item import Beside, Lateral

Items = tuple[tuple[str, Scalar], ...]


def read_lateral(context: Context, ctes: Ctes, lateral: Lateral) -> Beside | None:
    """Return outer rows joined with their subquery's rows; None where not understood.

    Args:
        context: The text.
        ctes: The common table expressions in sight.
        lateral: The subquery.
    """
    return _Reader(context, ctes, lateral).joined()


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of the subquery's FROM and WHERE.

    Args:
        joined: Its rows, with keys.
        keys: The keys.
        left: What stands before it, with columns that find them.
        on: How.
    """

    joined: Joined
    keys: tuple[str, ...]
    left: Relation
    on: Scalar


class _Reader:
    def __init__(self, context: Context, ctes: Ctes, lateral: Lateral) -> None:
        self.context = context
        self.ctes = ctes
        self.lateral = lateral
        self.names = lateral.names

    def joined(self) -> Beside | None:
        query = self.lateral.query
        select = query.body
        if not isinstance(select, Select) or select.source is None or more_than_views(select) or query.ctes:
            return None
        rows = self._rows(select)
        if rows is None:
            return None
        asked = [lexemes_of(self.context, within) for within in (*select.items, select.having) if within is not None]
        if any(has_subquery(each) for each in asked):
            return None
        select = without_all(self.context, replace(select, where=None, extras=()), rows.joined.scope)
        if select.group is None and any(has_aggregate(each) for each in asked):
            # a window would be over the one row of each outer row
            return None if any(map(has_window, asked)) else self._single(select, rows)
        return self._several(select, rows)

    def _rows(self, select: Select) -> _Rows | None:
        assert select.source is not None
        left = self.lateral.left
        relation, scope = self.lateral.read_from(select)
        reader = OuterReader(self.context, scope, self.lateral.scope)
        parts = conjuncts(lexemes_of(self.context, select.where)) if select.where else ()
        conditions = [reader.expression(part) for part in parts]
        if reader.failed or scope.opaque:
            return None
        own = frozenset(relation.columns)
        inside = [each for each in conditions if _columns(each) <= own]
        outside = [each for each in conditions if not _columns(each) <= own]
        condition = all_of(scalar(each) for each in inside)
        relation = relation if condition is None else Filter(relation, condition)
        match = matched(self.context, left, relation, outside, self.names) if outside else None
        if match is None:
            return None
        keys = tuple(self.names.take("key") for _ in match.keys)
        named = tuple((name, scalar(key)) for name, key in zip(keys, match.keys, strict=True))
        keyed = Project(match.inner, (*identity(relation.columns), *named))
        theirs = tuple((self.names.take("of"), scalar(each)) for each in match.theirs)
        on = all_of(match.equal(a, b) for (a, _), b in zip(theirs, keys, strict=True))
        assert on is not None
        return _Rows(Joined(keyed, scope), keys, Project(left, (*identity(left.columns), *theirs)), on)

    # one row for each outer row

    def _single(self, select: Select, rows: _Rows) -> Beside | None:
        """Return an aggregate without GROUP BY."""
        if select.distinct or not all(extra.harmless for extra in self.lateral.query.extras):
            return None
        reader = SelectReader(self.context, select, self.ctes)
        items = [item for within in select.items for item in reader.items_of(within, rows.joined.scope)]
        if any(is_generator(item.lexemes) for item in items):  # which gives more rows, or none
            return None
        keys: list[Lexemes] = [(input_lexeme(key, items[0].lexemes[0]),) for key in rows.keys]
        grouping = Grouping(keys, place_of=self.context.place_of)
        over = [reader.over(grouping, item.lexemes) for item in items]
        having = reader.having(rows.joined.scope, grouping)
        if not all(over) or any(p.role is Role.NAME for each in (*over, having) for p in each):
            return None
        aggregate = grouping.relation(rows.joined.relation)
        assert isinstance(aggregate, Aggregate)
        right, there = self._renamed(aggregate)
        named = {name: there[grouping.key(key)] for name, key in zip(rows.keys, keys, strict=True)}
        pairs = OuterJoin(rows.left, right, _renaming(rows.on, named))
        nothing = over_nothing(aggregate)
        columns = self._visible(tuple(item.name for item in items))
        values = (scalar(beside_nothing(each, there, nothing)) for each in over)
        shown = tuple((column.internal, value) for column, value in zip(columns, values, strict=True))
        kept = scalar(beside_nothing(having, there, nothing)) if having else None
        return self._narrowed(pairs, shown, kept, columns), columns

    def _narrowed(self, pairs: Relation, shown: Items, kept: Scalar | None, columns: tuple[Visible, ...]) -> Relation:
        """Return the rows that HAVING and ON leave.

        Where outer rows stay, the others' values are NULL.
        """
        own = identity(self.lateral.left.columns)
        flags = () if kept is None else ((self.names.take("kept"), kept),)
        rows: Relation = Project(pairs, (*own, *shown, *flags))
        condition = all_of((*(column(name) for name, _ in flags), *self._on(columns)))
        if condition is None:
            return rows
        if not self.lateral.padded:
            return Filter(rows, condition)
        met = tuple((n, compose("CASE WHEN {c} THEN {v} END", c=condition, v=column(n))) for n, _ in shown)
        return Project(rows, (*own, *met))

    # any number of rows

    def _several(self, select: Select, rows: _Rows) -> Beside | None:
        """Return groups, distinct rows, numbered rows, or the first of them."""
        if select.group is not None and (select.group.extras or not (select.group.all or select.group.items)):
            return None
        reader = SelectReader(self.context, select, self.ctes, given=rows.joined, keys=rows.keys)
        query = self.lateral.query
        output = limited(self.context, query, reader.read(ordering(self.context, query)), reader.place)
        if output.opaque:
            return None
        first = len(output.relation.columns) - len(rows.keys)
        if self.lateral.single and first != 1:
            return None
        cut = _cut(output)
        if cut is not None and cut.place is not None and output.hidden:
            # Spark 4.1 forgets an order by what such a subquery does not show: a finer one would be forgotten, too
            self.context.orders.pop(cut.place, None)
        if self.lateral.single and (cut is None or cut.limit != 1):
            return self._only(output, rows)
        right, there = self._renamed(_first_of_each(output, output.relation.columns[first:]))
        own = tuple(there.values())
        named = zip(own[:first], output.names[:first], strict=True)
        columns = tuple(self._column(name, own, i) for i, (own, name) in enumerate(named))
        on = _renaming(rows.on, dict(zip(rows.keys, own[first:], strict=True)))
        if self.lateral.padded:
            return OuterJoin(rows.left, right, all_of((on, *self._on(columns))) or on), columns
        condition = all_of(self._on(columns))
        pairs = Join(rows.left, right, on)
        return (pairs if condition is None else Filter(pairs, condition)), columns

    def _only(self, output: Output, rows: _Rows) -> Beside | None:
        """Return the value of the one row that there may be for each outer row."""
        relation = _first_of_each(output, output.relation.columns[1:])
        value, *keys = relation.columns
        if unordered(self.context, relation, column(value)) is not None:
            return None
        calls = (AggregateCall("only", "max", column(value)), AggregateCall("rows", "count"))
        counted = Aggregate(relation, tuple(keys), calls)
        right, there = self._renamed(counted)
        on = _renaming(rows.on, {key: there[name] for key, name in zip(rows.keys, keys, strict=True)})
        (shown,) = self._visible((None,))
        item = (shown.internal, checked(there["only"], there["rows"]))
        own = identity(self.lateral.left.columns)
        return Project(OuterJoin(rows.left, right, on), (*own, item)), (shown,)

    # columns

    def _on(self, columns: tuple[Visible, ...]) -> tuple[Scalar, ...]:
        condition = self.lateral.on(columns)
        return () if condition is None else (condition,)

    def _renamed(self, relation: Relation) -> tuple[Relation, dict[str, str]]:
        there = {name: self.names.take(f"{self.lateral.alias}.{name}") for name in relation.columns}
        return Project(relation, tuple((new, column(old)) for old, new in there.items())), there

    def _visible(self, names: tuple[str | None, ...]) -> tuple[Visible, ...]:
        internal = (self.names.take(f"{self.lateral.alias}.{name or i}") for i, name in enumerate(names, 1))
        return tuple(self._column(name, own, i) for i, (name, own) in enumerate(zip(names, internal, strict=True)))

    def _column(self, name: str | None, internal: str, place: int) -> Visible:
        return Visible((self.lateral.qualifier,) if self.lateral.qualifier else (), name or f"\0{place}", internal)


def _cut(output: Output) -> TopK | None:
    """Return the TopK of a query with LIMIT, also below a projection hiding sort columns."""
    relation = output.relation
    if output.hidden and isinstance(relation, Project):
        relation = relation.input
    return relation if isinstance(relation, TopK) else None


def _first_of_each(output: Output, keys: tuple[str, ...]) -> Relation:
    """Return the first rows for each key, where the query is cut off."""
    cut = _cut(output)
    if cut is None:
        return output.relation
    names = Names()
    for name in cut.columns:
        names.take(name)
    number = names.take("number")
    # Spark numbers rows in some order only; of one row for each key any will do
    order = cut.order or tuple(SortKey(column(key)) for key in keys)
    call = WindowCall(number, "row_number", call_of("row_number"), order, place=cut.place, written="LIMIT")
    conditions = [compose("{n} > {k}", n=column(number), k=literal(cut.offset))] if cut.offset else []
    if cut.limit is not None:
        conditions.append(compose("{n} <= {k}", n=column(number), k=literal(cut.offset + cut.limit)))
    numbered: Relation = Window(cut.input, keys, (call,))
    condition = all_of(conditions)
    return Project(numbered if condition is None else Filter(numbered, condition), identity(output.relation.columns))


def _columns(lexemes: Lexemes) -> frozenset[str]:
    return scalar(lexemes).columns


def _renaming(condition: Scalar, names: dict[str, str]) -> Scalar:
    return substitute(condition, {old: column(new) for old, new in names.items()})
